// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// queue is which ranks wait in which operations, and how far the others are known to have come there.
type queue struct {
	rows map[string][]*row // by communicator
	// passed are, by rank, the rows in which it is known how far that rank has come.
	passed map[int64][]*row
	stands map[int64]bool // the ranks that wait
	// effects are those of ranks that do not wait themselves, by the operations in which they are waited for.
	effects map[string]*effect
}

// row is the operations of one name on one communicator in which ranks wait, in order of seq.
type row struct {
	number int // of the row in the queue
	name   string
	ops    []op
	// enqueued is, by rank, the newest operation that it is known to have enqueued. least is the least of them.
	enqueued map[int64]int64
	least    int64
}

// op is an operation, and the ranks of which it is the first one of the communicator that is in flight.
type op struct {
	seq    int64
	stands []standing
}

type standing struct {
	of    int64
	since time.Time
}

// noneEnqueued is before the first operation: a process that is gone enters none.
const noneEnqueued = math.MinInt64

// awaited reports whether the ranks in an operation wait for this one: by its state it has not entered the
// operation, or no rank is known that has not.
func (r *row) awaited(of, seq int64) bool {
	return seq <= r.least || r.lacks(of, seq)
}

// lacks reports whether a rank is known not to have entered an operation.
func (r *row) lacks(of, seq int64) bool {
	n, known := r.enqueued[of]
	return known && n < seq
}

// queueOf lists the ranks of a job that wait. Processes that are held do not.
func (w *Watch) queueOf(j *job, now time.Time) *queue {
	q := &queue{rows: map[string][]*row{}, passed: map[int64][]*row{}, stands: map[int64]bool{}, effects: map[string]*effect{}}
	ops := map[[2]string]map[int64][]standing{}
	for of := range j.living {
		r := j.ranks[of]
		if r == nil || r.gone {
			continue
		}
		h := r.live(now, &w.cfg)
		if h == nil || heldProcess(h.state.Process) {
			continue
		}
		for _, first := range h.firsts() {
			at := [2]string{first.comm, first.name}
			if ops[at] == nil {
				ops[at] = map[int64][]standing{}
			}
			ops[at][first.seq] = append(ops[at][first.seq], standing{of, first.since})
			q.stands[of] = true
		}
	}
	number := 0
	for at, bySeq := range ops {
		number++
		r := &row{number: number, name: at[1], enqueued: map[int64]int64{}, least: math.MaxInt64}
		for _, seq := range slices.Sorted(maps.Keys(bySeq)) {
			r.ops = append(r.ops, op{seq, bySeq[seq]})
		}
		q.rows[at[0]] = append(q.rows[at[0]], r)
	}
	died := j.firstTold()
	for of, r := range j.ranks {
		w.notePassed(q, of, r, died, now)
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

// notePassed notes how far a rank is known to have come: by its newest state, or since its process is
// gone, unless that is an effect of an open finding.
func (w *Watch) notePassed(q *queue, of int64, r *rank, died, now time.Time) {
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
			for _, at := range q.rows[comm] {
				q.pass(at, of, noneEnqueued)
			}
		}
		return
	case r.stale(h, now, &w.cfg):
		return
	}
	for i := range state.Comms {
		c := &state.Comms[i]
		for _, at := range q.rows[c.Comm.ID] {
			if n, known := enqueued(c, at.name); known {
				q.pass(at, of, n)
			}
		}
	}
}

