// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Fault is what became of one culprit, or of one imbalance.
type Fault struct {
	Family string  `json:"family"`
	Class  string  `json:"class"`
	Cause  string  `json:"cause,omitempty"`
	First  int64   `json:"first"`
	Share  float64 `json:"share"` // true cost, share of the step
	// Slowdown is the factor on the culprit's own time, 0 where there is none.
	Slowdown float64 `json:"slowdown,omitempty"`
	// Small: it costs less than must be told.
	Small bool `json:"small"`
	// Unseen: nothing was recorded of whoever is at fault.
	Unseen bool `json:"unseen,omitempty"`
	// Decided: somebody was accused for it, right or wrong. Of an imbalance: it was told,
	// or somebody was accused.
	Decided bool `json:"decided"`
	Who     bool `json:"who"`
	// WithClass and WithOp: who, and the right class, and the right operation as well.
	WithClass bool `json:"with_class"`
	WithOp    bool `json:"with_op"`
	HasOp     bool `json:"has_op"`    // the truth names operations
	Candidate bool `json:"candidate"` // among all that were named or suspected
	// Steps from the fault's first to that in which it was first named rightly (place and
	// class; place alone where the method knows no class); -1 where never.
	Steps int64 `json:"steps"`
	// BlameError is |told - true| share of the step; -1 where no share was told.
	BlameError float64 `json:"blame_error"`
	// BuiltIn: every job of the layout has it, and it counts nowhere.
	BuiltIn bool `json:"built_in,omitempty"`
}

// Asked reports whether silence about it is wrong.
func (f *Fault) Asked() bool { return !f.Small && !f.Unseen }

// Row is one accusation, judged.
type Row struct {
	methods.Accusation `json:"accusation"`
	Emitted            int64  `json:"emitted"` // step
	Accuses            bool   `json:"accuses"`
	Who                bool   `json:"who"`
	WithClass          bool   `json:"with_class"` // as a whole right: what confidence speaks of
	WithOp             bool   `json:"with_op"`
	Victim             bool   `json:"victim"` // accuses somebody else while a culprit is there
	Family             string `json:"family,omitempty"`
}

// Result is what one method made of one job.
type Result struct {
	Faults     []Fault `json:"faults,omitempty"`
	Imbalances []Fault `json:"imbalances,omitempty"`
	Rows       []Row   `json:"rows,omitempty"` // decided only
	// Suspects are those that were not named, and why.
	Suspects []methods.Accusation `json:"-"`
	// Top: the first that is named or, where nobody is, suspected, is a culprit.
	Top bool `json:"top"`
}

// Judge watches one method on one job.
type Judge struct {
	Truth   training.Truth // as Split returns it
	Joint   []bool         // by culprit: its cost is that of several
	Hosts   []string       // by rank
	Classes bool           // the method tells classes
	// Share returns the true cost of a culprit as a share of its steps.
	Share func(*training.Culprit) float64
	Small float64 // share below which silence is right

	emitted map[string]int64 // by accusation: the first step
	right   []int64          // by culprit and then imbalance: the step in which it was first named rightly
}

// Observe takes what is named after a step.
func (j *Judge) Observe(step int64, named []methods.Accusation) {
	if j.emitted == nil {
		j.emitted = map[string]int64{}
		j.right = make([]int64, len(j.Truth.Culprits)+len(j.Truth.Imbalances))
		for i := range j.right {
			j.right[i] = -1
		}
	}
	for i := range named {
		a := &named[i]
		if !a.Decided {
			continue
		}
		if _, ok := j.emitted[a.ID]; !ok {
			j.emitted[a.ID] = step
		}
		for k := range j.Truth.Culprits {
			if m := j.compare(a, &j.Truth.Culprits[k]); j.right[k] < 0 && (m.Class || !j.Classes && m.Who) {
				j.right[k] = step
			}
		}
		for k := range j.Truth.Imbalances {
			if at := len(j.Truth.Culprits) + k; j.right[at] < 0 && j.told(a, &j.Truth.Imbalances[k]) {
				j.right[at] = step
			}
		}
	}
}

// compare adds to Compare that nobody is rightly accused before the fault began.
func (j *Judge) compare(a *methods.Accusation, c *training.Culprit) Match {
	if at, ok := j.emitted[a.ID]; a.Decided && (!ok || at < c.First) {
		return Match{}
	}
	return Compare(a, c, j.Hosts)
}

func (j *Judge) told(a *methods.Accusation, c *training.Culprit) bool {
	at, ok := j.emitted[a.ID]
	return ok && at >= c.First && told(a, c)
}

