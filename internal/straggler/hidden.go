// SPDX-License-Identifier: Apache-2.0

package straggler

import "github.com/lockstep-otel/lockstep/internal/stats"

// Where the device is not recorded, a rank that stays in one collective may do
// meanwhile what comes before the next one (gradients of lower layers), and nobody
// sees that work; or it may not be able to (layers whose input is the collective's
// result). The last arriver waits for nobody and shows most of its work, so the two
// cases look alike. In the first, ranks are compared from arrival to arrival: what
// one computed is its stay in the operation before and the gap behind that, or at
// most so much where there is no gap. In the second, by their gaps. An excess is
// what remains in both cases, and the rank's pace where both cases are one.

// hiddenReach is how many operations back one is looked for that still ran: those
// of other communicators can lie between.
const hiddenReach = 4

// hidingShare is how much longer than the gap behind it an operation must have run
// to have hidden what came next: what shows in the gap is a hundredth of it then.
const hidingShare = 100

// overlapOf is the communication of a rank that still ran when it launched another
// operation.
type overlapOf struct {
	stay    int64 // in it
	hidden  bool  // the operation began as soon as it ended
	earlier bool  // it is of the step before
}

// overlap returns that of the party's operation; false where there is none.
func (v *rankView) overlap(p party) (o overlapOf, ok bool) {
	launch := v.launchOf(p.op)
	if !v.dark || launch == 0 {
		return o, false
	}
	for back := 1; back <= hiddenReach; back++ {
		start, end, known := v.communicated(p.pos - back)
		if !known {
			break
		}
		if gap := p.op.start - end; gap >= 0 && launch < end {
			return overlapOf{end - start, gap <= max(launchLatency, (end-start)/hidingShare), p.pos < back}, true
		}
	}
	return o, false
}

// overlap fills what the members' communication before the meeting may have hidden.
// That of the step before hides work only where most began as soon as it ended
// (parameters that are fetched in advance). Elsewhere the work waited for its result,
// as a forward pass does for reduced gradients, and a gap is all of it. It reports whether
// there is such a member.
func (mr *meetingRecord) overlap(parties []party) (some bool) {
	earlier, hidden := false, 0
	for i, p := range parties {
		o, ok := p.at.overlap(p)
		m := &mr.members[i]
		m.stay, m.hidden, m.overlapped = o.stay, o.hidden, ok
		some = some || ok
		earlier = earlier || o.earlier
		if o.hidden {
			hidden++
		}
	}
	if !earlier || 2*hidden >= len(parties) {
		return some
	}
	for i := range parties {
		m := &mr.members[i]
		m.stay, m.hidden, m.overlapped = 0, false, false
	}
	return false
}

// communicated returns the times of the rank's i-th communication in the step; those
// of the step before have numbers below 0.
func (v *rankView) communicated(i int) (start, end int64, ok bool) {
	if i >= 0 {
		return v.comms[i].start, v.comms[i].end, true
	}
	if i += v.tailLen(); i >= 0 {
		return v.tail.ops[i].start, v.tail.ops[i].exit, true
	}
	return 0, 0, false
}

// between is what the member computed at most since it came to the operation
// before; where it is not hidden, exactly that.
func (m *memberRecord) between() int64 { return m.stay + m.own.compute }

// weighOverlap gives an overlapped member the excess that it has whether or not
// work goes on beside communication, and remembers the most that it may have. Its cohort
// counts it too.
func (m *memberRecord) weighOverlap(c *cohort) {
	if !m.overlapped {
		return
	}
	some := len(c.between) > 1
	if some {
		m.beside = m.between() - stats.MedianWithout(c.between, m.between())
	}
	if !some || m.hidden {
		m.excess.compute = min(0, m.excess.compute) // when it was ready is not known, or nobody else's work
		return
	}
	beside, apart := m.beside, m.excess.compute
	m.censored, m.limit = apart > max(0, beside), apart
	switch {
	case beside > 0 && apart > 0:
		m.excess.compute = min(beside, apart)
	case beside < 0 && apart < 0:
		m.excess.compute = max(beside, apart)
	default:
		m.excess.compute = 0
	}
}

// balance lets a rank's excess over its overlapped segments of a step be no more than
// what it took longer over all of them. Nobody waits for those who run ahead, so that
// a rank that is behind stays it for long, whoever is slower: in each segment that
// chance makes long it exceeds its peers, and one that is short takes nothing back.
func (rec *record) balance() {
	type sums struct{ granted, longer int64 }
	of := make([]sums, len(rec.ranks))
	each := func(do func(m *memberRecord, s *sums)) {
		for _, mr := range rec.meets {
			for i := range mr.members {
				if m := &mr.members[i]; m.weighed && m.overlapped {
					do(m, &of[m.rank])
				}
			}
		}
	}
	each(func(m *memberRecord, s *sums) {
		s.granted += max(0, m.excess.compute)
		s.longer += m.beside
	})
	each(func(m *memberRecord, s *sums) {
		if had := m.excess.compute; had > 0 && s.longer < s.granted {
			m.excess.compute = int64(float64(had) * float64(max(0, s.longer)) / float64(s.granted))
			m.censored, m.limit = true, max(m.limit, had)
		}
	})
}

// pace sums what a rank and its peers computed in those segments of a step that
// begin after all communication, and what the rank did where its excess may be more.
type pace struct{ own, peers, censored int64 }

// fairShare is what must be known of a rank's work, as a share of the rest, to tell
// of its pace: a hundred microseconds before a barrier tell nothing of a backward
// pass.
const fairShare = 0.25

// slower returns the share of the rank's compute that its peers would not need.
func (p pace) slower() float64 {
	if p.peers <= 0 || p.own <= p.peers || float64(p.own) < fairShare*float64(p.censored) {
		return 0
	}
	return 1 - float64(p.peers)/float64(p.own)
}

// uncover gives the members whose excess is not known for certain that which their
// rank's pace in the other segments of the step implies, where that is more.
func (rec *record) uncover() {
	paces := make([]pace, len(rec.ranks))
	for _, mr := range rec.meets {
		for i := range mr.members {
			m := &mr.members[i]
			p := &paces[m.rank]
			switch {
			case !m.weighed:
			case m.censored:
				p.censored += m.own.compute
			case m.overlapped: // whether that is all is chance: no witness
			default:
				p.own += m.own.compute
				p.peers += m.own.compute - m.excess.compute
			}
		}
	}
	for _, mr := range rec.meets {
		for i := range mr.members {
			if m := &mr.members[i]; m.weighed && m.censored {
				byPace := int64(float64(m.own.compute) * paces[m.rank].slower())
				m.excess.compute = max(m.excess.compute, min(byPace, m.limit))
			}
		}
	}
}
