// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"errors"
	"fmt"
	"time"
)

// Config are the limits of a watch. Those of an engine that are 0 mean the defaults.
type Config struct {
	// Incarnations bounds the lives of jobs that are held: the one that was not heard of for longest leaves,
	// new ones first.
	Incarnations int
	// Ranks and Bytes bound the ranks of all of them, and what those take by estimate: the first life
	// leaves that holds more of it than all that began after it.
	Ranks, Bytes int
	// Silent is after how long an incarnation of which nothing is heard is forgotten.
	Silent time.Duration
	// MaxEpisodes bounds the findings that are open, of all jobs.
	MaxEpisodes int
}

// NewDefaultConfig returns the defaults: room for eight jobs of 16,384 ranks, some 50 MiB.
func NewDefaultConfig() Config {
	return Config{
		Incarnations: 1024, Ranks: 1 << 17, Bytes: 128 << 20, MaxEpisodes: 1024,
		Silent: 5 * time.Minute, // five times that a rank tells of itself
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		ok   bool
		got  any
		want string
	}{
		{"silent", c.Silent >= time.Second, c.Silent, "at least 1s"},
		{"max_incarnations", c.Incarnations >= 1, c.Incarnations, "at least 1"},
		{"max_ranks", c.Ranks >= 1, c.Ranks, "at least 1"},
		{"max_episodes", c.MaxEpisodes >= 1, c.MaxEpisodes, "at least 1"},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %s", f.name, f.got, f.want))
		}
	}
	return errors.Join(errs...)
}

// maxLives bounds the processes of one rank in one incarnation: a launcher that starts ranks again
// without saying so comes to more only where the job cannot run.
const maxLives = 8

// Stats count what was taken, and what was not and why.
type Stats struct {
	Resumes int64 // taken, repetitions among them
	// Overflowed counts those left out for want of room: their incarnation converges no more.
	Overflowed int64
	// Left counts incarnations that left for others, Silent those that were forgotten.
	Left, Silent int64
	// Opened and Closed count findings; Withheld those for which there was no room, each once.
	Opened, Closed, Withheld int64
	// Ranks and Bytes are held now.
	Ranks, Bytes int
}
