// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// shownMeeting is what a meeting's report needs besides its record: few meetings are ever
// shown, and the spans of their members take long to name.
type shownMeeting struct {
	in       *shownStep
	form     *commForm
	size     int
	number   int64
	src, dst int32
	transfer time.Duration
	spans    []shownSpan // of the members
}

// shownStep is what the meetings of a step have in common.
type shownStep struct {
	trace       model.TraceID
	incarnation string
	step        int64
}

// shownSpan is what names the span of a member besides its rank.
type shownSpan struct {
	form *commForm
	lane int64
	seq  int64
}

// meetingRoom is room for the records of a step's meetings.
type meetingRoom struct {
	meets   []meetingRecord
	ranks   []int64
	members []memberRecord
	spans   []shownSpan
}

func newMeetingRoom(meetings []*meeting) *meetingRoom {
	n := 0
	for _, m := range meetings {
		n += len(m.parties)
	}
	return &meetingRoom{
		meets: make([]meetingRecord, len(meetings)), ranks: make([]int64, n),
		members: make([]memberRecord, n), spans: make([]shownSpan, n),
	}
}

// next returns the record of a meeting, its members still empty.
func (r *meetingRoom) next(m *meeting, step *shownStep) *meetingRecord {
	mr, n := &r.meets[0], len(m.parties)
	first := &m.parties[0]
	mr.name, mr.digest, mr.step, mr.rule, mr.attributed, mr.open, mr.last = m.name(), m.digest, step.step, m.rule, m.attributed, m.open, m.last
	mr.arrived, mr.ranks, mr.members = m.arrived, r.ranks[:n:n], r.members[:n:n]
	shown := &mr.shown
	shown.in, shown.form, shown.size, shown.number, shown.spans = step, first.op.form, m.size(), first.op.number, r.spans[:n:n]
	shown.src, shown.dst = first.ends()
	r.meets, r.ranks, r.members, r.spans = r.meets[1:], r.ranks[n:], r.members[n:], r.spans[n:]
	var end int64
	for i := range m.parties {
		p := &m.parties[i]
		mr.ranks[i] = p.at.rank.Rank
		span := &shown.spans[i]
		span.form, span.lane, span.seq = p.op.form, p.op.lane, p.op.seq
		if !p.op.inferred {
			end = max(end, m.exit[i])
		}
	}
	mr.shown.transfer = time.Duration(max(0, end-m.arrived))
	return mr
}

// show returns the meeting as reports carry it, members by arrival.
func (mr *meetingRecord) show() *Meeting {
	s := &mr.shown
	out := &Meeting{
		Key: s.key(), Name: mr.name, CommID: s.form.comm, Size: s.size, Attributed: mr.attributed,
		LastRank: mr.ranks[mr.last], Transfer: s.transfer, Members: make([]Member, 0, len(mr.members)),
	}
	for i := range mr.members {
		m, of := &mr.members[i], &s.spans[i]
		out.Members = append(out.Members, Member{
			Rank: mr.ranks[i], Enter: m.enter, Exit: m.exit, Wait: time.Duration(mr.wait(i)),
			Span: model.SpanRef{Trace: s.in.trace, Span: model.OpSpanID(s.in.trace, mr.ranks[i], of.lane, of.form.key, of.seq)},
		})
	}
	slices.SortStableFunc(out.Members, func(a, b Member) int { return cmp.Compare(a.Enter, b.Enter) })
	return out
}

// key returns the rendezvous as it is known outside.
func (s *shownMeeting) key() model.RendezvousKey {
	k := model.RendezvousKey{Incarnation: s.in.incarnation, Comm: s.form.comm, Scope: s.form.scope, Name: s.form.meetName(), Seq: s.number}
	if s.form.scope == model.ScopeOrdinal {
		k.Step = model.Some(s.in.step)
	}
	if s.form.kind != model.KindCollective {
		k.Src, k.Dst = model.Some(int64(s.src)), model.Some(int64(s.dst))
	}
	return k
}

// meetName is the name under which operations meet, "" where their number is counted
// over several names.
func (n *commName) meetName() string {
	if n.kind == model.KindCollective && n.scope != model.ScopeComm {
		return n.collective
	}
	return ""
}
