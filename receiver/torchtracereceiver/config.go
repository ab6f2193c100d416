// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/kineto"
)

// Modes of reading.
const (
	modeOnce  = "once"
	modeWatch = "watch"
)

// Config configures the torch_trace receiver.
type Config struct {
	// Include names files, directories and globs.
	Include []string `mapstructure:"include"`
	// Exclude holds globs of file names, or of paths where they hold a separator.
	Exclude []string `mapstructure:"exclude"`
	// Mode is "once", which reads what is there and ends, or "watch".
	Mode string `mapstructure:"mode"`
	// PollInterval is how often watch mode looks for new and changed files.
	PollInterval time.Duration `mapstructure:"poll_interval"`

	// JobID and JobName name the job; empty, the trace files' surroundings do.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`
	// RankPattern finds the rank in a file name, StepPattern the step in an
	// annotation; each in its first group.
	RankPattern string `mapstructure:"rank_pattern"`
	StepPattern string `mapstructure:"step_pattern"`
	// WorldSize is the job's number of ranks where its traces do not say; 0 is unknown.
	WorldSize int64 `mapstructure:"world_size"`
	// HostOps emits operations of the host, too.
	HostOps bool `mapstructure:"host_ops"`

	// MaxEventBytes is the longest event read; longer ones are skipped.
	MaxEventBytes int `mapstructure:"max_event_bytes"`
	// MaxEvents is the most events kept of one file.
	MaxEvents int `mapstructure:"max_events"`
	// MaxFileBytes is the largest file read, unpacked.
	MaxFileBytes int64 `mapstructure:"max_file_bytes"`
	// MaxFiles is the most files read, or remembered while watching.
	MaxFiles int `mapstructure:"max_files"`
	// BatchOps is the most operations handed on at once; a step of more is split.
	BatchOps int `mapstructure:"batch_ops"`
	// RetryOnFailure says how long operations are offered again that the next
	// component refuses for now.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

const (
	// defaultPollInterval: a profiler writes a file of some 10 MB in about a
	// second, so two polls at this distance rarely see a pause of the writer.
	defaultPollInterval = 5 * time.Second
	// minEventBytes is what internal/kineto needs to read an ordinary event.
	minEventBytes = 4 << 10
	// defaultMaxFiles has room for 16,384 ranks with four profiled windows each,
	// at about 300 bytes a file.
	defaultMaxFiles = 65536
	// defaultBatchOps keeps one batch to some 20 MB, at about 1 KiB an operation.
	defaultBatchOps = 20000
)

func newDefaultConfig() *Config {
	reader := kineto.DefaultOptions()
	retry := configretry.NewDefaultBackOffConfig()
	// Who refuses is mostly the memory limiter beside us, which checks each second.
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 5 * time.Second
	return &Config{
		Mode:           modeOnce,
		PollInterval:   defaultPollInterval,
		RankPattern:    reader.RankPattern.String(),
		StepPattern:    reader.StepPattern.String(),
		MaxEventBytes:  reader.MaxEventBytes,
		MaxEvents:      reader.MaxEvents,
		MaxFileBytes:   reader.MaxBytes,
		MaxFiles:       defaultMaxFiles,
		BatchOps:       defaultBatchOps,
		RetryOnFailure: retry,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	return errors.Join(
		c.validatePaths(),
		c.validateMode(),
		validatePattern("rank_pattern", c.RankPattern),
		validatePattern("step_pattern", c.StepPattern),
		c.validateNumbers(),
	)
}

func (c *Config) validatePaths() error {
	var errs []error
	if len(c.Include) == 0 {
		errs = append(errs, errors.New("check include: got no entry; want at least one file, directory or glob"))
	}
	for i, pattern := range c.Include {
		if pattern == "" {
			errs = append(errs, fmt.Errorf("check include[%d]: got an empty string; want a file, directory or glob", i))
		}
		errs = append(errs, validateGlob("include", i, pattern))
	}
	for i, pattern := range c.Exclude {
		errs = append(errs, validateGlob("exclude", i, pattern))
	}
	return errors.Join(errs...)
}

func validateGlob(field string, i int, pattern string) error {
	if _, err := filepath.Match(pattern, ""); err != nil {
		return fmt.Errorf("check %s[%d]: got %q; want a glob: %w", field, i, pattern, err)
	}
	return nil
}

func (c *Config) validateMode() error {
	var errs []error
	if c.Mode != modeOnce && c.Mode != modeWatch {
		errs = append(errs, fmt.Errorf("check mode: got %q; want %q or %q", c.Mode, modeOnce, modeWatch))
	}
	if c.PollInterval <= 0 {
		errs = append(errs, fmt.Errorf("check poll_interval: got %v; want more than 0", c.PollInterval))
	}
	return errors.Join(errs...)
}

func validatePattern(field, pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("check %s: got %q; want a regular expression: %w", field, pattern, err)
	}
	if re.NumSubexp() < 1 {
		return fmt.Errorf("check %s: got %q without a group; want the number in the first group, as in %q", field, pattern, `rank(\d+)`)
	}
	return nil
}

func (c *Config) validateNumbers() error {
	var errs []error
	if c.WorldSize < 0 {
		errs = append(errs, fmt.Errorf("check world_size: got %d; want 0 for unknown, or the number of ranks", c.WorldSize))
	}
	for _, f := range []struct {
		name       string
		got, least int64
	}{
		{"max_event_bytes", int64(c.MaxEventBytes), minEventBytes},
		{"max_events", int64(c.MaxEvents), 1},
		{"max_file_bytes", c.MaxFileBytes, 1},
		{"max_files", int64(c.MaxFiles), 1},
		{"batch_ops", int64(c.BatchOps), 1},
	} {
		if f.got < f.least {
			errs = append(errs, fmt.Errorf("check %s: got %d; want at least %d", f.name, f.got, f.least))
		}
	}
	return errors.Join(errs...)
}

// options returns what the reader of trace files is told. The patterns have
// been compiled by Validate; the error is for those who did not call it.
func (c *Config) options() (kineto.Options, error) {
	o := kineto.DefaultOptions()
	var err error
	if o.RankPattern, err = regexp.Compile(c.RankPattern); err != nil {
		return o, fmt.Errorf("compile rank_pattern: %w", err)
	}
	if o.StepPattern, err = regexp.Compile(c.StepPattern); err != nil {
		return o, fmt.Errorf("compile step_pattern: %w", err)
	}
	o.JobID, o.JobName = c.JobID, c.JobName
	o.WorldSize, o.HostOps = c.WorldSize, c.HostOps
	o.MaxEventBytes, o.MaxEvents, o.MaxBytes = c.MaxEventBytes, c.MaxEvents, c.MaxFileBytes
	return o, nil
}
