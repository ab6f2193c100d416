// SPDX-License-Identifier: Apache-2.0

package causality

import (
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
	top    int        // index of the clocks, at most
	near   []nearPair // scratch

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
	ms.top = max(ms.top, s.Clock.index)
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

// remember notes how the sides that came with the batch are given out.
func (m *meeting) remember(b *Batch) {
	for _, ss := range [...]*sides{&m.senders, &m.receivers} {
		for i := range ss.fresh(m.touched) {
			s := &ss.list[i]
			s.was = b.Places[s.index].emitted()
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
