// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Config says what is made of the records of a node's ranks.
type Config struct {
	// Level is the detail of single operations; summaries are of all of them at
	// every level.
	Level ring.Level
	// Kernels says what becomes of what the device ran.
	Kernels Kernels
	// RawGPUClock leaves GPU stamps as they are and names their clock.
	RawGPUClock bool
	// MaxOpenSteps and MaxStepOps bound the memory per rank: steps that are not
	// closed, and operations in one whose times are kept for its split.
	MaxOpenSteps, MaxStepOps int
	// MaxStepBytes bounds what all open steps of a rank take together: beyond, the
	// oldest is closed. One step alone may take more, 2 MiB of times at most.
	MaxStepBytes int
	// BatchOps is the most operations handed on at once.
	BatchOps int
	// StallAfter is for how long an operation is the oldest in flight on its
	// communicator until it is told of, again each StallRepeat.
	StallAfter, StallRepeat time.Duration
	// StateInterval is how often the state of a rank is handed on that stalls, or has had
	// no traffic for StallAfter; 0: never.
	StateInterval time.Duration
	// MembersInterval is how often it is handed on which communicators a rank that has had
	// traffic is a member of; 0: never.
	MembersInterval time.Duration
	// ResumeInterval is how often it is handed on again what a rank has loaded; 0: once.
	ResumeInterval time.Duration
	// StepDeadline is how long a step waits for what is in flight of it after a
	// later one began.
	StepDeadline time.Duration
	// KeepPosition remembers where steps began in the ring, for Rank.Position.
	KeepPosition bool
	Anchor       Anchor
	JobID        string // over what the job says of itself
	JobName      string
}

// Anchor says where steps begin in programs that do not mark them: at every
// Every-th operation of Function on the world communicator. The zero value has
// both found out.
type Anchor struct {
	Function string // as in lockstep.collective.name
	Every    int64
}

// DefaultConfig returns the defaults. A step of 65,536 operations is beyond any
// known job; their times take 2 MiB. 4,096 steps are as many as a lane of the
// default size holds the marks of, each with three scopes: lanes are read one
// after the other, so that all marks of a backlog come before its operations. A
// backlog of 2,000 steps of 64 operations takes 8 MiB, so that 32 MiB bound what
// goes wrong rather than what is in use.
func DefaultConfig() Config {
	return Config{
		Level: ring.LevelCollectives, MaxOpenSteps: 4096, MaxStepOps: 1 << 16, MaxStepBytes: 32 << 20, BatchOps: 4096,
		StallAfter: 2 * time.Second, StallRepeat: 30 * time.Second, StateInterval: 2 * time.Second, StepDeadline: 30 * time.Second,
		ResumeInterval: time.Minute,
	}
}