// pass notes how far a rank has come in a row.
func (q *queue) pass(at *row, of, n int64) {
	before, known := at.enqueued[of]
	if !known {
		q.passed[of] = append(q.passed[of], at)
	}
	if !known || n < before {
		at.enqueued[of] = n
	}
	at.least = min(at.least, n)
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

// effect is which ranks wait for a process that is held, in an operation of a communicator of its own.
type effect struct {
	direct  []int64         // in order
	all     map[int64]bool  // those that wait through others as well; nil: not known yet
	comms   map[string]bool // in which ranks wait for it itself
	longest time.Time       // since when the first of them waits; zero: none does
	but     int64           // the rank itself, where it waits too; -1: it does not
}

// noRank is before the first rank.
const noRank = -1

// behind finds the ranks that wait for a process that is held. In what it has entered as well the others
// wait for the ranks that have not, if there are any.
func (q *queue) behind(r *rank) *effect {
	ops, key := q.waitFor(r)
	if q.stands[r.of.Rank] {
		return effectOf(ops, r.of.Rank)
	}
	e := q.effects[key]
	if e == nil {
		e = effectOf(ops, noRank)
		q.effects[key] = e
	}
	return e
}

// waitingIn is an operation in which ranks wait.
type waitingIn struct {
	*op
	comm string
}

// waitFor returns the operations in which a rank is waited for, and a key of these.
func (q *queue) waitFor(r *rank) (ops []waitingIn, key string) {
	var b []byte
	for _, comm := range slices.Sorted(maps.Keys(r.commsOf())) {
		for _, at := range q.rows[comm] {
			for i := range at.ops {
				if at.awaited(r.of.Rank, at.ops[i].seq) {
					ops = append(ops, waitingIn{&at.ops[i], comm})
					b = append(strconv.AppendInt(b, int64(at.number), 10), '/')
					b = append(strconv.AppendInt(b, int64(i), 10), ' ')
				}
			}
		}
	}
	return ops, string(b)
}

func effectOf(ops []waitingIn, but int64) *effect {
	e := &effect{comms: map[string]bool{}, but: but}
	for _, o := range ops {
		for _, s := range o.stands {
			if s.of == but {
				continue
			}
			e.direct, e.comms[o.comm] = append(e.direct, s.of), true
			if e.longest.IsZero() || s.since.Before(e.longest) {
				e.longest = s.since
			}
		}
	}
	slices.Sort(e.direct)
	e.direct = slices.Compact(e.direct)
	return e
}

// through returns all that wait for a process, also those that wait for ranks that do.
func (q *queue) through(e *effect) map[int64]bool {
	if e.all != nil {
		return e.all
	}
	e.all = make(map[int64]bool, len(e.direct))
	for _, of := range e.direct {
		e.all[of] = true
	}
	next := slices.Clone(e.direct)
	taken := map[*row]int{} // how many of the last operations of a row
	for len(next) > 0 {
		of := next[len(next)-1]
		next = next[:len(next)-1]
		for _, at := range q.passed[of] {
			for n := taken[at]; n < len(at.ops) && at.lacks(of, at.ops[len(at.ops)-1-n].seq); n++ {
				taken[at] = n + 1
				for _, s := range at.ops[len(at.ops)-1-n].stands {
					if s.of != e.but && !e.all[s.of] {
						e.all[s.of] = true
						next = append(next, s.of)
					}
				}
			}
		}
	}
	return e.all
}

// accused is a root, with the ranks that it names and what these lack.
type accused struct {
	*model.Finding
	named []int64
	lack  []lacked
}

// lacked is the operations of a row behind the newest that any of some ranks has enqueued.
type lacked struct {
	*row
	behind int64
}

func (q *queue) accuse(f *model.Finding) *accused {
	a := &accused{Finding: f, named: blamed(f)}
	for _, at := range q.rows[f.CommID] {
		if n, ok := at.furthest(a.named); ok {
			a.lack = append(a.lack, lacked{at, n})
		}
	}
	return a
}

// furthest returns the newest operation that any of these ranks has enqueued; false where it is not known.
func (r *row) furthest(ranks []int64) (n int64, ok bool) {
	n = noneEnqueued
	for _, of := range ranks {
		one, known := r.enqueued[of]
		if !known {
			return 0, false
		}
		n = max(n, one)
	}
	return n, len(ranks) > 0
}

// explains reports whether a root may be an effect of a process that is held: the ranks that it names wait
// for that, or those that wait for it do, and the process has not entered what all that it names lack.
func (q *queue) explains(r *rank, a *accused) bool {
	e := q.behind(r)
	all := q.through(e)
	if slices.ContainsFunc(a.named, func(of int64) bool { return all[of] || of == r.of.Rank }) {
		return true
	}
	entered := func(l lacked) bool {
		return slices.ContainsFunc(l.ops, func(o op) bool { return o.seq > l.behind && !l.lacks(r.of.Rank, o.seq) })
	}
	if len(a.lack) > 0 && r.commsOf()[a.CommID] && slices.ContainsFunc(a.lack, entered) {
		return false
	}
	return e.comms[a.CommID] || len(a.Waiting) > 0 && all[a.Waiting[0]]
}

// waitersFor returns the ranks that wait for a held process themselves, and for how long the first of them
// has. The list is shared.
func (q *queue) waitersFor(r *rank, now time.Time) (waits []int64, longest time.Duration) {
	e := q.behind(r)
	if e.longest.IsZero() {
		return nil, 0
	}
	return e.direct, now.Sub(e.longest)
}