// Finish judges what is named and suspected in the end, after the step given.
func (j *Judge) Finish(step int64, final []methods.Accusation) Result {
	j.Observe(step, final)
	var res Result
	for i := range final {
		if final[i].Decided {
			res.Rows = append(res.Rows, j.row(&final[i]))
		} else {
			res.Suspects = append(res.Suspects, final[i])
		}
	}
	for k := range j.Truth.Culprits {
		res.Faults = append(res.Faults, j.fault(k, final))
	}
	assign(res.Faults, res.Rows)
	for k := range j.Truth.Imbalances {
		res.Imbalances = append(res.Imbalances, j.imbalance(k, final))
	}
	if len(final) > 0 {
		for k := range j.Truth.Culprits {
			res.Top = res.Top || j.compare(&final[0], &j.Truth.Culprits[k]).Who
		}
	}
	return res
}

func (j *Judge) row(a *methods.Accusation) Row {
	r := Row{Accusation: *a, Emitted: j.emitted[a.ID], Accuses: Accuses(a.Class)}
	if !r.Accuses {
		for k := range j.Truth.Imbalances {
			if c := &j.Truth.Imbalances[k]; j.told(a, c) {
				r.Who, r.WithClass, r.WithOp, r.Family = true, true, true, c.Family
			}
		}
		return r
	}
	for k := range j.Truth.Culprits {
		c := &j.Truth.Culprits[k]
		m := j.compare(a, c)
		if m.Who && !r.Who || m.Class && !r.WithClass {
			r.Family = c.Family
		}
		r.Who, r.WithClass, r.WithOp = r.Who || m.Who, r.WithClass || m.Class, r.WithOp || m.Op
	}
	r.Victim = !r.Who && len(j.Truth.Culprits) > 0
	return r
}

func (j *Judge) begin(c *training.Culprit) Fault {
	share := j.Share(c)
	return Fault{
		Family: c.Family, Class: c.Class, Cause: c.Cause, First: c.First, Share: share, Slowdown: c.Slowdown,
		Small: share < j.Small, Unseen: c.Unseen, HasOp: len(c.Ops) > 0, Steps: -1, BlameError: -1,
	}
}

func (j *Judge) fault(k int, final []methods.Accusation) Fault {
	c := &j.Truth.Culprits[k]
	f := j.begin(c)
	var singly []int64
	for i := range final {
		a := &final[i]
		m := j.compare(a, c)
		f.Candidate = f.Candidate || m.Who || slices.ContainsFunc(a.Candidates, func(r int64) bool { return slices.Contains(c.Ranks, r) })
		if !a.Decided || !m.Who {
			continue
		}
		f.Decided = true
		singly = append(singly, a.Ranks...)
		f.Who = f.Who || c.Class != model.ClassNode || a.Class == model.ClassNode
		f.WithClass, f.WithOp = f.WithClass || m.Class, f.WithOp || m.Op
		if f.BlameError < 0 && a.CostShare.OK && (k >= len(j.Joint) || !j.Joint[k]) {
			f.BlameError = math.Abs(a.CostShare.V - f.Share)
		}
	}
	f.Who = f.Who || covers(singly, c.Ranks)
	if at := j.right[k]; at >= 0 && f.Who {
		f.Steps = max(0, at-c.First)
	}
	return f
}

// covers reports whether each of the ranks was named: a node singly.
func covers(named, ranks []int64) bool {
	return len(ranks) > 0 && !slices.ContainsFunc(ranks, func(r int64) bool { return !slices.Contains(named, r) })
}

// assign counts accusations of others as decisions about the culprits that nobody named,
// one each.
func assign(faults []Fault, rows []Row) {
	for i := range rows {
		if !rows[i].Victim {
			continue
		}
		at := slices.IndexFunc(faults, func(f Fault) bool { return !f.Decided })
		if at < 0 {
			return
		}
		faults[at].Decided = true
	}
}

// imbalance judges one of those: it is told where its class is, and nobody is accused.
// An accusation in a job that has a culprit as well is judged with that one.
func (j *Judge) imbalance(k int, final []methods.Accusation) Fault {
	c := &j.Truth.Imbalances[k]
	f := j.begin(c)
	f.HasOp, f.BuiltIn = false, c.BuiltIn
	if c.BuiltIn { // its cost is not known
		f.Small, f.Share = false, -1
	}
	accused := false
	for i := range final {
		a := &final[i]
		switch {
		case !a.Decided:
		case j.told(a, c):
			f.Who, f.Decided = true, true
			if f.BlameError < 0 && a.CostShare.OK && !c.BuiltIn {
				f.BlameError = math.Abs(a.CostShare.V - f.Share)
			}
		case Accuses(a.Class) && len(j.Truth.Culprits) == 0:
			accused, f.Decided = true, true
		}
	}
	f.Who = f.Who && !accused
	f.WithClass, f.WithOp, f.Candidate = f.Who, f.Who, f.Who
	if at := j.right[len(j.Truth.Culprits)+k]; at >= 0 && f.Who {
		f.Steps = max(0, at-c.First)
	}
	return f
}
