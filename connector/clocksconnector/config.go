// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// Config configures the clocks connector.
type Config struct {
	// Timeline is the timeline extension that is fed and read; without it the
	// connector has a timeline of its own, to which the fields below apply.
	Timeline *component.ID `mapstructure:"timeline"`

	// MaxClocks is the most clocks that are held.
	MaxClocks int `mapstructure:"max_clocks"`
	// ForgetAfter is how long a clock is extrapolated after its last window.
	ForgetAfter time.Duration `mapstructure:"forget_after"`
	// SkewThreshold is by how much a real-time clock can be off, beyond its bound,
	// without a finding.
	SkewThreshold time.Duration `mapstructure:"skew_threshold"`
	// DriftThreshold is the same for rates, in ppm.
	DriftThreshold float64 `mapstructure:"drift_threshold"`
	// SlewLimit is by how much the rate of a real-time clock can change without this
	// being told, in ppm.
	SlewLimit float64 `mapstructure:"slew_limit"`

	// SolveInterval is how often what came is solved, unless the extension does, and
	// models and findings are given out.
	SolveInterval time.Duration `mapstructure:"solve_interval"`
	// FlushInterval is how often metrics are given out.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// MaxSeries is the most series of each metric; what comes later is in one series
	// marked otel.metric.overflow.
	MaxSeries int `mapstructure:"max_series"`
	// SeriesExpiration drops the series of a clock of which nothing new came for so
	// long; 0 keeps all.
	SeriesExpiration time.Duration `mapstructure:"series_expiration"`

	_ struct{}
}

const (
	// defaultSolveInterval is a probe window: each is solved once.
	defaultSolveInterval = 2 * time.Second
	// defaultFlushInterval: many scrape every 15 s.
	defaultFlushInterval = 15 * time.Second
	// defaultMaxSeries has room for 1,024 nodes with two clocks and eight GPUs each.
	defaultMaxSeries = 10_240
	// defaultSeriesExpiration is when a clock is forgotten too: a gauge that stays says
	// that the clock is still there.
	defaultSeriesExpiration = 10 * time.Minute
)

func newDefaultConfig() *Config {
	opt := timeline.DefaultOptions()
	return &Config{
		MaxClocks:        opt.MaxClocks,
		ForgetAfter:      opt.Forget,
		SkewThreshold:    opt.Skew,
		DriftThreshold:   opt.Drift * 1e6,
		SlewLimit:        opt.Slew * 1e6,
		SolveInterval:    defaultSolveInterval,
		FlushInterval:    defaultFlushInterval,
		MaxSeries:        defaultMaxSeries,
		SeriesExpiration: defaultSeriesExpiration,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.MaxClocks > 0, "check max_clocks: got %d; want at least 1", c.MaxClocks)
	check(c.ForgetAfter > 0, "check forget_after: got %v; want more than 0", c.ForgetAfter)
	check(c.SkewThreshold > 0, "check skew_threshold: got %v; want more than 0", c.SkewThreshold)
	check(c.DriftThreshold > 0, "check drift_threshold: got %v; want more than 0", c.DriftThreshold)
	check(c.SlewLimit > 0, "check slew_limit: got %v; want more than 0", c.SlewLimit)
	check(c.SolveInterval > 0, "check solve_interval: got %v; want more than 0", c.SolveInterval)
	check(c.FlushInterval > 0, "check flush_interval: got %v; want more than 0", c.FlushInterval)
	check(c.MaxSeries > 0, "check max_series: got %d; want at least 1", c.MaxSeries)
	check(c.SeriesExpiration >= 0, "check series_expiration: got %v; want 0 or more", c.SeriesExpiration)
	return errors.Join(errs...)
}

func (c *Config) options() timeline.Options {
	return timeline.Options{
		MaxClocks: c.MaxClocks, Forget: c.ForgetAfter, Skew: c.SkewThreshold, Drift: c.DriftThreshold / 1e6, Slew: c.SlewLimit / 1e6,
	}
}
