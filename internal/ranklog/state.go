// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// state is the state of a rank by its log. The watchdog writes what timed out, so that a group
// without a line is one of which nothing is known.
func (s *Set) state(rank int64, r *record, comms map[group][]*comm) *model.RankState {
	st := &model.RankState{
		Rank: model.Rank{Rank: rank}, Source: model.StateWatchdogLog, Name: s.where(r.first), Time: taken, OnlyActive: true,
	}
	place := map[*comm]int{}
	for _, c := range ordered(comms) {
		if c.has(rank) {
			place[c] = len(st.Comms)
			st.Comms = append(st.Comms, c.state())
		}
	}
	for i := range r.progress {
		p := &r.progress[i]
		if c := of(comms[p.group], rank); c != nil {
			front(&st.Comms[place[c]], p.enqueued, p.completed)
		}
	}
	open := slices.Clone(r.waits)
	slices.SortFunc(open, func(a, b waits) int { return cmp.Compare(a.seq, b.seq) })
	for i := range open {
		w := &open[i]
		c := of(comms[w.group], rank)
		if c == nil {
			continue
		}
		to := &st.Comms[place[c]]
		if len(to.Frontiers) == 0 {
			front(to, w.seq, w.seq-1)
		}
		f := &to.Frontiers[0]
		f.Enqueued = model.Some(max(f.Enqueued.Or(-1), w.seq))
		f.Completed = model.Some(min(f.Completed.Or(w.seq-1), w.seq-1))
	}
	s.operations(st, r, comms, place)
	return st
}

// operations adds what a rank waits in, and what it has enqueued behind, as far as others name it.
func (s *Set) operations(st *model.RankState, r *record, comms map[group][]*comm, place map[*comm]int) {
	for _, c := range ordered(comms) {
		at, ok := place[c]
		if !ok || len(st.Comms[at].Frontiers) == 0 {
			continue
		}
		f := &st.Comms[at].Frontiers[0]
		own := map[int64]*waits{}
		for i := range r.waits {
			if w := &r.waits[i]; w.group == c.group {
				own[w.seq] = w
			}
		}
		for _, seq := range slices.Sorted(maps.Keys(c.seqs)) {
			w, mine := own[seq]
			switch {
			case mine:
				if w.op == "" {
					w.op = c.seqs[seq].op
				}
			case c.shared || seq > f.Enqueued.Or(-1) || seq <= f.Completed.Or(-1):
				continue
			default:
				named := c.seqs[seq]
				w = &named
				w.in, w.out, w.ran = -1, -1, 0
			}
			st.Ops = append(st.Ops, w.operation(at))
		}
	}
}

func (w *waits) operation(comm int) model.StateOp {
	o := model.StateOp{Kind: model.KindCollective, Name: torchname.Collective(w.op), Recorded: w.op, Comm: comm, Seq: w.seq, Created: taken - minute}
	switch o.Name {
	case torchname.Send:
		o.Kind = model.KindSend
	case torchname.Recv:
		o.Kind = model.KindRecv
	case "":
		o.Name = strings.ToLower(strings.Trim(w.op, "_"))
	}
	if w.ran > 0 && w.ran < int64(1e9) {
		o.Created = taken - w.ran*int64(1e6)
	}
	o.InType = w.kind
	if w.in >= 0 {
		o.InElems, o.In = model.Some(w.in), cmp.Or(w.shape, elements(w.in))
	}
	if w.out >= 0 {
		o.OutElems, o.Out = model.Some(w.out), elements(w.out)
	}
	if w.timeout > 0 {
		o.Timeout = model.Some(float64(w.timeout) / 1e3)
	}
	return o
}

func elements(n int64) string { return "[" + strconv.FormatInt(n, 10) + " elements]" }

// behind is the state of a rank with a log without lines of the watchdog, where all others wait: it has not come to
// what they wait in, as far as that has a number.
func (s *Set) behind(rank int64, r *record, comms map[group][]*comm) *model.RankState {
	st := &model.RankState{
		Rank: model.Rank{Rank: rank}, Source: model.StateWatchdogLog, Name: s.where(r.first), Time: taken, OnlyActive: true,
	}
	for _, c := range ordered(comms) {
		if c.least < 0 || c.shared || !c.has(rank) {
			continue
		}
		to := c.state()
		front(&to, c.least-1, c.least-1)
		if !r.isStuck {
			to.Untracked = "its log has no line of the watchdog, which ends with its process"
		}
		st.Comms = append(st.Comms, to)
	}
	if len(st.Comms) == 0 {
		return nil
	}
	return st
}

func (c *comm) state() model.CommState {
	name := c.desc
	id := c.name
	if c.unnamed() {
		id, name = "unnamed", "a group that the log does not name"
	}
	backend := "nccl"
	if c.group == ofGloo {
		backend = "gloo"
	}
	out := model.CommState{
		Comm: model.Comm{ID: id, Name: name}, Backend: backend, Members: c.members, MembersInferred: c.inferred,
		Scope: model.ScopeComm, P2PShared: c.shared,
	}
	if !c.inferred {
		out.Comm.Size = model.Some(int64(len(c.members)))
	}
	return out
}

func front(c *model.CommState, enqueued, completed int64) {
	f := model.Frontier{}
	if enqueued >= 0 {
		f.Enqueued = model.Some(enqueued)
	} else {
		f.Enqueued = model.Some(int64(0)) // numbers begin at 1
	}
	f.Completed = model.Some(max(completed, 0))
	c.Frontiers = []model.Frontier{f}
}

// ordered lists the groups in an order that does not change.
func ordered(comms map[group][]*comm) (out []*comm) {
	for _, g := range slices.SortedFunc(maps.Keys(comms), func(a, b group) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.desc, b.desc))
	}) {
		out = append(out, comms[g]...)
	}
	return out
}
