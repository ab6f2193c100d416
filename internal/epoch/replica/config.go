// SPDX-License-Identifier: Apache-2.0

package replica

import "time"

// Config are the limits of a watch. Those that are 0 mean the defaults.
type Config struct {
	// Groups, Ranks and Bytes bound the groups of all jobs, the ranks of all of them, and what those take by
	// estimate. Of a job the group leaves that was not heard of for longest: for ranks and bytes of the first
	// job that holds more of them than all that began after it. For another group it is of the job that has
	// most groups if those are more than a quarter of all, else of that first job if it has more than a
	// sixteenth, else of the job that was not heard of for longest, those first that were heard of a few times.
	Groups, Ranks, Bytes int
	// Silent is after how long a group of which nothing is heard is forgotten.
	Silent time.Duration
	// MaxEpisodes bounds the findings that are open, of all jobs.
	MaxEpisodes int
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{
		Groups: 1 << 14, Ranks: 1 << 17, Bytes: 128 << 20, MaxEpisodes: 1024,
		Silent: time.Hour, // a hundred steps may take as long
	}
}

func (c Config) or(def Config) Config {
	for _, p := range []struct {
		to  *int
		def int
	}{{&c.Groups, def.Groups}, {&c.Ranks, def.Ranks}, {&c.Bytes, def.Bytes}, {&c.MaxEpisodes, def.MaxEpisodes}} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	if c.Silent <= 0 {
		c.Silent = def.Silent
	}
	return c
}

const (
	// maxSteps bounds the steps of a group that are compared: ranks are seldom one fingerprint apart.
	maxSteps = 4
	// maxSlices bounds the slices of a group that are in doubt: a fault that grows is told by the first.
	maxSlices = 64
	// maxRanks is as many as a finding lists, maxHeld what an operator reads.
	maxRanks = 64
	maxHeld  = 16
)

// Stats count what was taken, and what was not and why.
type Stats struct {
	Fingerprints int64 // taken, repetitions among them
	// Late counts those of steps that are compared no more, or of an earlier life of a rank; Overflowed
	// those left out for want of room.
	Late, Overflowed int64
	// Left counts groups that left for others, Silent those that were forgotten.
	Left, Silent int64
	// Opened and Closed count findings; Withheld those for which there was no room, each once.
	Opened, Closed, Withheld int64
	// Ranks and Bytes are held now.
	Ranks, Bytes int
}
