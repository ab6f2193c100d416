// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// judgeEvery is how often a job that stands is judged, and judgeShare the greatest part of the
// time that this may take.
const (
	judgeEvery = time.Second
	judgeShare = 0.1
)

// judgeLive judges a job of which somebody stands for as long as half of its shortest limit:
// what is seen then is confirmed once the limit is over.
func (w *Watch) judgeLive(j *job, now time.Time) {
	standing := w.standing(j, now)
	if standing < w.shortest(j)/2 {
		w.settleTold(j, now)
		return
	}
	if now.Sub(j.judged) < j.pause() {
		return
	}
	ev := w.gather(j, now)
	report := w.judgement(j, &ev, now)
	holding := w.holdupsOf(j, now)
	found := make(map[*episode]bool, len(report.Roots))
	for i := range report.Roots {
		f := &report.Roots[i].Finding
		l := w.look(j, f, standing, now)
		if l.why == "" && holding.explain(f) {
			l.why = "a process is stopped"
		}
		if l.why == "" {
			found[w.tell(j, f, &l, found, now)] = true
			continue
		}
		w.stats.Withheld++
		if e := j.match(f, found); e != nil { // it is there, and stays open
			found[e] = true
		}
	}
	w.missing(j, found, now)
}

// pause is how long a job is not judged after it was.
func (j *job) pause() time.Duration {
	return max(judgeEvery, time.Duration(float64(j.cost)/judgeShare))
}

// judgement runs the analysis, and notes what it costs.
func (w *Watch) judgement(j *job, ev *Evidence, now time.Time) *desync.Report {
	began := time.Now()
	report := w.judge(ev)
	j.judged, j.cost = now, time.Since(began)
	w.stats.Judged++
	s := &report.Stats
	w.stats.Unanalysed += s.StatesRefused + s.OpsDropped + s.GroupsDropped
	return report
}

// standing is for how long the rank of a living process has stood that has stood longest.
func (w *Watch) standing(j *job, now time.Time) (longest time.Duration) {
	for of := range j.living {
		r := j.ranks[of]
		h := r.live(now, &w.cfg)
		switch {
		case h == nil || r.gone:
			delete(j.living, of)
		case h.state.Source == model.StateRAS: // it counts, and says nothing of what is open
			longest = max(longest, now.Sub(h.doneSince))
		default:
			longest = max(longest, h.standing("", now))
		}
	}
	return longest
}

// goesOn: it was heard lately that something was over. That it is heard of is not enough: a
// state that does not count says nothing of the kind.
func (w *Watch) goesOn(r *rank, now time.Time) bool {
	return !r.gone && now.Sub(later(r.worked, r.moved)) <= w.cfg.StateTTL
}

// unsettledFor is for how many times as long as a state counts those are waited for of a rank
// whose clock was set: unless it is set again and again, they count before that.
const unsettledFor = 3

// unsettled: states of it come, and which time they are of is not known yet.
func (w *Watch) unsettled(r *rank, now time.Time) bool {
	return now.Sub(r.unplaced) <= w.cfg.StateTTL && now.Sub(r.news()) <= unsettledFor*w.cfg.StateTTL
}

// blamed are the ranks that a finding is at the cost of, or may be.
func blamed(f *model.Finding) []int64 {
	list := slices.Concat(f.Ranks, f.Candidates)
	if f.Rank.OK {
		list = append(list, f.Rank.V)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// look is what the watch makes of a root.
type look struct {
	blamed []int64
	phase  string // whose limit holds
	limit  time.Duration
	stood  time.Duration
	of     string // byStates or byDumps
	why    string // it is not told; empty: it is
}

// undecidedFor is how much longer the evidence is waited for where it does not decide: two
// states of each rank.
const undecidedFor = 4 * time.Second

// look tells whether a root has stood for the limit of who is blamed, and not moved.
func (w *Watch) look(j *job, f *model.Finding, standing time.Duration, now time.Time) look {
	l := look{blamed: blamed(f), stood: standing, of: byStates}
	if n := w.waited(j, f, now); n > 0 {
		l.stood = n
	}
	inOp := inOperation(f.Class)
	// Where nobody is blamed all are in it, the last of them perhaps since just now.
	stand := l.blamed
	if len(stand) == 0 {
		stand = f.Waiting
	}
	for _, of := range stand {
		r := j.ranks[of]
		if r == nil { // nobody has ever heard of it, nor of the phase that it is in
			w.limitBy(j, &l, phaseUnknown)
			continue
		}
		h := r.live(now, &w.cfg)
		if h == nil {
			switch {
			case w.goesOn(r, now):
				l.why = "goes on"
			case w.unsettled(r, now):
				l.why = "its clock was set"
			}
			continue
		}
		w.limitBy(j, &l, r.phase)
		since, times := h.allSince, h.still
		if inOp {
			since, times = h.doneSince, h.alike
		}
		if r.gone {
			continue
		}
		if times < 2 {
			l.why = "seen once"
		}
		// In a phase that it has come to, or out of, it stands anew, unless it is stuck for so
		// long that no phase explains it.
		if now.Sub(since) < w.cfg.StartLimit {
			since = later(since, r.phaseSince)
		}
		l.stood = min(l.stood, now.Sub(since))
	}
	if l.limit == 0 {
		w.limitBy(j, &l, model.PhaseTrain)
	}
	limit := l.limit
	if f.Class == model.ClassIncompleteEvidence || f.Class == model.ClassDumpMissing {
		limit += undecidedFor
	}
	if l.why == "" && l.stood < limit {
		l.why = "within its limit"
	}
	return l
}

func (w *Watch) limitBy(j *job, l *look, phase string) {
	if phase == "" {
		phase = model.PhaseTrain
	}
	if limit := w.limitOf(j, phase); limit > l.limit {
		l.limit, l.phase = limit, phase
	}
}

// waited is for how long those have stood that wait for a root.
func (w *Watch) waited(j *job, f *model.Finding, now time.Time) (longest time.Duration) {
	for _, of := range slices.Concat(f.Waiting, f.Ranks) {
		if r := j.ranks[of]; r != nil && !r.gone {
			if h := r.live(now, &w.cfg); h != nil {
				longest = max(longest, h.standing("", now))
			}
		}
	}
	return longest
}

// inOperation: who is blamed has entered the operation, so that its host may go on.
func inOperation(class string) bool {
	switch class {
	case model.ClassStalledOp, model.ClassCompletionLag, model.ClassNetwork, model.ClassOrderCycle,
		model.ClassMismatchOp, model.ClassMismatchSize, model.ClassMismatchDType, model.ClassMismatchRoot, model.ClassSplitImbalance:
		return true
	}
	return false
}
