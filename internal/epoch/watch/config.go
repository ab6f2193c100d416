// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
)

// Config are the limits of a watch.
type Config struct {
	Engine epoch.Config
	// Settle is for how long nothing of a save must have changed before it is called mixed or
	// partial: a save that is under way looks like both.
	Settle time.Duration
	// Silent is after how long an observer of which nothing is heard is forgotten.
	Silent time.Duration
	// MaxEpisodes bounds the findings that are open, of all jobs.
	MaxEpisodes int
	// MaxObservers bounds those that are followed; beyond it one is never forgotten.
	MaxObservers int
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	return Config{
		Engine:      epoch.DefaultConfig(),
		Settle:      10 * time.Minute, // as long as a large save takes, and a slow rank more
		Silent:      15 * time.Minute, // three heartbeats of the checkpoint receiver
		MaxEpisodes: 1024, MaxObservers: epoch.DefaultConfig().Observers,
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
		{"settle", c.Settle >= time.Second, c.Settle, "at least 1s"},
		{"silent", c.Silent >= c.Settle, c.Silent, "at least settle"},
		{"max_episodes", c.MaxEpisodes >= 1, c.MaxEpisodes, "at least 1"},
		{"max_observers", c.MaxObservers >= 1, c.MaxObservers, "at least 1"},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %s", f.name, f.got, f.want))
		}
	}
	return errors.Join(errs...)
}

// Stats count what was taken, and what was not and why.
type Stats struct {
	Engine epoch.Stats
	// Opened and Closed count findings; Withheld those for which there was no room, each once, and
	// frontiers of before a restart for which there was none.
	Opened, Closed, Withheld int64
	// Forgotten counts observers that fell silent, Unfollowed those beyond MaxObservers.
	Forgotten, Unfollowed int64
	// Late counts observations of a life of an observer after a later one was heard.
	Late int64
	// SpansLost counts saves that became whole, and have no span: nobody knows when they were begun, or
	// there was no room.
	SpansLost int64
	Judged    int64
}
