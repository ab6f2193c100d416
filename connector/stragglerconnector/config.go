// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
	"github.com/lockstep-otel/lockstep/internal/stragglerconfig"
)

// Config configures the straggler connector.
type Config struct {
	// Analysis configures the engine.
	Analysis stragglerconfig.Config `mapstructure:",squash"`
	// StorySpans is the most spans of a step's story, the root not counted.
	StorySpans int `mapstructure:"story_spans"`
	// MaxHeldSpans is the most operations held for the stories of open steps.
	MaxHeldSpans int `mapstructure:"max_held_spans"`
	// FlushInterval is how often metrics are sent and deadlines checked.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// RepeatInterval is how often findings that stand are sent again, under the
	// revision they had.
	RepeatInterval time.Duration `mapstructure:"repeat_interval"`
	// MaxSeries is the most series of each metric; what comes later is summed in
	// a series marked otel.metric.overflow.
	MaxSeries int `mapstructure:"max_series"`
	// MaxOperations is the most operations, over all jobs, that the frequency view
	// tells apart.
	MaxOperations int `mapstructure:"max_operations"`
	// SeriesExpiration drops a series that has not changed for so long; 0 keeps all.
	SeriesExpiration time.Duration `mapstructure:"series_expiration"`
	// StorageID names a storage extension that keeps the open findings over a restart; nil: none does.
	StorageID *component.ID `mapstructure:"storage"`
	// SequenceID names an extension that keeps which spans arrived, and learns which steps are concluded; nil: none
	// does.
	SequenceID *component.ID `mapstructure:"sequence"`
	// JobsID names an extension that names jobs which another collector has from now on; nil: none does.
	JobsID *component.ID `mapstructure:"jobs"`

	_ struct{}
}

const (
	// defaultMaxHeldSpans at 0.8 KiB each are 105 MiB, and hold a hundred steps
	// of eight ranks with a hundred collectives each, read rank by rank.
	defaultMaxHeldSpans = 1 << 17
	// defaultMaxSeries is one series for each of 16,384 ranks, in four classes.
	defaultMaxSeries = 1 << 16
	// defaultMaxOperations is ten jobs of a hundred kinds of operation: a training
	// step has some tens.
	defaultMaxOperations = 1 << 10
)

func newDefaultConfig() *Config {
	return &Config{
		Analysis:         stragglerconfig.NewDefaultConfig(),
		StorySpans:       steptrace.DefaultSpans,
		MaxHeldSpans:     defaultMaxHeldSpans,
		FlushInterval:    15 * time.Second, // Prometheus calls a series stale after 5 minutes, and many scrape every 15 s
		RepeatInterval:   2 * time.Minute,  // a fifth of the silence after which the findings connector closes one
		MaxSeries:        defaultMaxSeries,
		MaxOperations:    defaultMaxOperations,
		SeriesExpiration: time.Hour, // longer than a pause between steps, shorter than the life of a finished job matters
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	err := c.Analysis.Validate()
	for _, f := range []struct {
		name string
		got  int
	}{
		{"story_spans", c.StorySpans},
		{"max_held_spans", c.MaxHeldSpans},
		{"max_series", c.MaxSeries},
		{"max_operations", c.MaxOperations},
	} {
		if f.got < 1 {
			err = errors.Join(err, fmt.Errorf("check %s: got %d; want at least 1", f.name, f.got))
		}
	}
	for _, f := range []struct {
		name string
		got  time.Duration
	}{
		{"flush_interval", c.FlushInterval},
		{"repeat_interval", c.RepeatInterval},
	} {
		if f.got <= 0 {
			err = errors.Join(err, fmt.Errorf("check %s: got %v; want more than 0", f.name, f.got))
		}
	}
	if c.SeriesExpiration < 0 {
		err = errors.Join(err, fmt.Errorf("check series_expiration: got %v; want 0 or more", c.SeriesExpiration))
	}
	return err
}
