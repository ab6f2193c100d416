// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/lockstep-otel/lockstep/internal/stragglerconfig"
)

// Config configures the straggler processor.
type Config struct {
	// Analysis configures the engine.
	Analysis stragglerconfig.Config `mapstructure:",squash"`
	// Histograms adds lockstep.summary.histograms to step spans.
	Histograms bool `mapstructure:"histograms"`
	// Hold keeps spans back until their step has been analysed.
	Hold configoptional.Optional[HoldConfig] `mapstructure:"hold"`

	_ struct{}
}

// HoldConfig bounds how long and how many spans are held.
type HoldConfig struct {
	// MaxSpans is the most spans held. Beyond, the oldest step is passed on
	// without annotation.
	MaxSpans int `mapstructure:"max_spans"`
	// FlushInterval is how often deadlines are checked.
	FlushInterval time.Duration `mapstructure:"flush_interval"`

	_ struct{}
}

// defaultHeldSpans at about 1.5 KiB each are 400 MiB, for a job whose ranks
// deliver step by step.
const defaultHeldSpans = 1 << 18

func newDefaultConfig() *Config {
	analysis := stragglerconfig.NewDefaultConfig()
	analysis.Rhythm = false // nothing that is written on spans needs it
	return &Config{
		Analysis:   analysis,
		Histograms: true,
		Hold:       configoptional.Default(HoldConfig{MaxSpans: defaultHeldSpans, FlushInterval: time.Second}),
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	err := c.Analysis.Validate()
	if !c.Hold.HasValue() {
		return err
	}
	hold := c.Hold.Get()
	if hold.MaxSpans < 1 {
		err = errors.Join(err, fmt.Errorf("check hold::max_spans: got %d; want at least 1", hold.MaxSpans))
	}
	if hold.FlushInterval <= 0 {
		err = errors.Join(err, fmt.Errorf("check hold::flush_interval: got %v; want more than 0", hold.FlushInterval))
	}
	return err
}
