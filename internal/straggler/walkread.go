// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/blame"
)

// stepGraph is a step as package blame takes it. Its rooms are used again.
type stepGraph struct {
	blame.Step
	views   []*rankView // of its ranks
	ops     []blame.Op
	at      []int32 // of each view, its place among the ranks; -1 where it is left out
	vague   []int64
	forms   []uint32 // places by form of communication, 0 where not known yet
	shift   []int64  // of each rank, from its raw stamps to the graph's timeline
	groups  []clockGroup
	groupOf []int   // of each rank
	placed  []int32 // of each view, where its communication begins among its operations
}

// sizeOf returns how many operations a graph of the step would have.
func sizeOf(views []*rankView, keep []bool) (n int) {
	for i, v := range views {
		if kept(keep, i) {
			n += v.size()
		}
	}
	return n
}

// kept reports whether a view is to be in the graph: all are, unless some were chosen.
func kept(keep []bool, i int) bool { return len(keep) == 0 || keep[i] }

// read fills the graph. A rank that met nobody stands on a clock of its own, and belongs
// to another story; so does one that is not to be kept, unless keep is nil.
func (s *stepGraph) read(rec *record, views []*rankView, meetings []*meeting, keep []bool) {
	s.Ranks, s.Meetings, s.views = s.Ranks[:0], s.Meetings[:0], s.views[:0]
	s.shift = s.shift[:0]
	s.ops, s.at, s.vague, s.placed = slices.Grow(s.ops[:0], sizeOf(views, keep)), s.at[:0], s.vague[:0], s.placed[:0]
	for i, v := range views {
		at := int32(-1)
		from := len(s.ops)
		if (rec.ranks[i].met || len(meetings) == 0) && kept(keep, i) {
			at = int32(len(s.Ranks))
			s.readRank(v)
		}
		s.at = append(s.at, at)
		s.placed = append(s.placed, int32(len(s.ops)-from-len(v.comms)))
		s.vague = append(s.vague, int64(v.offset.Sigma))
	}
	s.relate(meetings)
	for _, m := range meetings {
		s.readMeeting(m)
	}
}

func (s *stepGraph) readRank(v *rankView) {
	from, shift := len(s.ops), int64(v.offset.Value)
	for i := range v.acts {
		if a := &v.acts[i]; a.kind <= actCopy {
			op := s.next()
			op.Start, op.End, op.Lane, op.Launch = a.start+shift, a.end+shift, a.lane, shifted(a.launch, shift)
			op.Place, op.Seq, op.Micro, op.Kind = blame.Place(a.key), a.seq, int32(a.microbatch), blame.Compute
			if a.kind == actCopy {
				op.Kind = blame.Copy
			}
		}
	}
	for i := range v.comms {
		c := &v.comms[i]
		op := s.next()
		op.Start, op.End, op.Lane, op.Launch = c.start+v.shift(c), c.end+v.shift(c), c.lane, shifted(v.launchOf(c), shift)
		op.Place, op.Seq, op.Micro, op.Kind = s.placeOf(c, v), uint32(c.seq), -1, blame.Comm
	}
	ops := s.ops[from:len(s.ops):len(s.ops)]
	if v.dark {
		leadOf(ops)
	}
	s.views, s.shift = append(s.views, v), append(s.shift, shift)
	s.Ranks = append(s.Ranks, blame.Rank{
		Rank: v.rank.Rank, Role: uint64(v.role), Stage: int32(v.rank.Parallel.PP.Or(-1)),
		Start: v.start + shift, End: v.end + shift, Ops: ops, Dark: v.dark, Syncs: v.syncs(shift), Holes: v.holesAt(shift),
	})
}

// next returns a new operation, all of which is to be filled.
func (s *stepGraph) next() *blame.Op {
	var op *blame.Op
	s.ops, op = oneMore(s.ops)
	return op
}

// holesAt returns the holes on the graph's timeline.
func (v *rankView) holesAt(shift int64) (out [][2]int64) {
	for _, h := range v.holes {
		out = append(out, [2]int64{h.start + shift, h.end + shift})
	}
	return out
}

