package epochconnector

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
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
	// MaxFindings bounds the findings that are open.
	MaxFindings int `mapstructure:"max_findings"`
	// MaxSeries is the most series of each metric.
	MaxSeries int `mapstructure:"max_series"`

	_ struct{}
}

func newDefaultConfig() *Config {
	w := watch.NewDefaultConfig()
	return &Config{
		Settle: w.Settle, Silent: w.Silent,
		CheckInterval:  5 * time.Second,  // saves take longer
		FlushInterval:  15 * time.Second, // many scrape every 15 s
		RepeatInterval: 2 * time.Minute,  // a fifth of the silence after which the findings connector closes one
		MaxJobs:        w.Engine.Jobs, MaxDomains: w.Engine.Domains, MaxSaves: w.Engine.Saves, MaxRegisters: w.Engine.Registers,
		MaxFindings: w.MaxEpisodes, MaxSeries: 1024,
	}
}

func (c *Config) watch() watch.Config {
	w := watch.NewDefaultConfig()
	w.Settle, w.Silent, w.MaxEpisodes = c.Settle, c.Silent, c.MaxFindings
	w.Engine.Jobs, w.Engine.Domains, w.Engine.Saves, w.Engine.Registers = c.MaxJobs, c.MaxDomains, c.MaxSaves, c.MaxRegisters
	return w
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
	return errors.Join(errs...)
}
