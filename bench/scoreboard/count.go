// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// tally sums what one method made of several jobs.
type tally struct {
	jobs      int
	steps     int
	rankSteps float64
	floored   float64 // faults (or imbalances) that must be decided
	floor     float64 // the highest of its cases

	// Culprits that cost as much as must be told.
	faults, decided, candidate, who, class, op, hasOp int
	// And those that cost less: left alone, named rightly, and others accused.
	small, smallRight, smallSilent int

	tops, top  int // jobs with a fault that is not small
	faultyJobs int

	accusations, right, place int // of accusing findings: right in place and class, in place
	victims                   int
	told, toldRight           int // findings that accuse nobody

	unseen                          int // faults of which nothing was recorded
	uneven, smallUneven, unevenTold int // imbalances in jobs without culprits

	healthySteps, unevenSteps int
	healthyRankSteps          float64
	falseHealthy, falseUneven int
	falseHealthyJobs, healthy int

	late   []float64 // steps to detect
	blame  []float64
	budget float64 // seconds in the method
	ops    int64
}

func (t *tally) add(o *outcome) {
	t.jobs++
	t.steps += o.Steps
	t.rankSteps += float64(o.Steps) * float64(o.Ranks)
	t.budget += o.Seconds
	t.ops += o.Ops
	t.floor = max(t.floor, o.Floor)
	t.faultyJobs += count(o.Culprits > 0)
	for i := range o.Result.Faults {
		t.fault(&o.Result.Faults[i])
		if o.Result.Faults[i].Asked() {
			t.floored += o.Floor
		}
	}
	if slices.ContainsFunc(o.Result.Faults, func(f score.Fault) bool { return f.Asked() }) {
		t.tops++
		if o.Result.Top {
			t.top++
		}
	}
	t.rows(o)
	if o.uneven() {
		t.imbalances(o)
	}
}

func (t *tally) fault(f *score.Fault) {
	if f.Unseen {
		t.unseen++
		return
	}
	if f.Small {
		t.small++
		switch {
		case f.Who:
			t.smallRight++
		case !f.Decided:
			t.smallSilent++
		}
		return
	}
	t.faults++
	t.decided += count(f.Decided)
	t.candidate += count(f.Candidate)
	t.who += count(f.Who)
	t.class += count(f.WithClass)
	if f.HasOp {
		t.hasOp++
		t.op += count(f.WithOp)
	}
	if f.Steps >= 0 {
		t.late = append(t.late, float64(f.Steps))
	}
	if f.BlameError >= 0 {
		t.blame = append(t.blame, f.BlameError)
	}
}

func (t *tally) rows(o *outcome) {
	accused := 0
	for i := range o.Result.Rows {
		r := &o.Result.Rows[i]
		if !r.Accuses {
			t.told++
			t.toldRight += count(r.WithClass)
			continue
		}
		accused++
		t.accusations++
		t.right += count(r.WithClass)
		t.place += count(r.Who)
		t.victims += count(r.Victim)
	}
	switch {
	case o.healthy():
		t.healthy++
		t.healthySteps += o.Steps
		t.healthyRankSteps += float64(o.Steps) * float64(o.Ranks)
		t.falseHealthy += accused
		t.falseHealthyJobs += min(1, accused)
	case o.uneven():
		t.unevenSteps += o.Steps
		t.falseUneven += accused
	}
}

func (t *tally) imbalances(o *outcome) {
	for i := range o.Result.Imbalances {
		f := &o.Result.Imbalances[i]
		if f.BuiltIn {
			continue
		}
		if f.Small {
			t.smallUneven++
			continue
		}
		t.uneven++
		t.floored += o.Floor
		t.unevenTold += count(f.Who)
	}
}

// floorCell returns the least share that must be decided, told of imbalances, with a
// mark where it is missed.
func (t *tally) floorCell() string {
	n := t.asked()
	switch {
	case n == 0 && t.floor > 0:
		return "n.m."
	case n == 0:
		return "-"
	}
	mark := ""
	if t.missed() {
		mark = "!"
	}
	return fmt.Sprintf("%.0f%s", 100*t.floored/float64(n), mark)
}

// asked returns how many faults, or imbalances where there is none, a floor is of.
func (t *tally) asked() int {
	if t.faults > 0 {
		return t.faults
	}
	return t.uneven
}

// met returns how many of those were decided, or told.
func (t *tally) met() int {
	if t.faults > 0 {
		return t.decided
	}
	return t.unevenTold
}

// missed reports whether fewer than the floor were decided.
func (t *tally) missed() bool { return float64(t.met()) < t.floored-1e-9 }

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// group sums outcomes by a label, in the order in which labels come first.
func group(all []outcome, keep func(*outcome) bool, label func(*outcome) string) (labels []string, by map[string]*tally) {
	by = map[string]*tally{}
	for i := range all {
		o := &all[i]
		if !keep(o) {
			continue
		}
		l := label(o)
		t := by[l]
		if t == nil {
			t = &tally{}
			by[l] = t
			labels = append(labels, l)
		}
		t.add(o)
	}
	return labels, by
}

// of returns the outcomes of one method in one part.
func of(method, part string) func(*outcome) bool {
	return func(o *outcome) bool { return o.Method == method && o.Part == part }
}

// counted keeps the outcomes of a method in which whoever is accused counts: also where
// nothing must be told.
func counted(method string) func(*outcome) bool {
	return func(o *outcome) bool {
		return o.Method == method && (o.Part == partFaults || o.Part == partLimit || o.Part == partRate)
	}
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(n)/float64(of))
}

func rate(n int, per, of float64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", float64(n)*per/of)
}

// quantile returns the q-th quantile of values, which it sorts; "-" of none.
func quantile(values []float64, q float64, format string) string {
	if len(values) == 0 {
		return "-"
	}
	slices.Sort(values)
	return fmt.Sprintf(format, stats.QuantileNearest(values, q))
}

func average(values []float64, format string) string {
	if len(values) == 0 {
		return "-"
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return fmt.Sprintf(format, sum/float64(len(values)))
}

// families lists the families of a part in order, those with culprits first, then the
// imbalances, then the healthy.
func families(all []outcome, part string) (out []string) {
	kind := map[string]int{}
	for i := range all {
		o := &all[i]
		if o.Part != part {
			continue
		}
		if _, ok := kind[o.Family]; !ok {
			out = append(out, o.Family)
		}
		k := 0
		switch {
		case o.healthy():
			k = 2
		case o.uneven():
			k = 1
		}
		kind[o.Family] = k
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(kind[a], kind[b]) })
	return out
}

func present(all []outcome) (out []methods.About) {
	for _, m := range methods.All {
		if slices.ContainsFunc(all, func(o outcome) bool { return o.Method == m.Name }) {
			out = append(out, m)
		}
	}
	return out
}
