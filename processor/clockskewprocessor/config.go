// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// The values of Config.Mode.
const (
	ModeRealign  = "realign"
	ModeAnnotate = "annotate"
	ModeOff      = "off"
)

// Config configures the clock skew processor.
type Config struct {
	// Mode says what is done with spans: ModeRealign, ModeAnnotate or ModeOff.
	Mode string `mapstructure:"mode"`
	// Timeline is the timeline extension whose clocks are used and fed. Without it
	// the processor has a timeline of its own.
	Timeline *component.ID `mapstructure:"timeline"`
	// Traces configures what is learned of clocks from the spans themselves.
	Traces TracesConfig `mapstructure:"traces"`
	// Health configures lockstep.causality.health.
	Health HealthConfig `mapstructure:"health"`
	// MaxSpans bounds the spans that are remembered for their partners.
	MaxSpans int `mapstructure:"max_spans"`
	// MaxClocks bounds the clocks that are told apart.
	MaxClocks int `mapstructure:"max_clocks"`
	// MaxJobs bounds the jobs and services that are counted apart.
	MaxJobs int `mapstructure:"max_jobs"`
	// SlewLimit is by how much the rate of a real-time clock can change without this
	// being told, in ppm, where the processor has a timeline of its own.
	SlewLimit float64 `mapstructure:"slew_limit"`

	_ struct{}
}

// TracesConfig bounds the evidence from spans.
type TracesConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// Window is how long evidence of two clocks is gathered for one edge.
	Window time.Duration `mapstructure:"window"`
	// MaxPairs bounds the pairs of clocks of which evidence is gathered.
	MaxPairs int `mapstructure:"max_pairs"`

	_ struct{}
}

// HealthConfig says when a job is healthy.
type HealthConfig struct {
	Window time.Duration `mapstructure:"window"`
	// Limit is the share of the window's relations that may be certainly wrong.
	Limit float64 `mapstructure:"limit"`

	_ struct{}
}

const (
	// defaultMaxSpans at about 200 bytes each are 12 MiB, and at 1 KiB at most as many
	// members of collectives, which are kept apart: some seconds of a gateway.
	defaultMaxSpans  = 1 << 16
	defaultMaxClocks = 1 << 16
	// defaultMaxPairs at some KiB each: pairs of hosts that call each other.
	defaultMaxPairs = 1 << 14
	defaultMaxJobs  = 1 << 10
	// defaultWindow: a real-time clock may be slewed by 500 ppm at any time, so what is
	// known of it is worth less with every ms since the last edge. Shorter windows cost
	// more, and make less of what is shared by their estimates.
	defaultWindow = time.Second
	// defaultHealthWindow and a limit make a service level of what is 0 or 1; stamps
	// of programs that were not running when they should have stamped are a few in a
	// thousand under load.
	defaultHealthWindow = 30 * time.Second
	defaultHealthLimit  = 0.01
)

func newDefaultConfig() *Config {
	return &Config{
		Mode:     ModeRealign,
		Traces:   TracesConfig{Enabled: true, Window: defaultWindow, MaxPairs: defaultMaxPairs},
		Health:   HealthConfig{Window: defaultHealthWindow, Limit: defaultHealthLimit},
		MaxSpans: defaultMaxSpans, MaxClocks: defaultMaxClocks, MaxJobs: defaultMaxJobs,
		SlewLimit: timeline.DefaultOptions().Slew * 1e6,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field string, got, want any) {
		errs = append(errs, fmt.Errorf("check %s: got %v; want %v", field, got, want))
	}
	switch c.Mode {
	case ModeRealign, ModeAnnotate, ModeOff:
	default:
		bad("mode", fmt.Sprintf("%q", c.Mode), "realign, annotate or off")
	}
	for _, n := range []struct {
		field string
		got   int
		most  int
	}{
		{"max_spans", c.MaxSpans, 1 << 26}, {"max_clocks", c.MaxClocks, 1 << 24}, {"max_jobs", c.MaxJobs, 1 << 20}, {"traces::max_pairs", c.Traces.MaxPairs, 1 << 24},
	} {
		if n.got < 1 || n.got > n.most {
			bad(n.field, n.got, fmt.Sprintf("1 to %d", n.most))
		}
	}
	if w := c.Traces.Window; w < time.Millisecond || w > time.Hour {
		bad("traces::window", w, "1ms to 1h")
	}
	if w := c.Health.Window; w < time.Second || w > time.Hour {
		bad("health::window", w, "1s to 1h")
	}
	if l := c.Health.Limit; !(l >= 0 && l <= 1) {
		bad("health::limit", l, "0 to 1")
	}
	if l := c.SlewLimit; !(l > 0 && l <= 1e6) {
		bad("slew_limit", l, "more than 0, and at most 1e6")
	}
	return errors.Join(errs...)
}

func (c *Config) engine(now func() time.Time) causality.Config {
	cfg := causality.Config{
		MaxSpans: c.MaxSpans, MaxClocks: c.MaxClocks, MaxJobs: c.MaxJobs,
		Window: c.Traces.Window, HealthWindow: c.Health.Window, HealthLimit: c.Health.Limit, Now: now,
	}
	if c.Traces.Enabled {
		cfg.MaxPairs = c.Traces.MaxPairs
	}
	return cfg
}
