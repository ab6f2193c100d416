// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// byCounts judges where there is nothing but what NCCL's RAS counts. Launches tell neither
// what is over nor in what order it came, so that nobody is accused but the dead: who has
// launched less than others, and stands, is a candidate.
func (w *world) byCounts(rep *Report, at int64) {
	rep.Verdict = NoData
	stand, moved := 0, false
	for _, r := range w.ranks {
		stands, moves := r.polled(int64(w.a.cfg.StallAfter))
		if moved = moved || moves; stands {
			stand++
		}
	}
	if moved {
		return
	}
	root, waiting := w.deadByCounts()
	if root.class == "" && stand > 0 {
		root, waiting = w.laggingByCounts()
	}
	if root.class == "" {
		return
	}
	rep.Verdict = Undecided
	if !open(root.class) {
		rep.Verdict = Hang
	}
	rep.Victims = len(waiting)
	f := w.finding(&root, &reach{direct: waiting, all: waiting}, at)
	for _, r := range w.ranks {
		for _, v := range r.votes {
			f.Time = max(f.Time, v.time)
		}
	}
	rep.Roots = []Root{{Finding: f}}
}

// polled compares the first and the last answer about a rank: it stands where they are apart
// and count the same, and moves where they do not.
func (r *rank) polled(apart int64) (stands, moves bool) {
	if len(r.votes) < 2 {
		return false, false
	}
	byTime := func(a, b *view) int { return int(max(-1, min(1, a.time-b.time))) }
	first, last := slices.MinFunc(r.votes, byTime), slices.MaxFunc(r.votes, byTime)
	same := maps.Equal(first.launches(), last.launches())
	return same && last.time-first.time >= apart, !same
}

type countKey struct{ group, fn int32 }

// launches are the numbers of the last launches by communicator and function.
func (v *view) launches() map[countKey]int64 {
	out := map[countKey]int64{}
	for i := range v.comms {
		for _, f := range v.comms[i].fronts {
			out[countKey{v.comms[i].group, f.fn}] = f.enqueued
		}
	}
	return out
}

// lastVote is the newest answer about a rank; nil where there is none.
func (r *rank) lastVote() (last *view) {
	for _, v := range r.votes {
		if last == nil || v.time > last.time {
			last = v
		}
	}
	return last
}

// deadByCounts are the ranks that are known to be dead, and those that answer and share a
// communicator with one: they wait, now or soon.
func (w *world) deadByCounts() (to root, waiting []int32) {
	dead := map[int64]bool{}
	for i, r := range w.ranks {
		if r.process == model.ProcessDead {
			dead[r.id] = true
			to.ranks = append(to.ranks, int32(i))
		}
	}
	for i, r := range w.ranks {
		v := r.lastVote()
		if v == nil || dead[r.id] {
			continue
		}
		if slices.ContainsFunc(v.comms, func(c comm) bool {
			return slices.ContainsFunc(w.a.groups.all[c.group].members, func(m int64) bool { return dead[m] })
		}) {
			waiting = append(waiting, int32(i))
		}
	}
	if len(waiting) == 0 {
		return root{}, nil
	}
	to.class, to.confidence = model.ClassProcessDead, sureOne
	to.notes = []string{"nothing but the counts of RAS is known, which calls dead what it could not reach for a minute: a node that is cut off looks the same"}
	return to, waiting
}

// laggingByCounts are the ranks that have launched fewer operations of some function than
// other members of the communicator, or do not answer, and the others.
func (w *world) laggingByCounts() (to root, waiting []int32) {
	most := map[countKey]int64{}
	last := make([]map[countKey]int64, len(w.ranks))
	for i, r := range w.ranks {
		v := r.lastVote()
		if v == nil {
			continue
		}
		last[i] = v.launches()
		for k, n := range last[i] {
			most[k] = max(n, most[k])
		}
	}
	uneven := false
	for i, r := range w.ranks {
		switch v := r.lastVote(); {
		case v == nil:
			to.candidates = append(to.candidates, int32(i))
		case v.behind(last[i], most):
			uneven = true
			to.candidates = append(to.candidates, int32(i))
		default:
			waiting = append(waiting, int32(i))
		}
	}
	if !uneven {
		return root{}, nil
	}
	to.class, to.confidence = model.ClassIncompleteEvidence, sureAbsent
	to.notes = []string{"nothing but the counts of RAS is known: launches, in which nobody moves"}
	return to, waiting
}

// behind reports whether others have launched more of something on a communicator of this.
func (v *view) behind(mine, most map[countKey]int64) bool {
	for k, n := range most {
		if v.comm(k.group) == nil {
			continue
		}
		if m, ok := mine[k]; !ok || m < n {
			return true
		}
	}
	return false
}
