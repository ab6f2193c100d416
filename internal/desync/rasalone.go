// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// saved says that the states of RAS are answers that a person saved.
type saved struct {
	is, hung  bool
	oneMoment string
}

// SetSaved says that the states of RAS are answers that a person saved, so that one alone is judged
// and not only two in which nothing moves. Answers come newest first. hung: the person knows that the
// job hung. oneMoment is what a report says where no two of them can be compared.
func (a *Analyzer) SetSaved(hung bool, oneMoment string) { a.saved = saved{true, hung, oneMoment} }

// byCounts judges where there is nothing but what NCCL's RAS counts. Launches tell neither what is
// over nor in what order it came. A rank that has launched less than others of a communicator is the
// suspect, unless it is ahead of a rank of another one, for which it may wait itself.
func (w *world) byCounts(rep *Report, at int64) {
	rep.Verdict = NoData
	stood, moved := w.polls()
	if moved && !w.a.saved.is {
		return
	}
	if w.a.saved.is {
		w.countPolled(rep)
	}
	var found []countRoot
	var waiting [][]int32
	if !moved || w.a.saved.hung {
		found, waiting = w.deadByCounts()
	}
	if len(found) == 0 && (stood || w.a.saved.is) {
		found, waiting = w.lagsByCounts(stood)
	}
	if moved && w.countsWentOn() {
		found, waiting = w.ofARunningJob(found, waiting)
	}
	for i := range found {
		by := &reach{direct: waiting[i], all: waiting[i]}
		rep.Roots = append(rep.Roots, w.counted(&found[i], by, at))
		rep.Victims = max(rep.Victims, len(waiting[i]))
	}
	w.countVerdict(rep, found, stood, moved)
}

// countVerdict says what the counts come to.
func (w *world) countVerdict(rep *Report, found []countRoot, stood, moved bool) {
	s := w.a.saved
	decided := slices.ContainsFunc(found, func(r countRoot) bool { return !open(r.class) })
	sure := slices.ContainsFunc(found, func(r countRoot) bool { return certain(&r) })
	switch {
	case len(found) == 0 && !s.is:
	case len(found) == 0 && moved && s.hung && len(w.lags()) > 0:
		rep.Verdict, rep.MayRun = Undecided, "the job went on between two answers of NCCL's RAS: one more, some seconds later, decides"
	case len(found) == 0 && moved:
		rep.Verdict = Healthy
	case len(found) == 0:
		rep.Verdict, rep.MayRun = Undecided, "all ranks that answered NCCL's RAS have launched the same operations, and RAS does not count what has ended: "+
			"if the job hangs, dumps of the Flight Recorder or stacks (py-spy dump) decide"
	case decided && (sure || stood || s.hung):
		rep.Verdict = Hang
	case s.is && !stood && !s.hung && moved:
		rep.Verdict, rep.MayRun = Undecided, "the job went on between two answers of NCCL's RAS: one more, some seconds later, decides"
	case s.is && !stood && !s.hung:
		rep.Verdict, rep.MayRun = Undecided, s.oneMoment
	default:
		rep.Verdict = Undecided
	}
}

// certain reports whether a root shows in one answer.
func certain(r *countRoot) bool {
	return r.class == model.ClassProcessDead || r.class == model.ClassMismatchOp
}

// countPolled counts the ranks that answered as known.
func (w *world) countPolled(rep *Report) {
	answered := map[int64]bool{}
	for _, r := range w.ranks {
		if len(r.votes) > 0 {
			answered[r.id] = true
		}
	}
	rep.Ranks = len(answered)
	rep.Absent = slices.DeleteFunc(rep.Absent, func(b model.Absence) bool {
		_, asked := w.a.absent[b.Rank] // text leaves out what does not differ
		return answered[b.Rank] || !asked
	})
}

// SavedApart is how far two saved answers are apart at least that show that nothing moves: more than
// one question takes, and than a step of most jobs.
const SavedApart = 5 * time.Second

// polls compares answers: some rank stood in two that are far enough apart, or one moved.
func (w *world) polls() (stood, moved bool) {
	for _, r := range w.ranks {
		stands, moves := r.polled(w.a)
		stood, moved = stood || stands, moved || moves
	}
	return stood && !moved, moved
}

