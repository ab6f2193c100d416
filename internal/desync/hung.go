// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// HabitState says how often a job that ran looked as its states do now.
type HabitState int

// How often it did.
const (
	HabitUnknown HabitState = iota // too little of it is recorded
	HabitRare                      // less often than chance would show it
	HabitSome                      // now and then
	HabitUsual                     // for a good part of its time: such a state says nothing
)

// Habit is how much of its recorded time a job that ran looked as its states do now: others wait
// for one rank where they wait for it.
type Habit struct {
	State HabitState
	Text  string // for people
	// Longest is for how long at a time.
	Longest time.Duration
}

// asks reports whether the history of the job has to tell whether it stood still: nothing tells
// when its states were taken, or what tells it is in doubt.
func (w *world) asks() bool {
	d := &w.a.doubt
	if w.timed() || w.stood.atLeast >= w.a.cfg.StallAfter {
		return false
	}
	return (d.Hung || d.Habit != nil) && (d.TimesLost != "" || d.Why != "")
}

// withoutRunning leaves out what a job that runs shows, too, and with it all else that it shows for
// a moment: who is late in one place for a moment does not stand still in another for long.
func (w *world) withoutRunning(found []root, all string) (kept []root) {
	if !w.asks() {
		return found
	}
	runs := ""
	for _, r := range found {
		why := w.usual(&r)
		if why == "" {
			kept = append(kept, r)
			continue
		}
		w.ran = cmp.Or(w.ran, w.decided(why, all))
		if r.class != model.ClassStalledOp || r.node.group.backend == gloo {
			runs = why
		}
	}
	if runs == "" {
		return kept
	}
	return slices.DeleteFunc(kept, func(r root) bool { return slices.Contains(momentary, r.class) && r.mismatch == nil })
}

// withoutPauses leaves out, where the times of files show how long ranks have waited, what lasts no longer than
// the same did while the job ran.
func (w *world) withoutPauses(found []root) []root {
	d := &w.a.doubt
	if d.Hung || d.Habit == nil || d.Waited <= 0 || w.timed() || w.asks() {
		return found
	}
	pauses := false
	for i := range found {
		r := &found[i]
		if r.class != model.ClassNotScheduled || len(r.ranks) != 1 || w.ranks[r.ranks[0]].held() {
			continue
		}
		h := d.Habit(w.ranks[r.ranks[0]].id, w.nearestFirst(w.reach(r), w.near(r)))
		if h.State == HabitUsual && d.Waited <= h.Longest {
			w.ran = cmp.Or(w.ran, h.Text+"; this time it is no longer than it was then")
			pauses = true
		}
	}
	if !pauses {
		return found
	}
	return slices.DeleteFunc(found, func(r root) bool { return slices.Contains(momentary, r.class) && r.mismatch == nil })
}

// usual says why a root is what a job that runs shows, too; empty where it is not. What the
// history says of it goes to the root.
func (w *world) usual(r *root) string {
	if !w.asks() {
		return ""
	}
	switch {
	case r.class == model.ClassStalledOp && len(r.node.done) > 0, r.class == model.ClassCompletionLag:
		if r.node.group.backend == gloo {
			return w.leftText(r.node)
		}
	case r.class == model.ClassStalledOp && (!w.a.doubt.Hung || r.node.group.backend == gloo):
		return w.joinedText(r.node)
	case (r.class == model.ClassNotScheduled || r.class == model.ClassInitIncomplete) && len(r.ranks) == 1 && !w.ranks[r.ranks[0]].held():
		return w.byHabit(r)
	}
	return ""
}

func (w *world) joinedText(n *node) string {
	return fmt.Sprintf("all %d members have entered %s of %s, and a job that runs shows that at many moments: it is no reason by itself",
		len(n.holders), n.opText(n.key.seq), n.group.label())
}

// leftText says that some are out of an operation of Gloo and some are not.
func (w *world) leftText(n *node) string {
	return fmt.Sprintf("some members are through %s of %s while others are in it: a job that runs shows that for a moment", n.opText(n.key.seq), n.group.label())
}

// byHabit lets the history of the job judge that a rank has not come.
func (w *world) byHabit(r *root) string {
	by := w.reach(r)
	near := w.near(r)
	h := Habit{}
	if w.a.doubt.Habit != nil {
		h = w.a.doubt.Habit(w.ranks[r.ranks[0]].id, w.nearestFirst(by, near))
	}
	usual := h.State == HabitUsual && w.askedFor(r)
	if usual || h.State == HabitUnknown && w.sure(r) < even && !w.a.doubt.Hung {
		return cmp.Or(h.Text, "the dumps record nothing of what the job did before") + "; the Python stack of rank " + number(w.ranks[r.ranks[0]].id) + " (py-spy dump --pid) decides"
	}
	r.weighed = true
	if h.Text != "" {
		r.notes = append(r.notes, h.Text)
	}
	switch {
	case h.State == HabitRare:
		r.confidence = min(r.confidence, sureOne/w.discount())
	case h.State == HabitSome, h.State == HabitUsual:
		r.confidence = min(r.confidence, even/w.discount())
	case w.a.doubt.Hung:
		r.confidence *= untimed
	}
	if h.State == HabitUsual {
		r.notes = append(r.notes, "that the rank is slow does not clear it: NCCL's watchdog writes dumps when an operation has run out")
	}
	r.notes = append(r.notes, w.decidedBy()...)
	w.addOtherEnds(r, near)
	return ""
}

