// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// gloo is the backend that has no device: an operation leaves its list when the host comes
// out of it, be it that it is over or that it failed, as when a peer died.
const gloo = "gloo"

// failedCalls takes the last operation of a Gloo rank for open where not all members are
// through with it: nobody comes out of it before, except by its failure. So it is where members
// called it with other sizes or types, which none comes out of in order.
func (w *world) failedCalls() {
	least, differ := w.leastThrough(), map[opKey]bool{}
	for _, r := range w.ranks {
		v := r.view
		if v == nil || len(v.open) > 0 || v.partial != "" {
			continue
		}
		last := newestOf(v)
		if last == nil || last.message() || w.a.groups.all[last.group].backend != gloo {
			continue
		}
		if _, known := differ[last.opKey]; !known {
			differ[last.opKey] = w.callsDiffer(last.opKey)
		}
		through, known := least[last.group]
		if differ[last.opKey] || known && last.seq > through && model.Synchronising(w.a.sigs.all[last.sig].Name) {
			failed := *last
			failed.failed = true
			v.open = append(v.open, failed)
			for i := range v.done {
				if &v.done[i] == last {
					v.done = append(v.done[:i], v.done[i+1:]...)
					break
				}
			}
		}
	}
}

// callsDiffer reports whether members called an operation with other names, sizes or types.
func (w *world) callsDiffer(k opKey) bool {
	var calls []call
	g := w.a.groups.all[k.group]
	for _, id := range g.members {
		r := w.index[id]
		if v := w.ranks[r].view; v != nil {
			if o := v.find(k); o != nil {
				calls = append(calls, call{r, &w.a.sigs.all[o.sig], true})
			}
		}
	}
	return w.compare(&node{group: g}, k.seq, calls) != nil
}

// leastThrough is up to where all members of each Gloo communicator are through; none where
// of one there is no state, or can be none. Where nobody at all has anything open, nothing speaks
// for a failure of theirs.
func (w *world) leastThrough() map[int32]int64 {
	waiting := slices.ContainsFunc(w.ranks, func(r *rank) bool { return r.view != nil && len(r.view.open) > 0 })
	dark := slices.ContainsFunc(w.ranks, func(r *rank) bool { return r.view == nil })
	least := map[int32]int64{}
	for g, of := range w.a.groups.all {
		if of.backend != gloo {
			continue
		}
		all, first := none, true
		for _, id := range of.members {
			reached := none
			if v := w.ranks[w.index[id]].view; v != nil {
				reached = v.lastOver(int32(g))
			}
			if first || reached < all {
				all, first = reached, false
			}
		}
		if waiting && (of.inferred && dark || w.unlisted(of)) { // who was not seen may be a member
			all = none
		}
		least[int32(g)] = all
	}
	return least
}

// lastOver is the highest number of a communicator that a rank came out of.
func (v *view) lastOver(group int32) int64 {
	last := none
	for i := range v.done {
		if o := &v.done[i]; o.group == group && !o.message() {
			last = max(last, o.seq)
		}
	}
	return last
}

// maybeOver reports whether nobody has n open but those whose hosts came out of it.
func (n *node) maybeOver() bool {
	return len(n.holders) > 0 && !slices.ContainsFunc(n.holders, func(h holder) bool { return !h.op.failed })
}

// mayHaveFailed reports whether a rank may have come out of its newest operation by a failure.
func (w *world) mayHaveFailed(r *rank, t furthest, group int32) bool {
	last := newestOf(r.view)
	return last != nil && last.group == group && last.seq == t.seq && w.a.groups.all[group].backend == gloo
}
