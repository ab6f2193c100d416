package straggler

import (
	"fmt"
	"time"
)

// Config bounds the engine and sets its gates.
type Config struct {
	// Deadline is how long an incomplete step waits for its last ranks, counted
	// from when something of it came last.
	Deadline time.Duration
	// Window is the number of recent steps that a finding is judged over.
	Window int
	// CleanSteps is how many steps a finding outlives its last confirmation.
	CleanSteps int
	// MaxJobs, MaxOpenSteps, MaxRanks and MaxOpsPerRankStep bound the memory.
	MaxJobs           int
	MaxOpenSteps      int // per job
	MaxRanks          int // per job
	MaxOpsPerRankStep int
	MaxOpenOps        int // per job, over all open steps
	// MaxWindowMembers bounds the members of meetings in the window, per job; the
	// window is shorter where steps have many.
	MaxWindowMembers int
	// Clock applies estimated clock offsets; off, stamps are compared as they are.
	Clock bool

	// MinCostShare is the effect floor: a rank whose removal would save less
	// than this share of the step is not named.
	MinCostShare float64
	// MinExcessShare is the second effect floor: the rank's excess per step over
	// its peers' own time per step.
	MinExcessShare float64
	// MaxFalseAlarm is the significance gate: the probability, over all ranks,
	// that chance alone made one rank cause the most wait so often.
	MaxFalseAlarm float64
}

// NewDefaultConfig returns the defaults.
//
// MinExcessShare is the 10 % that Greyhound and MegaScan use for compute;
// MinCostShare 2 % keeps a rank unnamed that nobody would mend; MaxFalseAlarm
// 1 % with five steps and eight ranks needs four of them. MaxOpenSteps lets a
// file of 1,024 steps be read rank by rank; MaxOpenOps holds those steps to some
// 200 MB, and MaxWindowMembers the window to as much.
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
		Clock:             true,
		MinCostShare:      0.02,
		MinExcessShare:    0.10,
		MaxFalseAlarm:     0.01,
	}
}

// Validate reports the first field that is out of range.
func (c *Config) Validate() error {
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
	if c.Deadline <= 0 {
		return fmt.Errorf("check deadline: got %v; want more than 0", c.Deadline)
	}
	for _, f := range []struct {
		name string
		got  float64
	}{
		{"min_cost_share", c.MinCostShare},
		{"min_excess_share", c.MinExcessShare},
		{"max_false_alarm", c.MaxFalseAlarm},
	} {
		if !(f.got >= 0 && f.got < 1) {
			return fmt.Errorf("check %s: got %v; want 0 to below 1", f.name, f.got)
		}
	}
	return nil
}
