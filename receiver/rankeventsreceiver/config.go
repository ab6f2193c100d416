// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Config configures the rank_events receiver.
type Config struct {
	// Directory is where producers make their rings.
	Directory string `mapstructure:"directory"`
	// PollInterval is how often rings are read.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// Level is the detail of single operations: summary, collectives or all.
	Level string `mapstructure:"level"`
	// Record is what ranks are asked to record: a level, "unchanged", or empty
	// for that of Level.
	Record string `mapstructure:"record"`
	// DetailOnStall emits what a ring still holds at level all when one of its
	// operations does not end.
	DetailOnStall bool `mapstructure:"detail_on_stall"`

	// RemoveDead is after how long the ring of a process that ended is removed; 0
	// leaves it.
	RemoveDead time.Duration `mapstructure:"remove_dead"`
	// MaxRings is the most rings open at a time.
	MaxRings int `mapstructure:"max_rings"`
	// MaxOpenSteps is the most steps of one rank held open.
	MaxOpenSteps int `mapstructure:"max_open_steps"`
	// BatchOps is the most operations handed on at once.
	BatchOps int `mapstructure:"batch_ops"`

	// StallAfter is for how long an operation is the oldest in flight on its
	// communicator until it is told of.
	StallAfter time.Duration `mapstructure:"stall_after"`
	// StallRepeat is how often it is told of again.
	StallRepeat time.Duration `mapstructure:"stall_repeat"`
	// StateInterval is how often the state of a rank is told of that stalls, or has had no
	// traffic for stall_after; 0 is never.
	StateInterval time.Duration `mapstructure:"state_interval"`
	// MembersInterval is how often it is told of each rank that works which communicators it is
	// a member of; 0 is never.
	MembersInterval time.Duration `mapstructure:"members_interval"`
	// ResumeInterval is how often it is told again what a rank has said that it loaded; 0 is once.
	ResumeInterval time.Duration `mapstructure:"resume_interval"`
	// StepDeadline is how long a step waits for what is in flight of it.
	StepDeadline time.Duration `mapstructure:"step_deadline"`

	// Kernels is "operations", or "summary", which only folds into their step what the
	// device ran.
	Kernels string `mapstructure:"kernels"`
	// RequestSpans shows steps in the traces of the requests that they work for.
	RequestSpans bool `mapstructure:"request_spans"`

	// GPUClock is "correct", which puts GPU stamps on the host's clock, or "raw".
	GPUClock string `mapstructure:"gpu_clock"`
	// Anchor says where steps begin in programs that do not mark them.
	Anchor AnchorConfig `mapstructure:"anchor"`

	// JobID and JobName name the job over what it says of itself.
	JobID   string `mapstructure:"job_id"`
	JobName string `mapstructure:"job_name"`

	// RetryOnFailure says how long data are offered again that the next component
	// refuses for now.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// StorageID names a storage extension, in which is kept how far rings were read.
	StorageID *component.ID `mapstructure:"storage"`

	deadAfter time.Duration // ring.Options.DeadAfter; tests shorten it

	_ struct{}
}

// AnchorConfig names the operation that begins a step.
type AnchorConfig struct {
	// Function is the collective, as in lockstep.collective.name.
	Function string `mapstructure:"function"`
	// Every is how many of them make a step; 0 has both found out.
	Every int64 `mapstructure:"every"`
}

// anchorFunctions are the collectives that can begin a step.
var anchorFunctions = []string{model.AllReduce, model.AllGather, model.ReduceScatter, model.Broadcast, model.Reduce}

// Values of Record, Kernels and GPUClock.
const (
	kernelOperations = "operations"
	kernelSummary    = "summary"
	recordUnchanged  = "unchanged"
	clockCorrect     = "correct"
	clockRaw         = "raw"
)

var levels = map[string]ring.Level{
	"summary": ring.LevelSummary, "collectives": ring.LevelCollectives, "all": ring.LevelAll,
}

const (
	defaultDirectory = "/run/lockstep"
	// defaultPollInterval: a lane of the default size lasts a second at 16,384
	// records a second, and people look at most some times a second.
	defaultPollInterval = 100 * time.Millisecond
	// defaultMaxRings has room for 256 processes of 64 MiB.
	defaultMaxRings   = 256
	defaultRemoveDead = 10 * time.Minute
	// minDuration keeps a number without a unit, which is nanoseconds, from having
	// a core poll for ever.
	minDuration = time.Millisecond
	// maxMaxRings is as many rings as ring.Discover lists.
	maxMaxRings = 4096
	// maxMaxOpenSteps and maxBatchOps are 16 times the defaults: more would only be
	// more memory.
	maxMaxOpenSteps = 1 << 16
	maxBatchOps     = 1 << 16
)