// askedFor reports whether the dumps may have been requested at any moment. Dumps of Gloo always are;
// NCCL's watchdog writes its own when an operation has run out, but only --hung excludes a request.
func (w *world) askedFor(r *root) bool { return r.node.group.backend == gloo || !w.a.doubt.Hung }

// decidedBy says what would show that the job stood still; nothing where a person says it.
func (w *world) decidedBy() []string {
	if lost := w.timesLost(); lost != "" && !w.a.doubt.Hung {
		return []string{lost}
	}
	return nil
}

// discount is what a confidence is multiplied with where nobody says that the job stood still.
func (w *world) discount() float64 {
	if w.a.doubt.Hung {
		return 1
	}
	return untimed
}

// nearestFirst are those that wait for a root, those that are in an operation that lacks it before
// the others.
func (w *world) nearestFirst(by *reach, near map[int32]bool) []int64 {
	out := make([]int64, 0, len(by.all))
	for _, first := range []bool{true, false} {
		for _, v := range by.all {
			if near[v] == first {
				out = append(out, w.ranks[v].id)
			}
		}
	}
	return out
}

// near are the ranks in operations that wait for the root itself, whichever of them is named.
func (w *world) near(r *root) map[int32]bool {
	out, seen := map[int32]bool{}, map[int32]bool{}
	level := slices.Clone(r.vertices)
	for i := 0; i < len(level); i++ {
		for _, from := range w.back[level[i]] {
			switch {
			case w.isRank(from):
				out[from] = true
			case !seen[from] && w.follows(from, level[i]):
				seen[from] = true
				level = append(level, from)
			}
		}
	}
	return out
}

// addOtherEnds adds to a rank of Gloo that does not come who can be the other end of a message
// that it is in, as Gloo records none: whoever waits for it in an operation that is recorded is not.
func (w *world) addOtherEnds(r *root, near map[int32]bool) {
	v := r.ranks[0]
	c := w.ranks[v].view.comm(r.node.key.group)
	ends := []int32{v}
	for i := range w.ranks {
		if !near[int32(i)] && int32(i) != v {
			ends = append(ends, int32(i))
		}
	}
	if c != nil && c.gloo && len(ends) > 1 && len(ends)-1 <= maxConcerned {
		r.candidates = ends
	}
}

// withoutUsual leaves out of what is not decided what a job that runs shows, too. It is asked only
// where all were seen: who was not may be the reason.
func (w *world) withoutUsual(open []root) []root {
	if !w.asks() || !w.allSeen() {
		return open
	}
	return slices.DeleteFunc(open, func(r root) bool {
		why := w.usualOpen(&r)
		w.ran = cmp.Or(w.ran, why)
		return why != ""
	})
}

func (w *world) usualOpen(r *root) string {
	n := r.node
	switch {
	case n == nil || n.message || n.local:
		return ""
	case n.group.backend == gloo && len(n.done) > 0:
		return w.leftText(n)
	case n.group.backend == gloo && len(n.missing) == 0:
		return w.joinedText(n)
	case w.a.doubt.Habit == nil || len(r.candidates) == 0:
		return ""
	}
	late := slices.IndexFunc(r.candidates, func(v int32) bool { return n.holds(v) == nil })
	if late < 0 {
		return ""
	}
	var waiting []int64
	for i := range n.holders {
		waiting = append(waiting, w.ranks[n.holders[i].rank].id)
	}
	if h := w.a.doubt.Habit(w.ranks[r.candidates[late]].id, waiting); h.State == HabitUsual {
		return h.Text
	}
	return ""
}

func (w *world) allSeen() bool {
	return !slices.ContainsFunc(w.ranks, func(r *rank) bool { return r.view == nil }) && !slices.ContainsFunc(w.a.groups.all, w.unlisted)
}

// settleMoved decides between a job that went on and an operation that failed, where the states do
// not tell: operations of Gloo fail where a peer ends, and all were seen, or where they run out, and
// some wait in others that have not.
func (w *world) settleMoved() {
	waits := slices.ContainsFunc(w.nodes, func(n *node) bool { return !n.maybeOver() })
	if w.movedOrFailed != "" && w.asks() && w.allSeen() && waits {
		w.moved = cmp.Or(w.moved, w.movedOrFailed)
	}
}