// placeOf returns the place of a communication: its key.
func (s *stepGraph) placeOf(c *commOp, v *rankView) blame.Place {
	for int(c.form.id) >= len(s.forms) {
		s.forms = append(s.forms, 0)
	}
	if s.forms[c.form.id] == 0 {
		s.forms[c.form.id] = v.keys.id(c.form.key, 0, v.stats)
	}
	return blame.Place(s.forms[c.form.id])
}

// leadOf gives each operation of a rank of which only communication was recorded the
// earliest launch of those that had not begun when it began, as lead does.
func leadOf(ops []blame.Op) {
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ops[a].Start, ops[b].Start) })
	var first int64
	for _, i := range slices.Backward(order) {
		if l := ops[i].Launch; l != 0 && (first == 0 || l < first) {
			first = l
		}
		ops[i].Launch = first
	}
}

// syncs returns when calls ended in which the host had waited for its device.
func (v *rankView) syncs(shift int64) (out []int64) {
	if !v.hosts {
		return nil
	}
	for i := range v.acts {
		if a := &v.acts[i]; a.kind == actHost && v.keys.syncs(a.key) {
			out = append(out, a.end+shift)
		}
	}
	return out
}

func (s *stepGraph) readMeeting(m *meeting) {
	out := blame.Meeting{Root: -1, Parties: make([]blame.Party, 0, len(m.parties))}
	class := mix(uint64(s.placeOf(m.parties[0].op, m.parties[0].at)), uint64(m.size()), uint64(m.bytes()))
	class = mix(class, uint64(m.parties[m.last].at.role), 0)
	same, vague := true, int64(0)
	for i, p := range m.parties {
		at := s.at[p.at.index]
		if at < 0 {
			continue
		}
		if i == m.last && (m.rule == waitForRoot || m.rule == waitForSender) {
			out.Root = int32(len(out.Parties))
		}
		out.Parties = append(out.Parties, blame.Party{Rank: at, Op: s.placed[p.at.index] + int32(p.pos)})
		same = same && p.at.clockOf(p.op) == m.parties[0].at.clockOf(m.parties[0].op)
		vague = max(vague, s.vague[p.at.index])
		if p.op.inferred {
			class = mix(class, uint64(len(s.Meetings)), 1) // like no other: its end is no measurement
		}
	}
	if !same {
		out.Vague = vagueSigmas * vague
	}
	out.Class = class
	_, _, across := s.across(m)
	switch {
	case across && len(s.groups) <= maxClockGroups:
		out.Rule, out.Vague = blame.Message, farApart
	case !m.attributed || s.at[m.parties[m.last].at.index] < 0:
	case m.rule == waitAll:
		out.Rule = blame.All
	case m.rule == waitForRoot:
		out.Rule = blame.Root
	case m.rule == waitForSender:
		out.Rule = blame.Message
	}
	s.Meetings = append(s.Meetings, out)
}

// farApart makes nothing count that is measured across a message between clocks that
// nothing else relates.
const farApart = int64(time.Hour)

// vagueSigmas is how many standard errors of a clock two arrivals must be apart for
// their order to be known, as an estimate must be from zero to be applied.
const vagueSigmas = 3

// scopeIn returns the scope that the host of the graph's i-th rank was in for most of
// the time.
func (s *stepGraph) scopeIn(i int, from, to int64) blame.Place {
	v := s.views[i]
	shift := s.shift[i]
	var best uint32
	var longest int64
	var sums [4]struct {
		key uint32
		d   int64
	}
	v.scope.share(from-shift, to-shift, func(in *piece, d int64) {
		for k := range sums {
			if e := &sums[k]; e.d == 0 || e.key == in.key {
				e.key = in.key
				if e.d += d; e.d > longest {
					best, longest = e.key, e.d
				}
				return
			}
		}
	})
	return blame.Place(best)
}

// spanOf returns the span of an operation of the graph.
func (s *stepGraph) spanOf(rank, op int32, step int64, incarnation string) model.SpanRef {
	v := s.views[rank]
	trace := model.StepTraceID(incarnation, step)
	o := &s.Ranks[rank].Ops[op]
	return model.SpanRef{Trace: trace, Span: model.OpSpanID(trace, v.rank.Rank, o.Lane, v.keys.name(uint32(o.Place)), int64(o.Seq))}
}
