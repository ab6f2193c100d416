// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// Config are the limits of a watch.
type Config struct {
	Analysis desync.Config
	// Factor times the 99.9th percentile of the gaps of a phase is its stall limit, at least
	// Floor. MinGaps is how many gaps must be known for that.
	Factor  float64
	Floor   time.Duration
	MinGaps int
	// StartLimit is the limit of a phase of which too few gaps are known, HeldLimit that of a
	// rank at a breakpoint, and the greatest of a process that is stopped.
	StartLimit, HeldLimit time.Duration
	// StateTTL is for how long the state of a living rank counts after it has come.
	StateTTL time.Duration
	// DumpWait is how long dumps of further ranks are waited for after the last came.
	DumpWait time.Duration
	// Forget is for how long nothing is heard of what was told until it is given up, and of a
	// job until it is.
	Forget time.Duration
	// MaxJobs, MaxRanks and MaxComms bound the jobs, the ranks of each and the communicators
	// of each rank that are followed; MaxWitnesses the facts of others that are held.
	MaxJobs, MaxRanks, MaxComms, MaxWitnesses int
	// MaxBytes bounds what all jobs hold together: of too much the first job is given up that holds more than
	// all that began after it.
	MaxBytes int
}

// NewDefaultConfig returns the defaults.
func NewDefaultConfig() Config {
	analysis := desync.NewDefaultConfig()
	return Config{
		Analysis: analysis,
		Factor:   10,              // a pause ten times as long as one in a thousand is none of the job's rhythm
		Floor:    2 * time.Second, // below it, states of ranks have not come
		MinGaps:  200,             // of 4 ranks with one communicator, 50 operations each
		// As long as NCCL's own timeout: before, its user has not called it a hang either.
		StartLimit: 10 * time.Minute, HeldLimit: 10 * time.Minute,
		StateTTL: 10 * time.Second, // five states are sent meanwhile
		DumpWait: 10 * time.Second, // a rank writes its dump within a second of the first
		Forget:   10 * time.Minute,
		MaxJobs:  64, MaxRanks: analysis.MaxRanks,
		MaxComms:     256, // a rank of a large mixture-of-experts job has some tens
		MaxWitnesses: 1024,
		MaxBytes:     512 << 20, // 16,384 ranks with 13 communicators and 30 operations each
	}
}

// MinBytes is the least MaxBytes: a job of some tens of ranks.
const MinBytes = 1 << 20

// Validate reports every field that is out of range.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		ok   bool
		got  any
		want string
	}{
		{"limit_factor", c.Factor >= 1, c.Factor, "at least 1"},
		{"limit_floor", c.Floor >= time.Second, c.Floor, "at least 1s"},
		{"min_gaps", c.MinGaps >= 1, c.MinGaps, "at least 1"},
		{"start_limit", c.StartLimit >= c.Floor, c.StartLimit, "at least limit_floor"},
		{"held_limit", c.HeldLimit >= c.Floor, c.HeldLimit, "at least limit_floor"},
		{"state_ttl", c.StateTTL >= time.Second, c.StateTTL, "at least 1s"},
		{"dump_wait", c.DumpWait > 0, c.DumpWait, "more than 0"},
		{"forget", c.Forget > c.StateTTL, c.Forget, "more than state_ttl"},
		{"max_jobs", c.MaxJobs >= 1, c.MaxJobs, "at least 1"},
		{"max_ranks", c.MaxRanks >= 1, c.MaxRanks, "at least 1"},
		{"max_comms", c.MaxComms >= 1, c.MaxComms, "at least 1"},
		{"max_witnesses", c.MaxWitnesses >= 1, c.MaxWitnesses, "at least 1"},
		{"max_bytes", c.MaxBytes >= MinBytes, c.MaxBytes, fmt.Sprintf("at least %d", MinBytes)},
	} {
		if !f.ok {
			errs = append(errs, fmt.Errorf("check %s: got %v; want %s", f.name, f.got, f.want))
		}
	}
	return errors.Join(errs...)
}

// Stats count what was taken, and what was not and why.
type Stats struct {
	States, Dumps, Absences, Opens, Ops, Witnesses int64
	// StatesLate were older than the one known; StatesOfTwins of a second process that says it
	// is a rank which another has.
	StatesLate, StatesOfTwins int64
	// TimesAhead are operations and states of a time that has not been yet, left out.
	TimesAhead int64
	// StatesForeign came from a source that is not known.
	StatesForeign int64
	// JobsEvicted, RanksRefused, CommsRefused, OpensDropped and WitnessesDropped found no room, by
	// number or by bytes.
	JobsEvicted, RanksRefused, CommsRefused, OpensDropped, WitnessesDropped int64
	// GapsHurried were filed before it was known which phase they were in.
	GapsHurried int64
	// Judged counts judgements, Told findings opened, Withheld roots that were not told
	// because they had moved, or not stood for their limit, each time they were found.
	Judged, Told, Withheld int64
	// Bytes is what all jobs hold now, by estimate.
	Bytes int64
	// Unanalysed are states, operations and communicators for which the analysis had no room.
	Unanalysed int64
}
