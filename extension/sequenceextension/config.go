// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// Config configures the sequence extension.
type Config struct {
	// StorageID names the storage extension that keeps what is known over a restart; nil: none does, and what a
	// kill loses is not known.
	StorageID *component.ID `mapstructure:"storage"`
	// Wait is how long missing spans, and those of before a restart, may still arrive.
	Wait time.Duration `mapstructure:"wait"`
	// StepLimit is how long a step without further spans is open.
	StepLimit time.Duration `mapstructure:"step_limit"`
	// StreamLimit is how long a stream without any spans is known.
	StreamLimit time.Duration `mapstructure:"stream_limit"`
	// JobsMove counts gaps as spans that went to another gateway.
	JobsMove bool `mapstructure:"jobs_move"`
	// MaxStreams is the most streams: an agent has one for each of its jobs.
	MaxStreams int `mapstructure:"max_streams"`
	// MaxJobs is the most lives of jobs.
	MaxJobs int `mapstructure:"max_jobs"`
	// MaxOpen is the most pairs of a stream and an open step.
	MaxOpen int `mapstructure:"max_open"`
	// MaxBytes is the most memory that streams take with their open steps, and jobs as much again.
	MaxBytes int `mapstructure:"max_bytes"`

	_ struct{}
}

// leastBytes is room for a stream that has all its ranges, which take some 300 KiB, and for its open steps.
const leastBytes = 1 << 20

// maxRanges bounds the ranges of a stream and of a job.
const maxRanges = 1 << 10

func newDefaultConfig() *Config {
	return &Config{
		Wait:        time.Minute,    // exporters try again every 30 s at the latest
		StepLimit:   time.Hour,      // longer than straggler waits for the ranks of a step, 10 m in gateway.yaml
		StreamLimit: 24 * time.Hour, // an agent may run a job that stands still for a night
		MaxStreams:  1 << 14,
		MaxJobs:     1 << 10,
		MaxOpen:     1 << 17, // 8 open steps of each stream
		MaxBytes:    64 << 20,
	}
}

// Validate implements xconfmap.Validator.
func (c *Config) Validate() error {
	var err error
	for _, f := range []struct {
		name string
		got  time.Duration
	}{{"wait", c.Wait}, {"step_limit", c.StepLimit}, {"stream_limit", c.StreamLimit}} {
		if f.got <= 0 {
			err = errors.Join(err, fmt.Errorf("check %s: got %v; want more than 0", f.name, f.got))
		}
	}
	for _, f := range []struct {
		name       string
		got, least int
	}{{"max_streams", c.MaxStreams, 1}, {"max_jobs", c.MaxJobs, 1}, {"max_open", c.MaxOpen, 1}, {"max_bytes", c.MaxBytes, leastBytes}} {
		if f.got < f.least {
			err = errors.Join(err, fmt.Errorf("check %s: got %d; want at least %d", f.name, f.got, f.least))
		}
	}
	return err
}

func (c *Config) ledger() sequence.Config {
	return sequence.Config{
		Wait: c.Wait, StepLimit: c.StepLimit, StreamLimit: c.StreamLimit, JobsMove: c.JobsMove,
		MaxStreams: c.MaxStreams, MaxJobs: c.MaxJobs, MaxOpen: c.MaxOpen, MaxRanges: maxRanges,
		MaxBytes: c.MaxBytes,
	}
}
