// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	// maxAhead is by how many operations of any kind a member can be ahead of another: what a
	// peer has not come to take waits in buffers, of which NCCL has 8 steps (NCCL_STEPS) for each
	// of at most 64 channels (MAXCHANNELS), and an operation takes at least one.
	maxAhead = 8 * 64
	// maxNamers bounds the ranks that are asked for the names of operations of one communicator.
	maxNamers = 64
	// enoughWitnesses is how many states that tell their time must contradict one that does
	// not: of two that contradict each other either may be wrong.
	enoughWitnesses = 2
)

// tellsTime reports whether a state says when it was, by itself or by who took it.
func (v *view) tellsTime() bool { return v.lastEnqueue != 0 || v.time != 0 }

// foreign leaves out dumps that tell no time, and can not be of that of the others: a file that
// nobody has overwritten since another incident, or that is of another job. What is open in
// one tells its time, so that these are dumps in which nothing is. They are few, else nobody
// knows which are the odd ones.
func (w *world) foreign() {
	var suspects []int
	states := 0
	for i, r := range w.ranks {
		if r.view == nil {
			continue
		}
		states++
		if r.view.source == model.StateFlightRecorder && !r.view.tellsTime() {
			suspects = append(suspects, i)
		}
	}
	if len(suspects) == 0 || len(suspects) == states {
		return
	}
	why := w.misfits(suspects)
	if 2*len(why) >= states {
		return
	}
	for _, i := range suspects {
		text, ok := why[i]
		if !ok {
			continue
		}
		r := w.ranks[i]
		w.a.problem("%s; the %s, which tells no time, is of another time or another job, and was left out", text, r.named())
		w.a.absent[r.id] = model.Absence{Rank: r.id, Reason: model.AbsentStale, Detail: text}
		r.view = nil
	}
}

// named is what people know the state of a rank by.
func (r *rank) named() string {
	if r.view.name == "" {
		return fmt.Sprintf("state of rank %d", r.id)
	}
	return fmt.Sprintf("state of rank %d (%s)", r.id, r.view.name)
}

// misfits says of each of the suspects that does not fit to the others why.
func (w *world) misfits(suspects []int) map[int]string {
	e, why := w.extent(), map[int]string{}
	for _, i := range suspects {
		r := w.ranks[i]
		for k := range r.view.comms {
			c := &r.view.comms[k]
			if text := w.otherMembers(r, c, e); text != "" {
				why[i] = text
				break
			}
			if text := w.otherNumbers(r, c, e); text != "" {
				why[i] = text
				break
			}
		}
	}
	w.strangers(suspects, e, why)
	return why
}

// otherNumbers says who is through what this rank had not enqueued, or had not enqueued what it
// is through.
func (w *world) otherNumbers(r *rank, c *comm, e *extents) string {
	if !w.countsForAll(c) {
		return ""
	}
	for _, f := range c.fronts {
		l := lane{c.group, f.fn}
		if t := e.through[l]; t != nil && f.enqueued != none && r.view.counts(c, f) {
			if last := t[enoughWitnesses-1]; last.rank >= 0 && last.seq > f.enqueued {
				return w.cannotBe(w.ranks[t[0].rank], r, l)
			}
		}
		if t := e.enqueued[l]; t != nil && f.completed != none {
			through := passed(e.known[l], f.completed)
			if last := t[enoughWitnesses-1]; last.rank >= 0 && last.seq < through {
				return w.cannotBe(r, w.ranks[t[0].rank], l)
			}
		}
	}
	return ""
}

// cannotBe says how far two ranks are that can not be as far at one time.
func (w *world) cannotBe(ahead, behind *rank, l lane) string {
	of := func(r *rank) *front { return r.view.comm(l.group).front(l.fn, false) }
	return fmt.Sprintf("rank %d was through operation %d of %s, while rank %d had enqueued none after %d",
		ahead.id, of(ahead).completed, w.a.groups.all[l.group].label(), behind.id, of(behind).enqueued)
}

func (w *world) beyond(ahead, seq int64, group int32, behind int64) string {
	return fmt.Sprintf("rank %d was through operation %d of %s, which rank %d had not enqueued", ahead, seq, w.a.groups.all[group].label(), behind)
}

// otherMembers says that a rank lists other members of a communicator than those who tell
// their time, none of whom has its list.
func (w *world) otherMembers(r *rank, c *comm, e *extents) string {
	g := w.a.groups.all[c.group]
	if g.inferred || e.lists[c.group] > 0 {
		return ""
	}
	for _, i := range e.named.of(w.a.groups.all, g.comm.ID, r.id) {
		if o := w.a.groups.all[i]; o != g && o.scope == g.scope && o.has(r.id) && e.lists[i] >= enoughWitnesses {
			return fmt.Sprintf("communicator %s: rank %d lists %d members, others list it among %d", g.label(), r.id, len(g.members), len(o.members))
		}
	}
	return ""
}

// strangers notes who does not know a communicator of which it is a member, and in which others
// are through what nobody leaves before all have entered.
func (w *world) strangers(suspects []int, e *extents, why map[int]string) {
	suspect := map[int64]int{}
	for _, i := range suspects {
		if v := w.ranks[i].view; why[i] == "" && v.partial == "" && len(v.comms) > 0 {
			suspect[w.ranks[i].id] = i
		}
	}
	for l, t := range e.through {
		g := w.a.groups.all[l.group]
		if last := t[enoughWitnesses-1]; g.inferred || last.rank < 0 || last.seq < 1 {
			continue
		}
		for _, id := range g.members {
			if i, ok := suspect[id]; ok && w.ranks[i].view.comm(l.group) == nil {
				text := w.beyond(w.ranks[t[0].rank].id, t[0].seq, l.group, id)
				if why[i] == "" || text < why[i] { // lanes come in any order
					why[i] = text
				}
			}
		}
	}
}