// hungAllTheSame says of a job that hung, as a person says, that what was seen does not show it. Who
// was not seen is a candidate, where nothing that was seen moved.
func (w *world) hungAllTheSame(rep *Report, at int64) {
	if rep.Verdict == Healthy {
		rep.Verdict, rep.MayRun = Undecided, cmp.Or(w.moved, "nothing that was seen stands still")
	}
	if rep.MayRun == "" || len(rep.Roots) > 0 || len(rep.Absent) == 0 || rep.Ranks == 0 || w.moved+w.mixed != "" {
		return
	}
	to := root{class: model.ClassIncompleteEvidence}
	for i, r := range w.ranks {
		if r.view == nil {
			to.candidates = append(to.candidates, int32(i))
		}
	}
	switch {
	case slices.ContainsFunc(w.a.groups.all, w.unlisted):
		to.notes = []string{unlistedWhy + ": others may be missing, too"}
	case len(to.candidates) == 1:
		to.class, to.confidence = model.ClassDumpMissing, sureAbsent
	}
	rep.Roots = append(rep.Roots, w.say(&to, w.reach(&to), at))
}

// openTimesLost says why what is not decided may be of a job that runs, as nothing tells when its
// states were taken. That a rank has no state on which at least half of the others wait is more than
// that.
func (w *world) openTimesLost(open []root) string {
	if w.a.doubt.Hung {
		return ""
	}
	if w.a.doubt.Habit != nil && w.unseenHoldsUp() {
		open[0].notes = append(slices.Clone(open[0].notes), w.decidedBy()...)
		return ""
	}
	return w.timesLost()
}

func (w *world) unseenHoldsUp() bool {
	awaited := slices.ContainsFunc(w.ranks, func(r *rank) bool { return r.view == nil }) && len(w.awaitedUnseen()) > 0
	return awaited && !w.mostlyDone()
}

// awaitedUnseen are the ranks without a state for which others may wait: members of what is
// open, or any where the members are not known.
func (w *world) awaitedUnseen() map[int32]bool {
	out := map[int32]bool{}
	for _, n := range w.nodes {
		if n.maybeOver() {
			continue
		}
		for _, list := range [][]int32{n.absent, n.unknown, w.hiddenMembers(n)} {
			for _, r := range list {
				if w.ranks[r].view == nil {
					out[r] = true
				}
			}
		}
	}
	return out
}

// likeliest orders candidates: ranks without a state that lack the operation of the root, then others
// without a state for which ranks wait, then those that have not come to what others wait in and wait
// for nothing, then the others. Of members that called something
// different the fewest come first.
func (w *world) likeliest(r *root) []int32 {
	if len(r.candidates) < 2 {
		return r.candidates
	}
	var place func(v int32) int
	switch {
	case len(r.ranks) > 0:
		return r.candidates // as they were added
	case r.mismatch != nil:
		place = w.fewest(r)
	default:
		unseen, first := w.awaitedUnseen(), w.notCome()
		place = func(v int32) int {
			switch {
			case unseen[v] && r.node != nil && r.node.lackedBy(v):
				return 0
			case unseen[v]:
				return 1
			case first[v]:
				return 2
			}
			return 3
		}
	}
	out := slices.Clone(r.candidates)
	slices.SortStableFunc(out, func(x, y int32) int { return cmp.Compare(place(x), place(y)) })
	return out
}

// fewCandidates is how many candidates are listed where a person says that the job hung, and
// somebody without a state is waited for: the first are by far the likeliest.
const fewCandidates = 3

// candidates lists those of a root, and counts them all.
func (w *world) candidates(r *root) (ids []int64, count model.Optional[int64]) {
	all := w.likeliest(r)
	ids, count = w.list(all)
	if w.a.doubt.Hung && len(r.ranks) == 0 && r.mismatch == nil && len(ids) > fewCandidates && w.awaitedUnseen()[all[0]] {
		ids = ids[:fewCandidates]
	}
	return ids, count
}

// notCome are ranks that wait for nothing and have not come to what others wait in.
func (w *world) notCome() map[int32]bool {
	out := map[int32]bool{}
	for _, n := range w.nodes {
		for _, r := range n.missing {
			if !n.maybeOver() && len(w.heads[r]) == 0 {
				out[r] = true
			}
		}
	}
	return out
}

// fewest counts of each rank how many called what it did in the place of a mismatch.
func (w *world) fewest(r *root) func(v int32) int {
	called := map[int32]int32{}
	count := map[int32]int{}
	for _, v := range r.candidates {
		for o := range w.ranks[v].recorded() {
			if o.group == r.node.key.group && o.fn == r.node.key.fn && o.seq == r.seq() && !o.message() {
				called[v] = o.sig
				count[o.sig]++
				break
			}
		}
	}
	return func(v int32) int {
		if sig, ok := called[v]; ok {
			return count[sig]
		}
		return len(r.candidates)
	}
}
