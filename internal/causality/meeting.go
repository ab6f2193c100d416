// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"math/bits"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// meetings keeps what the latest collectives and messages of ranks have shown:
// of each clock the last start and the first end, which is all that bounds.
type meetings struct {
	max    int // sides
	sides  int
	bytes  int64 // of all meetings, about
	open   map[meetingKey]*meeting
	order  []*meeting // oldest first
	number uint64     // of the batch

	unmet int64 // forgotten while only one clock was there
}

// meetingKey: groups without a common member may bear one name; the digest of
// their ranks tells them apart.
type meetingKey struct {
	key         model.RendezvousKey
	job, digest string
}

type meeting struct {
	key                meetingKey
	row                *Row
	senders, receivers sides
	touched            uint64   // batch
	begin              int64    // stamp of the first member
	ranks              rankSet  // that have come
	counted            int64    // its size as it was added up
	older              *meeting // of the same key
}

const (
	// maxWait, 10 minutes, is how long PyTorch lets a collective wait. What bears the
	// same number later is of a job that was started again.
	maxWait = int64(600e9)
	// maxRuns bounds the meetings of one key.
	maxRuns = 8
	// maxRank is the largest rank that is told apart.
	maxRank = 1 << 20
)

// What a meeting holds beside texts and ranks, bytes: of maps an estimate.
const (
	meetingBytes = int64(unsafe.Sizeof(meeting{})+unsafe.Sizeof(meetingKey{})) + 64
	sideBytes    = int64(unsafe.Sizeof(side{})) * 5 / 4
	// perSide is how many bytes there are for each side that may be kept: a meeting of two, with
	// what names it, takes half of this for each.
	perSide = 1024
)

// size returns about how many bytes the meeting holds.
func (m *meeting) size() int64 {
	k := &m.key
	text := len(k.job) + len(k.digest) + len(k.key.Incarnation) + len(k.key.Comm) + len(k.key.Scope) + len(k.key.Name)
	return meetingBytes + int64(text) + m.ranks.bytes() + int64(m.len())*sideBytes
}

// sides are one per clock.
type sides struct {
	list []side
	at   map[*Clock]int // beyond a few
}

// side is one clock's part in a meeting: its last start, or its first end.
type side struct {
	span  Span
	batch uint64
	index int32 // in its batch
	was   emitted
}

func newMeetings(maxSides int) *meetings {
	return &meetings{max: maxSides, open: map[meetingKey]*meeting{}}
}

// of returns the meeting that a span belongs to: of those of its key in which its
// rank has not been, the nearest in time, and a new one where none is near.
func (ms *meetings) of(s *Span) *meeting {
	key := meetingKey{s.Meet.Key, s.Meet.Job, s.Meet.Digest}
	var nearest *meeting
	apart, runs := maxWait, 0
	for m := ms.open[key]; m != nil; m = m.older {
		if runs++; runs == maxRuns {
			m.older = nil
		}
		if d := s.Begin - m.begin; max(d, -d) <= apart && !m.ranks.has(s.Meet.Rank) {
			nearest, apart = m, max(d, -d)
		}
	}
	if nearest == nil {
		nearest = &meeting{key: key, row: s.Meet.Row, begin: s.Begin, older: ms.open[key]}
		ms.open[key] = nearest
		ms.order = append(ms.order, nearest)
	}
	nearest.ranks.add(s.Meet.Rank)
	return nearest
}

// close forgets a meeting.
func (ms *meetings) close(m *meeting) {
	newest := ms.open[m.key]
	if newest == m {
		if m.older == nil {
			delete(ms.open, m.key)
		} else {
			ms.open[m.key] = m.older
		}
		return
	}
	for n := newest; n != nil; n = n.older {
		if n.older == m {
			n.older = m.older
			return
		}
	}
}

// add files a span under its meeting, and returns it when it is touched by the
// batch for the first time.
func (ms *meetings) add(s *Span, index int) *meeting {
	m := ms.of(s)
	before, bytes := m.len(), m.counted
	if s.Meet.Sends {
		m.senders.keep(s, ms.number, index, func(there *Span) bool { return s.Begin-s.Epoch > there.Begin-there.Epoch })
	}
	if s.Meet.Receives {
		m.receivers.keep(s, ms.number, index, func(there *Span) bool { return s.Until-s.Epoch < there.Until-there.Epoch })
	}
	m.counted = m.size()
	ms.sides, ms.bytes = ms.sides+m.len()-before, ms.bytes+m.counted-bytes
	if m.touched == ms.number {
		return nil
	}
	m.touched = ms.number
	return m
}

