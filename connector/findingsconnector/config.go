// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/incident"
)

// Config configures the findings connector.
type Config struct {
	// MaxOpenFindings is the most findings held open, and again the most closed
	// ones that are remembered.
	MaxOpenFindings int `mapstructure:"max_open_findings"`
	// CleanSteps closes a finding when findings of its kind and job have
	// advanced this many steps beyond its last one.
	CleanSteps int64 `mapstructure:"clean_steps"`
	// CloseAfter closes a finding of which nothing was heard for so long.
	CloseAfter time.Duration `mapstructure:"close_after"`
	// FlushInterval is how often metrics are repeated and findings checked for
	// their end. Metrics are also sent when they change.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// MaxSeries is the most series of lockstep.findings; what comes later is
	// summed in a series marked otel.metric.overflow.
	MaxSeries int `mapstructure:"max_series"`
	// SeriesExpiration drops a series that has not changed for so long; 0 keeps all.
	SeriesExpiration time.Duration `mapstructure:"series_expiration"`
	// StorageID names a storage extension that keeps the findings over a restart; nil: none does.
	StorageID *component.ID `mapstructure:"storage"`
	// JobsID names an extension that names jobs which another collector has from now on; nil: none does.
	JobsID *component.ID `mapstructure:"jobs"`

	_ struct{}
}

// defaultMaxSeries has room for 64 jobs with 5 classes, 3 states and one
// severity each.
const defaultMaxSeries = 1000

func newDefaultConfig() *Config {
	engine := incident.NewDefaultConfig()
	return &Config{
		MaxOpenFindings:  engine.MaxOpen,
		CleanSteps:       engine.CleanSteps,
		CloseAfter:       engine.CloseAfter,
		FlushInterval:    15 * time.Second, // Prometheus calls a series stale after 5 minutes, and many scrape every 15 s
		MaxSeries:        defaultMaxSeries,
		SeriesExpiration: 24 * time.Hour, // a day shows what happened over night
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	engine := c.engine()
	err := engine.Validate()
	if c.FlushInterval <= 0 {
		err = errors.Join(err, fmt.Errorf("check flush_interval: got %v; want more than 0", c.FlushInterval))
	}
	if c.MaxSeries < 1 {
		err = errors.Join(err, fmt.Errorf("check max_series: got %d; want at least 1", c.MaxSeries))
	}
	if c.SeriesExpiration < 0 {
		err = errors.Join(err, fmt.Errorf("check series_expiration: got %v; want 0 or more", c.SeriesExpiration))
	}
	return err
}

func (c *Config) engine() incident.Config {
	e := incident.NewDefaultConfig()
	e.MaxOpen, e.CleanSteps, e.CloseAfter = c.MaxOpenFindings, c.CleanSteps, c.CloseAfter
	return e
}
