// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

import (
	"errors"
	"fmt"
	"time"
)

// Config configures the checkpoint receiver.
type Config struct {
	// Roots are the folders that are looked at.
	Roots []RootConfig `mapstructure:"roots"`
	// PollInterval is how often each is looked at. One that takes long is looked at less often.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Heartbeat is how often all that is known is told again.
	Heartbeat time.Duration `mapstructure:"heartbeat"`
	// Timeout is how long a look may take before the folder is left alone until it ends.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxDomains bounds the domains of all saves of one folder that are followed.
	MaxDomains int `mapstructure:"max_domains"`
	// Node names this machine; empty: its host name.
	Node string `mapstructure:"node"`

	_ struct{}
}

// RootConfig is one folder of checkpoints.
type RootConfig struct {
	Path string `mapstructure:"path"`
	// JobID and JobName name the job that saves there.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`
	// Places: the folder is this node's own, and holds a part of each save; so many nodes have
	// one. 0: it is shared, and holds all.
	Places int64 `mapstructure:"places"`
	// WorldSize is how many ranks save, where no save says it; 0: not known.
	WorldSize int64 `mapstructure:"world_size"`

	_ struct{}
}

const (
	// defaultPollInterval: a save an hour is known 1 % of the time between two later.
	defaultPollInterval = 30 * time.Second
	defaultHeartbeat    = 5 * time.Minute
	// defaultTimeout: 16,384 shards take half a second from a local disk, and a network file
	// system a hundred times as long.
	defaultTimeout = 5 * time.Minute
	// defaultMaxDomains are those of a job of 16,384 ranks with 8 domains each, twice.
	defaultMaxDomains = 1 << 18

	minInterval   = time.Second
	maxRoots      = 64
	maxMaxDomains = 1 << 22
	maxRanks      = 1 << 20
)

func newDefaultConfig() *Config {
	return &Config{PollInterval: defaultPollInterval, Heartbeat: defaultHeartbeat, Timeout: defaultTimeout, MaxDomains: defaultMaxDomains}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if len(c.Roots) == 0 {
		errs = append(errs, errors.New("check roots: got none; want at least one folder of checkpoints"))
	}
	check(len(c.Roots) <= maxRoots, "check roots: got %d; want at most %d", len(c.Roots), maxRoots)
	seen := map[string]bool{}
	for i := range c.Roots {
		r := &c.Roots[i]
		check(r.Path != "", "check roots: %d: got no path; want one", i)
		check(r.JobID != "", "check roots: %d: got no job_id; want one: saves of different jobs are not compared", i)
		check(!seen[r.Path], "check roots: %d: got %s twice; want it once", i, r.Path)
		check(r.Places >= 0 && r.Places <= maxRanks, "check roots: %d: got places %d; want 0 to %d", i, r.Places, maxRanks)
		check(r.WorldSize >= 0 && r.WorldSize <= maxRanks, "check roots: %d: got world_size %d; want 0 to %d", i, r.WorldSize, maxRanks)
		seen[r.Path] = true
	}
	check(c.PollInterval >= minInterval, "check poll_interval: got %v; want at least %v, with a unit", c.PollInterval, minInterval)
	check(c.Heartbeat >= c.PollInterval, "check heartbeat: got %v; want at least poll_interval, %v", c.Heartbeat, c.PollInterval)
	check(c.Timeout >= minInterval, "check timeout: got %v; want at least %v, with a unit", c.Timeout, minInterval)
	check(c.MaxDomains >= 1 && c.MaxDomains <= maxMaxDomains, "check max_domains: got %d; want 1 to %d", c.MaxDomains, maxMaxDomains)
	return errors.Join(errs...)
}