func (m *meeting) len() int { return len(m.senders.list) + len(m.receivers.list) }

// fewSides is how many clocks are looked through rather than looked up.
const fewSides = 16

func (ss *sides) keep(s *Span, batch uint64, index int, rather func(there *Span) bool) {
	i := ss.of(s.Clock)
	if i < 0 {
		i = len(ss.list)
		ss.list = append(ss.list, side{})
		if ss.at != nil {
			ss.at[s.Clock] = i
		} else if i == fewSides {
			ss.at = make(map[*Clock]int, 2*fewSides)
			for j := range ss.list[:i] {
				ss.at[ss.list[j].span.Clock] = j
			}
			ss.at[s.Clock] = i
		}
	} else if !rather(&ss.list[i].span) {
		return
	}
	ss.list[i] = side{span: *s, batch: batch, index: int32(index)}
	ss.list[i].span.Meet, ss.list[i].span.Links = nil, nil // of the batch
}

func (ss *sides) of(c *Clock) int {
	if ss.at != nil {
		if i, ok := ss.at[c]; ok {
			return i
		}
		return -1
	}
	for i := range ss.list {
		if ss.list[i].span.Clock == c {
			return i
		}
	}
	return -1
}

// remember notes how the sides that came with the batch are given out.
func (m *meeting) remember(b *Batch) {
	for _, ss := range [...]*sides{&m.senders, &m.receivers} {
		for i := range ss.list {
			if s := &ss.list[i]; s.batch == m.touched {
				s.was = b.Places[s.index].emitted()
			}
		}
	}
}

// shrink forgets the oldest meetings beyond the limit.
func (ms *meetings) shrink() {
	gone := 0
	for (ms.sides > ms.max || ms.bytes > int64(ms.max)*perSide) && gone < len(ms.order) {
		m := ms.order[gone]
		gone++
		ms.sides, ms.bytes = ms.sides-m.len(), ms.bytes-m.counted
		ms.close(m)
		if len(m.senders.list) == 0 || len(m.receivers.list) == 0 || len(m.receivers.list) == 1 && len(m.senders.list) == 1 && m.senders.list[0].span.Clock == m.receivers.list[0].span.Clock {
			ms.unmet++
		}
	}
	ms.order = append(ms.order[:0], ms.order[gone:]...)
}

// allPairs is how many clocks a meeting may have for each pair to be looked at.
// Of more, those are whose numbers are a power of two apart, which connects all
// of them in a few hops.
const allPairs = 8

// pairs calls visit for the sides that bound each other, one of which is new.
func (m *meeting) pairs(visit func(first, second *side)) {
	all := len(m.receivers.list) <= allPairs && len(m.senders.list) <= allPairs
	for i := range m.receivers.list {
		for j := range m.senders.list {
			r, s := &m.receivers.list[i], &m.senders.list[j]
			if r.span.Clock.gone || s.span.Clock.gone {
				continue
			}
			if r.batch != m.touched && s.batch != m.touched || r.span.Ref == s.span.Ref {
				continue
			}
			if all || near(r.span.Clock, s.span.Clock) {
				visit(s, r)
			}
		}
	}
}

func near(a, b *Clock) bool {
	d := a.index - b.index
	return bits.OnesCount(uint(max(d, -d))) <= 1
}

// worst returns the last start and the first end, by time.
func (m *meeting) worst(time func(*Span, End) int64) (first, second *side) {
	for i := range m.senders.list {
		if s := &m.senders.list[i]; !s.span.Clock.gone && (first == nil || time(&s.span, Start) > time(&first.span, Start)) {
			first = s
		}
	}
	for i := range m.receivers.list {
		if r := &m.receivers.list[i]; !r.span.Clock.gone && (second == nil || time(&r.span, Finish) < time(&second.span, Finish)) {
			second = r
		}
	}
	return first, second
}
