// SPDX-License-Identifier: Apache-2.0

package sequenceprocessor

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// Modes of the processor.
const (
	// ModeNumber numbers spans.
	ModeNumber = "number"
	// ModeCount gives the numbers of spans to an extension.
	ModeCount = "count"
)

// Config configures the sequence processor.
type Config struct {
	// Mode is what the processor does.
	Mode string `mapstructure:"mode"`
	// SequenceID names the extension that gets the numbers, with ModeCount.
	SequenceID *component.ID `mapstructure:"sequence"`
	// MaxJobs is the most jobs whose spans are numbered at once, with ModeNumber.
	MaxJobs int `mapstructure:"max_jobs"`

	_ struct{}
}

// defaultMaxJobs is many more than a node has.
const defaultMaxJobs = 1 << 10

func newDefaultConfig() *Config { return &Config{Mode: ModeNumber, MaxJobs: defaultMaxJobs} }

// Validate implements xconfmap.Validator.
func (c *Config) Validate() error {
	var err error
	switch c.Mode {
	case ModeNumber:
		if c.SequenceID != nil {
			err = fmt.Errorf("check sequence: got %s with mode %s; want it with mode %s only", c.SequenceID, ModeNumber, ModeCount)
		}
	case ModeCount:
		if c.SequenceID == nil {
			err = fmt.Errorf("check sequence: got no extension with mode %s; want the name of an extension sequence", ModeCount)
		}
	default:
		err = fmt.Errorf("check mode: got %q; want %s or %s", c.Mode, ModeNumber, ModeCount)
	}
	if c.MaxJobs < 1 {
		err = errors.Join(err, fmt.Errorf("check max_jobs: got %d; want at least 1", c.MaxJobs))
	}
	return err
}
