// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Parts of the scoreboard.
const (
	partFaults  = "faults" // and healthy jobs, and imbalances
	partCurve   = "curve"
	partWitness = "witness"
	// partLimit is what nobody can tell from what is recorded.
	partLimit = "limit"
	// partRate is of long and healthy jobs.
	partRate = "rate"
)

// task is one job to simulate: one case at one scale with one seed.
type task struct {
	Part      string  `json:"part"`
	Case      string  `json:"case"`
	Family    string  `json:"family"`
	Ranks     int     `json:"job_ranks"`
	Steps     int     `json:"job_steps"`
	Layout    string  `json:"layout"`
	Number    int     `json:"number"` // of the seed
	Seed      uint64  `json:"seed"`
	Severity  float64 `json:"severity"`
	Calibrate bool    `json:"calibrate"`
	// Novel: no case that calibrates has a fault of the nature of this one's.
	Novel bool `json:"novel"`
	// Small is the share of the step below which a fault need not be told.
	Small float64 `json:"small_share"`
	Floor float64 `json:"floor"` // share of culprits that must be decided
	// Curve and X are what is varied, and its value.
	Curve string  `json:"curve,omitempty"`
	X     float64 `json:"x,omitempty"`
	// Row is the witness.
	Row string `json:"witness,omitempty"`

	open func() (simulation, error)
}

// simulation is a job as far as the scoreboard needs one.
type simulation interface {
	Ranks() []model.Rank
	Next() (*simulatedStep, bool)
	// Places returns the truth without what it costs, Truth with it.
	Places() training.Truth
	Truth() training.Truth
}

type simulatedStep struct {
	N       int64
	Seconds float64
	Ops     func(rank int) []model.Op
	// Late reports whether a rank's operations come after the next step's.
	Late func(rank int) bool
}

// held are operations that come late.
type held struct {
	rank int
	ops  []model.Op
}

// outcome is what one method made of one job: one record of the raw output.
type outcome struct {
	*task
	Method      string  `json:"method"`
	StepSeconds float64 `json:"step_seconds"` // mean
	Ops         int64   `json:"ops"`
	// Seconds of wall clock in the method, while other jobs ran beside it.
	Seconds float64 `json:"seconds"`
	// Truth is of the job: what kind of job it is follows from it.
	Culprits int          `json:"culprits"`
	Unequal  int          `json:"imbalances"` // not counting what every job of the layout has
	Result   score.Result `json:"result"`
}

// healthy: there is nothing wrong with the job, and nothing unequal.
func (o *outcome) healthy() bool { return o.Culprits == 0 && o.Unequal == 0 }

// uneven: there is an imbalance, and no culprit.
func (o *outcome) uneven() bool { return o.Culprits == 0 && o.Unequal > 0 }

// contender is one method on one job.
type contender struct {
	about *methods.About
	m     methods.Method
	judge score.Judge
	took  time.Duration
}

// run simulates the job once and feeds every method the same operations.
func (t *task) run(selected []methods.About) ([]outcome, error) {
	job, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("simulate %s, %d ranks, seed %d: %w", t.Case, t.Ranks, t.Seed, err)
	}
	ranks := job.Ranks()
	all := t.begin(selected, ranks, job.Places())
	var lengths lengths
	var ops, last int64
	var late []held
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		lengths = append(lengths, length{step.N, step.Seconds})
		last = step.N
		due := late
		late = nil
		for r := range ranks {
			seen := step.Ops(r)
			if seen == nil {
				continue
			}
			ops += int64(len(seen))
			if step.Late(r) {
				late = append(late, held{r, slices.Clone(seen)})
				continue
			}
			feed(all, r, seen)
		}
		for _, h := range due {
			feed(all, h.rank, h.ops)
		}
		for _, c := range all {
			start := time.Now()
			c.m.Close(step.N)
			named := c.m.Named()
			c.took += time.Since(start)
			c.judge.Observe(step.N, named)
		}
	}
	t.Ranks, t.Steps = len(ranks), len(lengths)
	truth, _ := score.Split(job.Truth())
	var out []outcome
	for _, c := range all {
		start := time.Now()
		final := c.m.End()
		c.took += time.Since(start)
		c.judge.Truth, c.judge.Share = truth, lengths.share
		out = append(out, outcome{
			task: t, Method: c.about.Name, StepSeconds: lengths.mean(math.MinInt64, math.MaxInt64), Ops: ops,
			Seconds: c.took.Seconds(), Culprits: len(truth.Culprits), Unequal: unequal(&truth),
			Result: c.judge.Finish(last, final),
		})
	}
	return out, nil
}

func feed(all []*contender, rank int, ops []model.Op) {
	for _, c := range all {
		start := time.Now()
		c.m.Add(rank, ops)
		c.took += time.Since(start)
	}
}

func (t *task) begin(selected []methods.About, ranks []model.Rank, truth training.Truth) (all []*contender) {
	hosts := make([]string, len(ranks))
	for i := range ranks {
		hosts[i] = ranks[i].HostName
	}
	for i := range selected {
		c := &contender{about: &selected[i], m: selected[i].New()}
		split, joint := score.Split(truth)
		c.judge = score.Judge{Truth: split, Joint: joint, Hosts: hosts, Classes: c.about.Classes, Small: t.Small}
		c.m.Begin(ranks)
		all = append(all, c)
	}
	return all
}

// unequal counts the imbalances that the case brought about.
func unequal(t *training.Truth) (n int) {
	for i := range t.Imbalances {
		n += count(!t.Imbalances[i].BuiltIn)
	}
	return n
}

// lengths are the true lengths of a job's steps.
type lengths []length

type length struct {
	step    int64
	seconds float64
}

// share returns what the culprit costs as a share of its steps.
func (l lengths) share(c *training.Culprit) float64 {
	if m := l.mean(c.First, c.Last); m > 0 {
		return c.Cost / m
	}
	return 0
}

// mean returns the mean length of the steps from first to last, 0 of none.
func (l lengths) mean(first, last int64) float64 {
	n, sum := 0, 0.0
	for _, s := range l {
		if s.step >= first && s.step <= last {
			n++
			sum += s.seconds
		}
	}
	return sum / float64(max(1, n))
}
