// SPDX-License-Identifier: Apache-2.0

// Package stragglerconfig owns how the straggler engine is configured, for both
// of its faces alike.
package stragglerconfig

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Config is straggler.Config under the keys that users write.
type Config struct {
	// Method names stragglers: lockstep, or kair, the published statistics.
	Method string `mapstructure:"method"`
	// Deadline is how long an incomplete step waits for its last ranks.
	Deadline time.Duration `mapstructure:"deadline"`
	// Reorder is how long a complete step waits for the steps before it.
	Reorder time.Duration `mapstructure:"reorder"`
	// Window is the number of recent steps that a finding is judged over.
	Window int `mapstructure:"window"`
	// CleanSteps is how many steps a finding outlives its last confirmation.
	CleanSteps int `mapstructure:"clean_steps"`
	// Clock applies estimated clock offsets; off, stamps are compared as they are.
	Clock bool `mapstructure:"clock"`

	// Rhythm keeps the ranks' rhythms of operations: their divergence, and how often
	// each operation occurs over a step.
	Rhythm bool `mapstructure:"rhythm"`

	MaxJobs           int `mapstructure:"max_jobs"`
	MaxOpenSteps      int `mapstructure:"max_open_steps"`
	MaxRanks          int `mapstructure:"max_ranks"`
	MaxOpsPerRankStep int `mapstructure:"max_ops_per_rank_step"`
	MaxOpenOps        int `mapstructure:"max_open_ops"`
	MaxWindowMembers  int `mapstructure:"max_window_members"`
	// MaxMemoryMiB bounds what all jobs hold, in MiB; 0 takes a quarter of the memory that the
	// process may use.
	MaxMemoryMiB int `mapstructure:"max_memory_mib"`

	MinCostShare   float64 `mapstructure:"min_cost_share"`
	MinExcessShare float64 `mapstructure:"min_excess_share"`
	MaxFalseAlarm  float64 `mapstructure:"max_false_alarm"`

	_ struct{}
}

// NewDefaultConfig returns the engine's defaults.
func NewDefaultConfig() Config {
	d := straggler.NewDefaultConfig()
	return Config{
		Method: d.Method, Deadline: d.Deadline, Reorder: d.Reorder, Window: d.Window, CleanSteps: d.CleanSteps, Clock: d.Clock, Rhythm: d.Rhythm,
		MaxJobs: d.MaxJobs, MaxOpenSteps: d.MaxOpenSteps, MaxRanks: d.MaxRanks,
		MaxOpsPerRankStep: d.MaxOpsPerRankStep, MaxOpenOps: d.MaxOpenOps, MaxWindowMembers: d.MaxWindowMembers,
		MinCostShare: d.MinCostShare, MinExcessShare: d.MinExcessShare, MaxFalseAlarm: d.MaxFalseAlarm,
	}
}

// Engine returns the engine's configuration.
func (c *Config) Engine() straggler.Config {
	return straggler.Config{
		Method: c.Method, Deadline: c.Deadline, Reorder: c.Reorder, Window: c.Window, CleanSteps: c.CleanSteps, Clock: c.Clock, Rhythm: c.Rhythm,
		MaxJobs: c.MaxJobs, MaxOpenSteps: c.MaxOpenSteps, MaxRanks: c.MaxRanks,
		MaxOpsPerRankStep: c.MaxOpsPerRankStep, MaxOpenOps: c.MaxOpenOps, MaxWindowMembers: c.MaxWindowMembers, MaxMemory: c.maxMemory(),
		MinCostShare: c.MinCostShare, MinExcessShare: c.MinExcessShare, MaxFalseAlarm: c.MaxFalseAlarm,
		// Two gateways that receive one job give its findings equal ids, however their input is batched.
		JudgeEvery: 1,
	}
}

// share is which part of the process's memory an analysis takes by default: with what else a
// gateway holds, and the garbage between two collections, it stays below the 55 % at which its
// memory_limiter begins to refuse.
const share = 4

func (c *Config) maxMemory() int64 {
	if c.MaxMemoryMiB == 0 {
		return bounded.Memory() / share
	}
	return int64(c.MaxMemoryMiB) << 20
}

// Validate reports the first field that is out of range.
func (c *Config) Validate() error {
	if c.MaxMemoryMiB < 0 || c.MaxMemoryMiB > bounded.MaxMiB {
		return fmt.Errorf("check max_memory_mib: got %d; want 0 to %d", c.MaxMemoryMiB, bounded.MaxMiB)
	}
	engine := c.Engine()
	return engine.Validate()
}