// polled compares two answers about a rank: the first and the last, of saved ones the last two that
// are apart. It stands where they are apart and count the same, and moves where they do not.
func (r *rank) polled(a *Analyzer) (stands, moves bool) {
	if len(r.votes) < 2 {
		return false, false
	}
	byTime := func(a, b *view) int { return int(max(-1, min(1, a.time-b.time))) }
	last := slices.MaxFunc(r.votes, byTime)
	if !a.saved.is {
		first := slices.MinFunc(r.votes, byTime)
		same := first.countsAs(last)
		return same && last.time-first.time >= int64(a.cfg.StallAfter), !same
	}
	before := r.before(last)
	if before == nil {
		return false, slices.ContainsFunc(r.votes, func(v *view) bool { return !v.countsAs(last) })
	}
	same := before.countsAs(last)
	return same, !same
}

type countKey struct{ group, fn int32 }

// launched is how many operations of a function a rank has launched, where that is known.
func (v *view) launched(k countKey) (n int64, known bool) {
	c := v.comm(k.group)
	if c == nil {
		return 0, false
	}
	switch f := c.front(k.fn, false); {
	case f != nil && f.enqueued != none:
		return f.enqueued + 1, true
	case f != nil, !v.onlyActive: // prose leaves out what does not differ
		return 0, true
	}
	return 0, false
}

// countsAs reports whether another answer counts the same, as far as both say it.
func (v *view) countsAs(o *view) bool {
	for _, list := range []*view{v, o} {
		for i := range list.comms {
			for _, f := range list.comms[i].fronts {
				k := countKey{list.comms[i].group, f.fn}
				a, known := v.launched(k)
				if b, also := o.launched(k); known && also && a != b {
					return false
				}
			}
		}
	}
	return true
}

// lastVote is the newest answer about a rank, of two at once the one that says more; nil where there
// is none.
func (r *rank) lastVote() (last *view) {
	for _, v := range r.votes {
		if last == nil || v.time > last.time || v.time == last.time && last.onlyActive && !v.onlyActive {
			last = v
		}
	}
	return last
}

// deadByCounts are the ranks that are known to be dead, and those that answer and share a
// communicator with one: they wait, now or soon.
func (w *world) deadByCounts() (found []countRoot, waiting [][]int32) {
	var to countRoot
	dead := map[int64]bool{}
	for i, r := range w.ranks {
		if r.process == model.ProcessDead {
			dead[r.id] = true
			to.ranks = append(to.ranks, int32(i))
		}
	}
	var victims []int32
	for i, r := range w.ranks {
		v := r.lastVote()
		if v == nil || dead[r.id] {
			continue
		}
		if slices.ContainsFunc(v.comms, func(c comm) bool {
			return slices.ContainsFunc(w.a.groups.all[c.group].members, func(m int64) bool { return dead[m] })
		}) {
			victims = append(victims, int32(i))
		}
	}
	if len(to.ranks) == 0 || len(victims) == 0 && !w.a.saved.is { // a saved text does not list who answers
		return nil, nil
	}
	to.class, to.confidence = model.ClassProcessDead, sureOne
	to.notes = []string{"nothing but the counts of RAS is known, which calls dead what it could not reach for a minute: a node that is cut off looks the same"}
	to.group = none32
	return []countRoot{to}, [][]int32{victims}
}

// spread says how many members of a communicator have launched how much of a function.
func (w *world) spread(lag *lag, fn int32) string {
	type part struct {
		n     int64
		ranks []int64
	}
	var parts []part
	for _, m := range lag.members {
		n, known := m.view.launched(countKey{lag.group, fn})
		if !known {
			continue
		}
		k := slices.IndexFunc(parts, func(p part) bool { return p.n == n })
		if k < 0 {
			k = len(parts)
			parts = append(parts, part{n: n})
		}
		parts[k].ranks = append(parts[k].ranks, w.numberIn(m.rank, lag.group))
	}
	slices.SortFunc(parts, func(a, b part) int { return len(b.ranks) - len(a.ranks) })
	var text strings.Builder
	text.WriteString(ncclName(w.a.names.texts[fn]) + ": ")
	for i, p := range parts[:min(len(parts), maxSpread)] {
		who := ranksText(sorted(p.ranks))
		if i == 0 && len(p.ranks) > 1 {
			who = fmt.Sprintf("%d ranks", len(p.ranks))
		}
		verb := " "
		if i == 0 {
			verb = " launched "
		} else {
			text.WriteString(", ")
		}
		text.WriteString(who + verb + number(p.n))
	}
	return text.String()
}

// maxSpread bounds the counts of one function that are spelled out.
const maxSpread = 4

func sorted(list []int64) []int64 {
	slices.Sort(list)
	return list
}

// numberIn is the global rank, or where there are none the rank in the communicator.
func (w *world) numberIn(v, group int32) int64 {
	r := w.ranks[v]
	if last := r.lastVote(); w.a.job.Unnumbered && last != nil {
		if c := last.comm(group); c != nil && c.place != none {
			return c.place
		}
	}
	return r.id
}
