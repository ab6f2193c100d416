// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Config bounds the engine and sets its gates.
type Config struct {
	// Method names stragglers: evidence.MethodLockstep, also where empty, or evidence.MethodKAIR.
	Method string
	// KAIRPlus has evidence.MethodKAIR look at computing only, over ranks that run the same program.
	KAIRPlus bool
	// Deadline is how long an incomplete step waits for its last ranks, counted
	// from when something of it came last.
	Deadline time.Duration
	// Reorder is how long a complete step waits for the steps before it, so that steps are judged in their order
	// though they become complete in another; 0: not at all.
	Reorder time.Duration
	// Window is the number of recent steps that a finding is judged over.
	Window int
	// CleanSteps is how many steps a finding outlives its last confirmation.
	CleanSteps int
	// JudgeEvery is how many steps that come at once pass without a judgement; 0: 16, a quarter of the
	// default window. With 1, findings and their ids do not depend on how many steps come at once.
	JudgeEvery int
	// MaxJobs, MaxOpenSteps, MaxRanks and MaxOpsPerRankStep bound the memory.
	MaxJobs           int
	MaxOpenSteps      int // per job
	MaxRanks          int // per job
	MaxOpsPerRankStep int
	MaxOpenOps        int // per job, over all open steps; one alone may have more, and is counted
	// MaxWindowMembers bounds the members of meetings in the window, per job; the
	// window is shorter where steps have many.
	MaxWindowMembers int
	// MaxMemory bounds the bytes that all jobs hold together, as far as they are estimated: the
	// largest job gives way first. 0 sets no bound.
	MaxMemory int64
	// Brief leaves the notes, the meetings, spans and the histograms of durations out of
	// step reports, for faces that want findings only.
	Brief bool
	// Rhythm keeps the ranks' rhythms of operations: their divergence, and how often each
	// operation occurs.
	Rhythm bool
	// Clock applies estimated clock offsets; off, stamps are compared as they are.
	Clock bool

	// MinCostShare is the effect floor: a rank whose removal would save less
	// than this share of the step is not named.
	MinCostShare float64
	// MinExcessShare is the second effect floor: the excess per step over the
	// peers' own time per step.
	MinExcessShare float64
	// MaxFalseAlarm is the significance gate: the probability, over all ranks,
	// that chance alone made one rank cause the most wait so often.
	MaxFalseAlarm float64
}

// NewDefaultConfig returns the defaults.
//
// MinExcessShare is less than half of the 10 % that Greyhound and MegaScan ask for:
// a device that computes a tenth longer is idle for a third of many steps, and its
// effect is gated by MinCostShare, whose 2 % keep a rank unnamed that nobody would
// mend. MaxFalseAlarm is a probability per window. MaxOpenSteps lets a
// file of 1,024 steps be read rank by rank; MaxOpenOps holds those steps to some
// 200 MB, and MaxWindowMembers the window to less than 1 GB.
func NewDefaultConfig() Config {
	return Config{
		Deadline:          30 * time.Second,
		Window:            64,
		CleanSteps:        16,
		MaxJobs:           64,
		MaxOpenSteps:      1024,
		MaxRanks:          32768,
		MaxOpsPerRankStep: 1 << 20,
		MaxOpenOps:        4 << 20,
		MaxWindowMembers:  1 << 20,
		Rhythm:            true,
		Clock:             true,
		MinCostShare:      0.02,
		MinExcessShare:    0.04,
		MaxFalseAlarm:     0.01,
		Method:            evidence.MethodLockstep,
	}
}

// maxWindow bounds the memory of a window, which is kept for every rank: seatBytes for each
// of its steps, 0.9 GB for 16,384 ranks.
const (
	maxWindow = 1024
	seatBytes = 56
)

// Validate reports the first field that is out of range.
func (c *Config) Validate() error {
	if c.Method != "" && c.Method != evidence.MethodLockstep && c.Method != evidence.MethodKAIR {
		return fmt.Errorf("check method: got %q; want %s or %s", c.Method, evidence.MethodLockstep, evidence.MethodKAIR)
	}
	for _, f := range []struct {
		name string
		got  int
	}{
		{"window", c.Window},
		{"max_jobs", c.MaxJobs},
		{"max_open_steps", c.MaxOpenSteps},
		{"max_ranks", c.MaxRanks},
		{"max_ops_per_rank_step", c.MaxOpsPerRankStep},
		{"max_open_ops", c.MaxOpenOps},
		{"max_window_members", c.MaxWindowMembers},
		{"clean_steps", c.CleanSteps},
	} {
		if f.got < 1 {
			return fmt.Errorf("check %s: got %d; want at least 1", f.name, f.got)
		}
	}
	if c.JudgeEvery < 0 {
		return fmt.Errorf("check judge_every: got %d; want 0 or more", c.JudgeEvery)
	}
	if c.Window > maxWindow {
		return fmt.Errorf("check window: got %d; want at most %d", c.Window, maxWindow)
	}
	if c.MaxMemory < 0 {
		return fmt.Errorf("check max_memory: got %d; want 0 or more", c.MaxMemory)
	}
	if c.Deadline <= 0 {
		return fmt.Errorf("check deadline: got %v; want more than 0", c.Deadline)
	}
	if c.Reorder < 0 || c.Reorder >= c.Deadline {
		return fmt.Errorf("check reorder: got %v; want 0 to less than the deadline, %v", c.Reorder, c.Deadline)
	}
	for _, f := range []struct {
		name string
		got  float64
		zero bool // may be 0
	}{
		{"min_cost_share", c.MinCostShare, true},
		{"min_excess_share", c.MinExcessShare, false},
		{"max_false_alarm", c.MaxFalseAlarm, false},
	} {
		switch {
		case f.zero && !(f.got >= 0 && f.got < 1):
			return fmt.Errorf("check %s: got %v; want 0 to below 1", f.name, f.got)
		case !f.zero && !(f.got > 0 && f.got < 1):
			return fmt.Errorf("check %s: got %v; want more than 0 and below 1", f.name, f.got)
		}
	}
	return nil
}
