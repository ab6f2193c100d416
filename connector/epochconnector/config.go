// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	fleet "github.com/lockstep-otel/lockstep/internal/fleet/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config configures the epoch connector.
type Config struct {
	// Settle is for how long nothing of a save must have changed before it is called mixed,
	// partial or revoked.
	Settle time.Duration `mapstructure:"settle"`
	// Silent is after how long what an observer said counts no more.
	Silent time.Duration `mapstructure:"silent"`
	// CheckInterval is how often it is looked what has changed.
	CheckInterval time.Duration `mapstructure:"check_interval"`
	// FlushInterval is how often metrics are sent.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// RepeatInterval is how often findings that stand are sent again, under the revision that
	// they had.
	RepeatInterval time.Duration `mapstructure:"repeat_interval"`
	// MaxJobs, MaxDomains and MaxSaves bound the jobs, and the domains and saves of each of their
	// generations; MaxRegisters what is held in all, 32 bytes each.
	MaxJobs      int `mapstructure:"max_jobs"`
	MaxDomains   int `mapstructure:"max_domains"`
	MaxSaves     int `mapstructure:"max_saves"`
	MaxRegisters int `mapstructure:"max_registers"`
	// MaxMemoryMiB is the most MiB that are held in all, by estimate: a quarter each of saves, of the jobs
	// of a fleet and of its nodes, and an eighth each of resumes and of replicas. 0 is an eighth of the
	// memory that the collector may use.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`
	// MaxFindings bounds the findings that are open, of saves and of versions each.
	MaxFindings int `mapstructure:"max_findings"`
	// MaxSeries is the most series of each metric.
	MaxSeries int `mapstructure:"max_series"`
	// StorageID names a storage extension, in which is kept which saves were whole and what is open of
	// them.
	StorageID *component.ID `mapstructure:"storage"`
	// Fleet is about the versions that nodes run.
	Fleet FleetConfig `mapstructure:"fleet"`
	// Resume is about what ranks have loaded as they resume.
	Resume ResumeConfig `mapstructure:"resume"`
	// LogLines is about lines of ordinary logs that say that something mixed.
	LogLines LogLinesConfig `mapstructure:"log_lines"`
	// Replicas is about what the parameters of replicas hash to.
	Replicas ReplicasConfig `mapstructure:"replicas"`

	_ struct{}
}

// FleetConfig is about the versions that nodes run.
type FleetConfig struct {
	// Settle is for how long two nodes must have been heard to run different versions at once.
	Settle time.Duration `mapstructure:"settle"`
	// Silent is after how long what was told of a node or a rank counts no more.
	Silent time.Duration `mapstructure:"silent"`
	// Compatible are, by domain, sets of versions that may mix.
	Compatible map[string][][]string `mapstructure:"compatible"`
	// MaxNodes, MaxVersions, MaxRanks, MaxCommunicators and MaxMembers bound what is held in all.
	MaxNodes         int `mapstructure:"max_nodes"`
	MaxVersions      int `mapstructure:"max_versions"`
	MaxRanks         int `mapstructure:"max_ranks"`
	MaxCommunicators int `mapstructure:"max_communicators"`
	MaxMembers       int `mapstructure:"max_members"`

	_ struct{}
}

func newDefaultConfig() *Config {
	w, f := watch.NewDefaultConfig(), fleet.NewDefaultConfig()
	return &Config{
		Settle: w.Settle, Silent: w.Silent,
		CheckInterval:  5 * time.Second,  // saves take longer
		FlushInterval:  15 * time.Second, // many scrape every 15 s
		RepeatInterval: 2 * time.Minute,  // a fifth of the silence after which the findings connector closes one
		MaxJobs:        w.Engine.Jobs, MaxDomains: w.Engine.Domains, MaxSaves: w.Engine.Saves, MaxRegisters: w.Engine.Registers,
		MaxFindings: w.MaxEpisodes, MaxSeries: 1024,
		Fleet: FleetConfig{
			Settle: f.Settle, Silent: f.Silent,
			MaxNodes: f.MaxNodes, MaxVersions: f.MaxVersions, MaxRanks: f.MaxRanks, MaxCommunicators: f.MaxComms, MaxMembers: f.MaxMembers,
		},
		Resume: newDefaultResumeConfig(), Replicas: newDefaultReplicasConfig(), LogLines: newDefaultLogLinesConfig(),
	}
}

func (c *Config) fleet() fleet.Config {
	f := &c.Fleet
	w := fleet.Config{
		Settle: f.Settle, Silent: f.Silent, MaxJobs: c.MaxJobs, MaxEpisodes: c.MaxFindings,
		MaxNodes: f.MaxNodes, MaxVersions: f.MaxVersions, MaxRanks: f.MaxRanks, MaxComms: f.MaxCommunicators, MaxMembers: f.MaxMembers,
		MaxBytes: c.maxBytes() / 4,
	}
	if len(f.Compatible) > 0 {
		w.Compatible = map[model.VersionDomain][][]string{}
	}
	for domain, sets := range f.Compatible {
		w.Compatible[model.VersionDomain(domain)] = sets
	}
	return w
}

func (c *Config) watch() watch.Config {
	w := watch.NewDefaultConfig()
	w.Settle, w.Silent, w.MaxEpisodes = c.Settle, c.Silent, c.MaxFindings
	w.Engine.Jobs, w.Engine.Domains, w.Engine.Saves, w.Engine.Registers = c.MaxJobs, c.MaxDomains, c.MaxSaves, c.MaxRegisters
	w.Engine.Bytes = c.maxBytes() / 4
	return w
}

// memoryShare divides the collector's memory: the quotient is the default limit, which is never below
// leastMemory.
const (
	memoryShare = 8
	leastMemory = 4 << 20
)

func (c *Config) maxBytes() int {
	if c.MaxMemoryMiB > 0 {
		return min(c.MaxMemoryMiB, bounded.MaxMiB) << 20
	}
	return max(leastMemory, int(bounded.Memory()/memoryShare))
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, name string, got any, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %s", name, got, want))
		}
	}
	check(c.Settle >= time.Second, "settle", c.Settle, "at least 1s, with a unit")
	check(c.Silent >= c.Settle, "silent", c.Silent, "at least settle")
	for name, d := range map[string]time.Duration{
		"check_interval": c.CheckInterval, "flush_interval": c.FlushInterval, "repeat_interval": c.RepeatInterval,
	} {
		check(d > 0, name, d, "more than 0")
	}
	for name, n := range map[string]int{
		"max_jobs": c.MaxJobs, "max_domains": c.MaxDomains, "max_saves": c.MaxSaves, "max_registers": c.MaxRegisters,
		"max_findings": c.MaxFindings, "max_series": c.MaxSeries,
	} {
		check(n > 0, name, n, "at least 1")
	}
	check(c.MaxMemoryMiB >= 0 && c.MaxMemoryMiB <= bounded.MaxMiB, "max_memory_mib", c.MaxMemoryMiB, fmt.Sprint("0 to ", bounded.MaxMiB))
	if len(errs) == 0 { // of what both have, it would say the same
		f := c.fleet()
		if err := f.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("check fleet: %w", err))
		}
		r := c.resume()
		if err := r.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("check resume: %w", err))
		}
		l := c.lines()
		if err := l.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("check log_lines: %w", err))
		}
		if err := c.Replicas.validate(); err != nil {
			errs = append(errs, fmt.Errorf("check replicas: %w", err))
		}
	}
	return errors.Join(errs...)
}
