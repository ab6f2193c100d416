// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// undecided says of whom it cannot be told, and what lacks.
func undecided(a *straggler.Abstention) string {
	who, more := fmt.Sprintf("rank %d", a.Rank), "other ranks that do the same"
	if len(a.Ranks) > 1 {
		who = report.SomeRanks(a.Ranks, len(a.Ranks))
	}
	if a.Gate == "few_steps" {
		more = "more steps"
	}
	text := fmt.Sprintf("%s may slow the job by up to %s, but %s.", who, report.Share(a.CostShare), gateMeaning(a.Gate))
	if a.Gate == "half" { // the other gates ask for at least so much
		return text + fmt.Sprintf(" (Gate half: got %s; want less than %s. What lacks: %s.)", report.Significant(a.Got), report.Significant(a.Want), more)
	}
	return text + lacks(a.Gate, a.Got, a.Want, more)
}

// doubt says who may be a straggler nevertheless; "" where nobody.
func doubt(j *straggler.JobReport) string {
	if a := j.Abstained; a != nil && a.Dear && a.Rank >= 0 && !a.Link && a.Gate == "false_alarm" {
		return fmt.Sprintf("mending rank %d would save %s of the step, but chance may have made it late", a.Rank, report.Share(a.CostShare))
	}
	if r, share := mostAwaited(j); r != nil && (j.Abstained == nil || j.Abstained.Rank != r.Rank) {
		return fmt.Sprintf("rank %d caused %s of all wait, and nothing recorded explains it", r.Rank, report.Share(share))
	}
	return ""
}

// mostAwaited returns the rank that caused most of all wait, where that made each of the others
// wait for so much of the step as would be worth telling of a straggler.
func mostAwaited(j *straggler.JobReport) (of *straggler.RankTotal, share float64) {
	var all time.Duration
	for i := range j.Ranks {
		r := &j.Ranks[i]
		if all += r.WaitCaused; of == nil || r.WaitCaused > of.WaitCaused {
			of = r
		}
	}
	if of == nil || 2*of.WaitCaused <= all || j.Unowed.Want <= 0 {
		return nil, 0
	}
	each := float64(of.WaitCaused) / float64(max(1, len(j.Ranks)-1))
	if each < j.Unowed.Want*float64(j.StepTime) {
		return nil, 0
	}
	return of, float64(of.WaitCaused) / float64(all)
}

// unexplained says what the rank that caused most wait did in the time that it was late by.
func unexplained(j *straggler.JobReport) string {
	r, share := mostAwaited(j)
	if r == nil || (j.Abstained != nil && j.Abstained.Rank == r.Rank) {
		return ""
	}
	text := fmt.Sprintf("rank %d, which caused %s of all wait", r.Rank, report.Share(share))
	what, more := "", time.Duration(0)
	for _, part := range []struct {
		of   func(*straggler.Split) time.Duration
		what string
	}{
		{func(s *straggler.Split) time.Duration { return s.Compute + s.ComputeOverlapped }, "it computed %s per step longer than the median of the others, but its kernels not as much longer than its peers'"},
		{func(s *straggler.Split) time.Duration { return s.LaunchIdle }, "its host had launched nothing for %s per step longer than the median of the others"},
		{func(s *straggler.Split) time.Duration { return s.DependencyIdle }, "its device idled %s per step longer than the median of the others although work had been launched, and what that waited for was not recorded"},
		{func(s *straggler.Split) time.Duration { return s.Copy }, "it copied for %s per step longer than the median of the others"},
	} {
		if d := beyondOthers(j, r, part.of); d > more {
			what, more = fmt.Sprintf(part.what, report.Duration(d)), d
		}
	}
	if what == "" {
		what = "by itself it took no longer than the others, so that it came late for a reason that was not recorded"
	}
	return text + ": " + what
}

// beyondOthers returns by how much a part of the rank's step is longer than the median of the
// other ranks'.
func beyondOthers(j *straggler.JobReport, r *straggler.RankTotal, of func(*straggler.Split) time.Duration) time.Duration {
	var others []time.Duration
	for i := range j.Ranks {
		if o := &j.Ranks[i]; o.Rank != r.Rank {
			others = append(others, perStep(of(&o.Split), o))
		}
	}
	if len(others) == 0 {
		return 0
	}
	slices.Sort(others)
	return perStep(of(&r.Split), r) - stats.MedianHigh(others)
}
