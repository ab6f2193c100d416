// SPDX-License-Identifier: Apache-2.0

package desync

import "time"

// Config are the limits of an analysis.
type Config struct {
	// StallAfter is how old the oldest open operation must be before anything is said to
	// hang, where a state says when it was taken. States of dumps that do not say it are
	// taken for what they are: written because something hung.
	StallAfter time.Duration
	// MaxRanks bounds the ranks that are held; further states are counted.
	MaxRanks int
	// MaxOpen bounds the open operations of one rank that are held.
	MaxOpen int
	// MaxGroups bounds the communicators that are held.
	MaxGroups int
	// MaxRoots bounds the roots that are told.
	MaxRoots int
}

// NewDefaultConfig returns limits for a job of up to 131,072 ranks.
func NewDefaultConfig() Config {
	return Config{StallAfter: 2 * time.Second, MaxRanks: 1 << 17, MaxOpen: 4096, MaxGroups: 1 << 20, MaxRoots: 64}
}

func (c Config) withDefaults() Config {
	d := NewDefaultConfig()
	if c.StallAfter <= 0 {
		c.StallAfter = d.StallAfter
	}
	for _, p := range []struct {
		to  *int
		def int
	}{{&c.MaxRanks, d.MaxRanks}, {&c.MaxOpen, d.MaxOpen}, {&c.MaxGroups, d.MaxGroups}, {&c.MaxRoots, d.MaxRoots}} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	return c
}

// Stats count what was taken and what found no room.
type Stats struct {
	States, StatesRefused, OpsDropped, GroupsDropped, RootsOmitted int64
	WitnessesDropped, ProblemsOmitted                              int64
	// VotesDropped counts older answers of RAS about a rank of which there are newer ones.
	VotesDropped int64
	// HeadsDropped counts operations in which ranks wait that were not compared with all
	// members, since too many of one communicator are open.
	HeadsDropped int64
}
