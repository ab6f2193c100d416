// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/lockstep-otel/lockstep/internal/clockstate"
	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// Config configures the timeline extension.
type Config struct {
	// ServerConfig serves the timeline; without an endpoint nothing is served.
	confighttp.ServerConfig `mapstructure:",squash"`

	// Storage keeps the timeline across a restart; nothing keeps it where it is not set.
	Storage *component.ID `mapstructure:"storage"`
	// SaveInterval is how often it is kept, besides at the end.
	SaveInterval time.Duration `mapstructure:"save_interval"`
	// Shared: several collectors have one timeline, and exchange edges and models by Kafka. One of them solves.
	Shared bool `mapstructure:"shared"`
	// SolveInterval is how often what came is solved.
	SolveInterval time.Duration `mapstructure:"solve_interval"`
	// Prefer are clocks in the order in which they are taken as reference.
	Prefer []string `mapstructure:"prefer"`
	// History is how many windows of a clock are kept.
	History int `mapstructure:"history"`
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
	// HostID names the host whose time services are read, as its clocks do.
	HostID string `mapstructure:"host_id"`
	// State is which time services of this host are read.
	State StateConfig `mapstructure:"state"`

	_ struct{}
}

// StateConfig tells which time services are read; none where nothing is set.
type StateConfig struct {
	Chrony *ChronyConfig `mapstructure:"chrony"`
	PTP    *PTPConfig    `mapstructure:"ptp"`

	_ struct{}
}

// ChronyConfig tells how chronyd is asked.
type ChronyConfig struct {
	// Endpoint is chronyd's socket, or host:port.
	Endpoint string        `mapstructure:"endpoint"`
	Interval time.Duration `mapstructure:"interval"`

	_ struct{}
}

// PTPConfig tells how ptp4l is asked.
type PTPConfig struct {
	// Endpoint is ptp4l's socket.
	Endpoint string        `mapstructure:"endpoint"`
	Domain   uint8         `mapstructure:"domain"`
	Interval time.Duration `mapstructure:"interval"`

	_ struct{}
}

const (
	defaultEndpoint = "localhost:13180"
	// defaultSolveInterval is a probe window: each is solved once. Spans do not wait for
	// it.
	defaultSolveInterval = 2 * time.Second
	defaultSaveInterval  = 30 * time.Second
	// defaultStateInterval is how often chronyd asks its servers at its fastest usual pace.
	defaultStateInterval = 16 * time.Second
)

func newDefaultConfig() *Config {
	opt := timeline.DefaultOptions()
	return &Config{
		ServerConfig:   web.DefaultConfig(defaultEndpoint),
		SaveInterval:   defaultSaveInterval,
		SolveInterval:  defaultSolveInterval,
		History:        opt.History,
		MaxClocks:      opt.MaxClocks,
		ForgetAfter:    opt.Forget,
		SkewThreshold:  opt.Skew,
		DriftThreshold: opt.Drift * 1e6,
		SlewLimit:      opt.Slew * 1e6,
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
	check(c.Storage == nil || !c.Shared, "check storage: got %v with shared; want none, since models are in Kafka", c.Storage)
	check(c.SaveInterval > 0, "check save_interval: got %v; want more than 0", c.SaveInterval)
	check(c.SolveInterval > 0, "check solve_interval: got %v; want more than 0", c.SolveInterval)
	check(!slices.Contains(c.Prefer, ""), "check prefer: got an empty name; want names of clocks")
	check(c.History > 0, "check history: got %d; want at least 1", c.History)
	check(c.MaxClocks > 0, "check max_clocks: got %d; want at least 1", c.MaxClocks)
	check(c.ForgetAfter > 0, "check forget_after: got %v; want more than 0", c.ForgetAfter)
	check(c.SkewThreshold > 0, "check skew_threshold: got %v; want more than 0", c.SkewThreshold)
	check(c.DriftThreshold > 0, "check drift_threshold: got %v; want more than 0", c.DriftThreshold)
	check(c.SlewLimit > 0, "check slew_limit: got %v; want more than 0", c.SlewLimit)
	if s := c.State.Chrony; s != nil {
		check(s.Interval >= 0, "check state::chrony::interval: got %v; want 0 or more", s.Interval)
	}
	if s := c.State.PTP; s != nil {
		check(s.Interval >= 0, "check state::ptp::interval: got %v; want 0 or more", s.Interval)
	}
	errs = append(errs, web.CheckConfig(&c.ServerConfig))
	return errors.Join(errs...)
}

func (c *Config) options() timeline.Options {
	return timeline.Options{
		Shared: c.Shared, Prefer: c.Prefer, History: c.History, MaxClocks: c.MaxClocks, Forget: c.ForgetAfter,
		Skew: c.SkewThreshold, Drift: c.DriftThreshold / 1e6, Slew: c.SlewLimit / 1e6,
	}
}

func (c *ChronyConfig) withDefaults() ChronyConfig {
	d := *c
	if d.Endpoint == "" {
		d.Endpoint = clockstate.ChronySocket
	}
	if d.Interval == 0 {
		d.Interval = defaultStateInterval
	}
	return d
}

func (c *PTPConfig) withDefaults() PTPConfig {
	d := *c
	if d.Endpoint == "" {
		d.Endpoint = clockstate.PTPSocket
	}
	if d.Interval == 0 {
		d.Interval = defaultStateInterval
	}
	return d
}
