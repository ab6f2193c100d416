// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/desync/watch"
)

// Config configures the desync connector.
type Config struct {
	// LimitFactor times the 99.9th percentile of a job's own gaps in a phase is how long it
	// may stand in that phase.
	LimitFactor float64 `mapstructure:"limit_factor"`
	// LimitFloor is the least stall limit.
	LimitFloor time.Duration `mapstructure:"limit_floor"`
	// MinGaps is how many gaps of a phase must be known for its limit.
	MinGaps int `mapstructure:"min_gaps"`
	// StartLimit is the limit of a phase of which too few gaps are known.
	StartLimit time.Duration `mapstructure:"start_limit"`
	// HeldLimit is the limit of a rank that stands at a breakpoint, and the greatest of a process that
	// is stopped.
	HeldLimit time.Duration `mapstructure:"held_limit"`
	// StateTTL is for how long the state of a living rank counts after it has come.
	StateTTL time.Duration `mapstructure:"state_ttl"`
	// DumpWait is how long dumps of further ranks are waited for after the last came.
	DumpWait time.Duration `mapstructure:"dump_wait"`
	// Forget is for how long nothing is heard of a finding, or of a job, until it is given up.
	Forget time.Duration `mapstructure:"forget"`

	// CheckInterval is how often it is looked whether something stands for too long.
	CheckInterval time.Duration `mapstructure:"check_interval"`
	// FlushInterval is how often metrics are sent.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// RepeatInterval is how often findings that stand are sent again, under the revision that
	// they had.
	RepeatInterval time.Duration `mapstructure:"repeat_interval"`
	// StorageID names a storage extension that keeps open findings over a restart; nil: none does.
	StorageID *component.ID `mapstructure:"storage"`
	// JobsID names an extension that names jobs which another collector has from now on; nil: none does.
	JobsID *component.ID `mapstructure:"jobs"`

	// MaxJobs is the most jobs that are followed.
	MaxJobs int `mapstructure:"max_jobs"`
	// MaxRanks is the most ranks of one job.
	MaxRanks int `mapstructure:"max_ranks"`
	// MaxComms is the most communicators of one rank.
	MaxComms int `mapstructure:"max_comms"`
	// MaxMemoryMiB is the most MiB that are held of all jobs, by estimate: beyond it, the first
	// job that holds more than all that began after it is given up. Half as much again may wait while a job is judged. 0 is an eighth of the memory that
	// the collector may use.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`
	// MaxSeries is the most series of each metric; what comes later is in one series marked
	// otel.metric.overflow.
	MaxSeries int `mapstructure:"max_series"`

	_ struct{}
}

// defaultMaxSeries is as many jobs as are followed by default, in all phases.
const defaultMaxSeries = 1024

func newDefaultConfig() *Config {
	w := watch.NewDefaultConfig()
	return &Config{
		LimitFactor: w.Factor, LimitFloor: w.Floor, MinGaps: w.MinGaps, StartLimit: w.StartLimit, HeldLimit: w.HeldLimit,
		StateTTL: w.StateTTL, DumpWait: w.DumpWait, Forget: w.Forget,
		CheckInterval:  500 * time.Millisecond, // a tenth of the delay that people notice beside a limit of seconds
		FlushInterval:  15 * time.Second,       // many scrape every 15 s
		RepeatInterval: 2 * time.Minute,        // a fifth of the silence after which the findings connector closes one
		MaxJobs:        w.MaxJobs, MaxRanks: w.MaxRanks, MaxComms: w.MaxComms, MaxSeries: defaultMaxSeries,
	}
}

func (c *Config) watch() watch.Config {
	w := watch.NewDefaultConfig()
	w.Factor, w.Floor, w.MinGaps, w.StartLimit, w.HeldLimit = c.LimitFactor, c.LimitFloor, c.MinGaps, c.StartLimit, c.HeldLimit
	w.StateTTL, w.DumpWait, w.Forget = c.StateTTL, c.DumpWait, c.Forget
	w.MaxJobs, w.MaxRanks, w.MaxComms, w.MaxBytes = c.MaxJobs, c.MaxRanks, c.MaxComms, c.maxBytes()
	w.Analysis.MaxRanks = c.MaxRanks
	return w
}

// memoryShare is the part of the collector's memory that jobs hold where nothing else is set.
const memoryShare = 8

func (c *Config) maxBytes() int {
	if c.MaxMemoryMiB > 0 {
		return min(c.MaxMemoryMiB, bounded.MaxMiB) << 20
	}
	return max(watch.MinBytes, int(bounded.Memory()/memoryShare))
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	w := c.watch()
	err := w.Validate()
	for _, f := range []struct {
		name string
		got  time.Duration
	}{
		{"check_interval", c.CheckInterval},
		{"flush_interval", c.FlushInterval},
		{"repeat_interval", c.RepeatInterval},
	} {
		if f.got <= 0 {
			err = errors.Join(err, fmt.Errorf("check %s: got %v; want more than 0", f.name, f.got))
		}
	}
	if c.MaxMemoryMiB < 0 || c.MaxMemoryMiB > bounded.MaxMiB {
		err = errors.Join(err, fmt.Errorf("check max_memory_mib: got %d; want 0 to %d", c.MaxMemoryMiB, bounded.MaxMiB))
	}
	if c.MaxSeries < 1 {
		err = errors.Join(err, fmt.Errorf("check max_series: got %d; want at least 1", c.MaxSeries))
	}
	return err
}
