// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Values of Mode and StartAt.
const (
	modeOnce       = "once"
	modeWatch      = "watch"
	startBeginning = "beginning"
	startEnd       = "end"
)

// Config configures the nccl_inspector receiver.
type Config struct {
	// Include names files, directories and globs of both.
	Include []string `mapstructure:"include"`
	// Exclude holds globs of file names, or of paths where they hold a separator.
	Exclude []string `mapstructure:"exclude"`
	// Mode is "once", which reads what is there and ends, or "watch".
	Mode string `mapstructure:"mode"`
	// PollInterval is how often watch mode reads, and sends metrics.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// StartAt is where files are begun that are there at the start: beginning or end.
	StartAt string `mapstructure:"start_at"`
	// CloseAfter is how long a file does not grow until its process counts as ended.
	CloseAfter time.Duration `mapstructure:"close_after"`
	// StorageID names a storage extension, in which is kept how far files were read.
	StorageID *component.ID `mapstructure:"storage"`

	// JobID and JobName name the job over the folders' names.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`
	// WorldSize is the job's number of ranks; 0 is that of the largest communicator.
	WorldSize int64 `mapstructure:"world_size"`
	// WorldWait is for how long the world communicator is waited for.
	WorldWait time.Duration `mapstructure:"world_wait"`
	// Anchor says where steps begin.
	Anchor AnchorConfig `mapstructure:"anchor"`
	// StepWait is how long a step that is over waits for what is written late.
	StepWait time.Duration `mapstructure:"step_wait"`

	// MaxFiles is the most files read at a time.
	MaxFiles int `mapstructure:"max_files"`
	// MaxLineBytes is the longest line read.
	MaxLineBytes int `mapstructure:"max_line_bytes"`
	// MaxHeld is the most operations of a rank held until their step is over.
	MaxHeld int `mapstructure:"max_held"`
	// MaxSeries is the most series of each metric.
	MaxSeries int `mapstructure:"max_series"`
	// BatchOps is the most operations handed on at once.
	BatchOps int `mapstructure:"batch_ops"`
	// RetryOnFailure says how long operations are offered again that the next
	// component refuses for now.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// AnchorConfig names the operation that begins a step.
type AnchorConfig struct {
	// Function is the collective, as in lockstep.collective.name.
	Function string `mapstructure:"function"`
	// Every is how many of them make a step.
	Every int64 `mapstructure:"every"`
}

// anchorFunctions are the collectives that can begin a step.
var anchorFunctions = []string{model.AllReduce, model.AllGather, model.ReduceScatter, model.Broadcast, model.Reduce}

const (
	defaultPollInterval = time.Second
	// defaultCloseAfter is longer than people have Inspector wait between dumps.
	defaultCloseAfter = 10 * time.Minute
	// defaultMaxFiles has room for a job of 4,096 ranks; each is an open file.
	defaultMaxFiles = 4096
	// defaultMaxLineBytes: a verbose line of 64 channels has 16 KiB; one of a proxy
	// operation with its steps has more.
	defaultMaxLineBytes = 1 << 20
	// minLineBytes has room for the longest line without event traces.
	minLineBytes     = 4096
	defaultMaxSeries = 16384
	defaultBatchOps  = 4096
	minDuration      = time.Millisecond
	maxMaxFiles      = 1 << 16
	maxMaxLineBytes  = 1 << 26
	maxMaxHeld       = 1 << 20
	maxMaxSeries     = 1 << 20
	maxBatchOps      = 1 << 16
)

func newDefaultConfig() *Config {
	engine := inspector.DefaultConfig()
	retry := configretry.NewDefaultBackOffConfig()
	// Who refuses is mostly the memory limiter beside us, which checks each second.
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 5 * time.Second
	return &Config{
		Mode:           modeWatch,
		PollInterval:   defaultPollInterval,
		StartAt:        startBeginning,
		CloseAfter:     defaultCloseAfter,
		WorldWait:      engine.WorldWait,
		StepWait:       engine.StepWait,
		MaxFiles:       defaultMaxFiles,
		MaxLineBytes:   defaultMaxLineBytes,
		MaxHeld:        engine.MaxHeld,
		MaxSeries:      defaultMaxSeries,
		BatchOps:       defaultBatchOps,
		RetryOnFailure: retry,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	return errors.Join(c.validatePaths(), oneOf("mode", c.Mode, modeOnce, modeWatch),
		oneOf("start_at", c.StartAt, startBeginning, startEnd), c.validateMode(), c.validateTimes(), c.validateAnchor(), c.validateNumbers())
}

func oneOf(field, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	return fmt.Errorf("check %s: got %q; want one of %s", field, got, strings.Join(want, ", "))
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
	if c.Mode == modeOnce && c.StartAt == startEnd {
		return fmt.Errorf("check start_at: got %q with mode %q, which would read nothing; want %q", startEnd, modeOnce, startBeginning)
	}
	return nil
}

func (c *Config) validateTimes() error {
	var errs []error
	for _, f := range []struct {
		name       string
		got, least time.Duration
	}{
		{"poll_interval", c.PollInterval, minDuration},
		{"close_after", c.CloseAfter, minDuration},
		{"world_wait", c.WorldWait, 0},
		{"step_wait", c.StepWait, 0},
	} {
		if f.got < f.least {
			errs = append(errs, fmt.Errorf("check %s: got %v; want at least %v, with a unit", f.name, f.got, f.least))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateAnchor() error {
	a := &c.Anchor
	switch {
	case a.Function == "" && a.Every == 0:
		return nil
	case !slices.Contains(anchorFunctions, a.Function):
		return fmt.Errorf("check anchor::function: got %q; want one of %s", a.Function, strings.Join(anchorFunctions, ", "))
	case a.Every < 1:
		return fmt.Errorf("check anchor::every: got %d with function %q; want how many of them make a step", a.Every, a.Function)
	}
	return nil
}

func (c *Config) validateNumbers() error {
	var errs []error
	if c.WorldSize < 0 {
		errs = append(errs, fmt.Errorf("check world_size: got %d; want 0 for unknown, or the number of ranks", c.WorldSize))
	}
	for _, f := range []struct {
		name            string
		got, least, max int
	}{
		{"max_files", c.MaxFiles, 1, maxMaxFiles},
		{"max_line_bytes", c.MaxLineBytes, minLineBytes, maxMaxLineBytes},
		{"max_held", c.MaxHeld, 1, maxMaxHeld},
		{"max_series", c.MaxSeries, 1, maxMaxSeries},
		{"batch_ops", c.BatchOps, 1, maxBatchOps},
	} {
		switch {
		case f.got < f.least:
			errs = append(errs, fmt.Errorf("check %s: got %d; want at least %d", f.name, f.got, f.least))
		case f.got > f.max:
			errs = append(errs, fmt.Errorf("check %s: got %d; want at most %d", f.name, f.got, f.max))
		}
	}
	return errors.Join(errs...)
}

// engine returns what the processes of one file are told.
func (c *Config) engine(path string) inspector.Config {
	return inspector.Config{
		JobID: inspector.JobID(c.JobID, path), JobName: c.JobName, WorldSize: c.WorldSize, WorldWait: c.WorldWait,
		Anchor: inspector.Anchor{Function: c.Anchor.Function, Every: c.Anchor.Every}, StepWait: c.StepWait, MaxHeld: c.MaxHeld,
	}
}