func newDefaultConfig() *Config {
	engine := rankevents.DefaultConfig()
	retry := configretry.NewDefaultBackOffConfig()
	// Who refuses is mostly the memory limiter beside us, which checks each second.
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 5 * time.Second
	return &Config{
		Directory:      defaultDirectory,
		PollInterval:   defaultPollInterval,
		Level:          "collectives",
		RemoveDead:     defaultRemoveDead,
		MaxRings:       defaultMaxRings,
		MaxOpenSteps:   engine.MaxOpenSteps,
		BatchOps:       engine.BatchOps,
		StallAfter:     engine.StallAfter,
		StallRepeat:    engine.StallRepeat,
		StateInterval:  engine.StateInterval,
		ResumeInterval: engine.ResumeInterval,
		StepDeadline:   engine.StepDeadline,
		Kernels:        kernelOperations,
		RequestSpans:   true,
		GPUClock:       clockCorrect,
		RetryOnFailure: retry,
	}
}

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	errs := []error{
		oneOf("level", c.Level, "summary", "collectives", "all"),
		oneOf("record", c.Record, "", "summary", "collectives", "all", recordUnchanged),
		c.validateRecord(),
		oneOf("kernels", c.Kernels, kernelOperations, kernelSummary),
		oneOf("gpu_clock", c.GPUClock, clockCorrect, clockRaw),
		c.validateAnchor(),
	}
	if c.Directory == "" {
		errs = append(errs, errors.New("check directory: got an empty string; want the directory of the rings"))
	}
	for _, f := range []struct {
		name string
		got  time.Duration
	}{
		{"poll_interval", c.PollInterval},
		{"stall_after", c.StallAfter},
		{"stall_repeat", c.StallRepeat},
		{"step_deadline", c.StepDeadline},
	} {
		if f.got < minDuration {
			errs = append(errs, fmt.Errorf("check %s: got %v; want at least %v, with a unit", f.name, f.got, minDuration))
		}
	}
	for _, f := range []struct {
		name string
		got  time.Duration
	}{{"state_interval", c.StateInterval}, {"members_interval", c.MembersInterval}, {"resume_interval", c.ResumeInterval}} {
		if f.got != 0 && f.got < minDuration {
			errs = append(errs, fmt.Errorf("check %s: got %v; want 0 for never, or at least %v, with a unit", f.name, f.got, minDuration))
		}
	}
	if c.RemoveDead < 0 {
		errs = append(errs, fmt.Errorf("check remove_dead: got %v; want 0 to leave rings, or a time", c.RemoveDead))
	}
	for _, f := range []struct {
		name     string
		got, max int
	}{
		{"max_rings", c.MaxRings, maxMaxRings},
		{"max_open_steps", c.MaxOpenSteps, maxMaxOpenSteps},
		{"batch_ops", c.BatchOps, maxBatchOps},
	} {
		switch {
		case f.got < 1:
			errs = append(errs, fmt.Errorf("check %s: got %d; want at least 1", f.name, f.got))
		case f.got > f.max:
			errs = append(errs, fmt.Errorf("check %s: got %d; want at most %d", f.name, f.got, f.max))
		}
	}
	return errors.Join(errs...)
}

func oneOf(field, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "" })
	return fmt.Errorf("check %s: got %q; want one of %s", field, got, strings.Join(want, ", "))
}

// validateRecord refuses a level that ranks asked for record would never reach.
func (c *Config) validateRecord() error {
	asked, known := levels[c.Record]
	if level := levels[c.Level]; known && asked < level {
		return fmt.Errorf("check record: got %q with level %q; want at least as much as level, or %s", c.Record, c.Level, recordUnchanged)
	}
	return nil
}

func (c *Config) validateAnchor() error {
	switch {
	case c.Anchor.Every < 0:
		return fmt.Errorf("check anchor::every: got %d; want 0 to find it out, or a count", c.Anchor.Every)
	case c.Anchor.Every > 0 && c.Anchor.Function == "":
		return errors.New("check anchor::function: got an empty string with every; want a collective's name, as in all_reduce")
	case c.Anchor.Function != "" && !slices.Contains(anchorFunctions, c.Anchor.Function):
		return fmt.Errorf("check anchor::function: got %q; want one of %s", c.Anchor.Function, strings.Join(anchorFunctions, ", "))
	case c.Anchor.Every == 0 && c.Anchor.Function != "":
		return fmt.Errorf("check anchor::every: got 0 with function %q; want how many of them make a step", c.Anchor.Function)
	}
	return nil
}

// engine returns what the folding of records is told.
func (c *Config) engine() rankevents.Config {
	e := rankevents.DefaultConfig()
	e.Level, e.RawGPUClock = levels[c.Level], c.GPUClock == clockRaw
	if c.Kernels == kernelSummary {
		e.Kernels = rankevents.KernelSummary
	}
	e.MaxOpenSteps, e.BatchOps = c.MaxOpenSteps, c.BatchOps
	e.StallAfter, e.StallRepeat, e.StepDeadline = c.StallAfter, c.StallRepeat, c.StepDeadline
	e.StateInterval, e.MembersInterval, e.ResumeInterval = c.StateInterval, c.MembersInterval, c.ResumeInterval
	e.Anchor = rankevents.Anchor{Function: c.Anchor.Function, Every: c.Anchor.Every}
	e.JobID, e.JobName, e.KeepPosition = c.JobID, c.JobName, c.StorageID != nil
	return e
}

// record returns the level that ranks are asked for; false where they are left
// as they are.
func (c *Config) record() (ring.Level, bool) {
	switch c.Record {
	case recordUnchanged:
		return 0, false
	case "":
		return levels[c.Level], true
	}
	return levels[c.Record], true
}
