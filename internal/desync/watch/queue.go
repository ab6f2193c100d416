// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// queue is who stands in what, and who has not entered that.
type queue struct {
	stands []standing
	// late are, by communicator and operation, those of its members that are known not to have entered it.
	late map[string]map[opOf][]int64
}

// standing is a rank that waits in an operation: the first one of a communicator that is in flight.
type standing struct {
	of int64
	head
}

type opOf struct {
	name string
	seq  int64
}

func (q *queue) lateFor(s *standing) []int64 { return q.late[s.comm][opOf{s.name, s.seq}] }

// queueOf lists those of a job who stand. Processes that are held do not wait: they stand for themselves.
func (w *Watch) queueOf(j *job, now time.Time) *queue {
	q := &queue{late: map[string]map[opOf][]int64{}}
	for _, of := range slices.Sorted(maps.Keys(j.living)) {
		r := j.ranks[of]
		if r == nil || r.gone {
			continue
		}
		h := r.live(now, &w.cfg)
		if h == nil || heldProcess(h.state.Process) {
			continue
		}
		for _, first := range h.firsts() {
			q.stands = append(q.stands, standing{of, first})
			if q.late[first.comm] == nil {
				q.late[first.comm] = map[opOf][]int64{}
			}
			q.late[first.comm][opOf{first.name, first.seq}] = nil
		}
	}
	died := j.firstTold()
	for of, r := range j.ranks {
		w.noteLate(q, of, r, died, now)
	}
	return q
}

// firsts are the heads of each communicator that stand longest: what follows waits for these.
func (h *held) firsts() (list []head) {
	for i := range h.heads {
		k := slices.IndexFunc(list, func(o head) bool { return o.comm == h.heads[i].comm })
		switch {
		case k < 0:
			list = append(list, h.heads[i])
		case h.heads[i].since.Before(list[k].since):
			list[k] = h.heads[i]
		}
	}
	return list
}

// noteLate notes the operations that a rank is known not to have entered: by its newest state, or since
// its process is gone, unless that is an effect of what is told.
func (w *Watch) noteLate(q *queue, of int64, r *rank, died, now time.Time) {
	h := r.states[model.StateRankEvents]
	if h == nil {
		return
	}
	state := h.state
	switch {
	case r.gone && h.before != nil && !died.IsZero() && h.came.After(died):
		state = h.before
	case r.gone:
		for comm := range r.commsOf() {
			for op := range q.late[comm] {
				q.late[comm][op] = append(q.late[comm][op], of)
			}
		}
		return
	case r.stale(h, now, &w.cfg):
		return
	}
	for i := range state.Comms {
		c := &state.Comms[i]
		for op := range q.late[c.Comm.ID] {
			if n, known := enqueued(c, op.name); known && n < op.seq {
				q.late[c.Comm.ID][op] = append(q.late[c.Comm.ID][op], of)
			}
		}
	}
}

// enqueued is how far a rank has come on a communicator in what an operation of this name is counted
// with, -1 where it has entered nothing of it, and whether that compares with others.
func enqueued(c *model.CommState, name string) (n int64, known bool) {
	if c.P2PShared || name == model.OpSend || name == model.OpRecv {
		return 0, false // the two ends count messages each for itself
	}
	for k := range c.Frontiers {
		if f := &c.Frontiers[k]; f.Func == "" || f.Func == name {
			return f.Enqueued.Or(-1), true
		}
	}
	return -1, true
}

// effect is who waits for a process that is held: in an operation of a communicator of its own, or
// through others that do.
type effect struct {
	direct, all map[int64]bool
	comms       map[string]bool // in which anybody waits for it itself
	longest     time.Time       // since when the first of them stands; zero: nobody does
}

// behind finds who waits for a process that is held. What it has entered as well the others wait in for
// those who have not, if there are any.
func (q *queue) behind(r *rank) *effect {
	e := &effect{direct: map[int64]bool{}, all: map[int64]bool{}, comms: map[string]bool{}}
	mine := r.commsOf()
	for i := range q.stands {
		s := &q.stands[i]
		late := q.lateFor(s)
		if s.of == r.of.Rank || !mine[s.comm] || len(late) > 0 && !slices.Contains(late, r.of.Rank) {
			continue
		}
		e.direct[s.of], e.all[s.of], e.comms[s.comm] = true, true, true
		if e.longest.IsZero() || s.since.Before(e.longest) {
			e.longest = s.since
		}
	}
	for more := true; more; {
		more = false
		for i := range q.stands {
			s := &q.stands[i]
			if !e.all[s.of] && s.of != r.of.Rank && slices.ContainsFunc(q.lateFor(s), func(of int64) bool { return e.all[of] }) {
				e.all[s.of], more = true, true
			}
		}
	}
	return e
}

// explains reports whether a root may be an effect of a process that is held: whom it names waits for
// that, or who waits for it does, and the process has not entered what those lack whom it names.
func (q *queue) explains(r *rank, f *model.Finding) bool {
	e, named := q.behind(r), blamed(f)
	if slices.ContainsFunc(named, func(of int64) bool { return e.all[of] || of == r.of.Rank }) {
		return true
	}
	for _, late := range q.late[f.CommID] {
		lack := len(named) > 0 && !slices.ContainsFunc(named, func(of int64) bool { return !slices.Contains(late, of) })
		if lack && r.commsOf()[f.CommID] && !slices.Contains(late, r.of.Rank) {
			return false
		}
	}
	return e.comms[f.CommID] || len(f.Waiting) > 0 && e.all[f.Waiting[0]]
}

// waitersFor are the ranks that wait for a held process themselves, and for how long the first of them has.
func (q *queue) waitersFor(r *rank, now time.Time) (waits []int64, longest time.Duration) {
	e := q.behind(r)
	if e.longest.IsZero() {
		return nil, 0
	}
	return slices.Sorted(maps.Keys(e.direct)), now.Sub(e.longest)
}
