// SPDX-License-Identifier: Apache-2.0

package causality

import "slices"

// allPairs is how many clocks a meeting may have for each pair to be looked at.
// Of more, those are whose numbers are a power of two apart, which connects all
// of them in a few hops.
const allPairs = 8

func (m *meeting) few() bool {
	return len(m.receivers.list) <= allPairs && len(m.senders.list) <= allPairs
}

// nearPair is a pair of sides, as the place of the receiver and, in the lower half, of the sender.
type nearPair uint64

func (p nearPair) of(m *meeting) (s, r *side) {
	return &m.senders.list[uint32(p)], &m.receivers.list[p>>32]
}

// pairs calls visit for the sides that bound each other, one of which is new, in the order of the receivers and
// then of the senders. A job of N nodes does this N times in a step: only new sides are walked.
func (ms *meetings) pairs(m *meeting, visit func(first, second *side)) {
	if m.few() {
		for i := range m.receivers.list {
			for j := range m.senders.list {
				if s, r := &m.senders.list[j], &m.receivers.list[i]; m.bounds(s, r) {
					visit(s, r)
				}
			}
		}
		return
	}
	ms.near = m.near(ms.near[:0], ms.top)
	slices.Sort(ms.near)
	for _, p := range ms.near {
		if s, r := p.of(m); m.bounds(s, r) {
			visit(s, r)
		}
	}
}

// bounds reports whether a sender and a receiver bound each other, and one of them is new.
func (m *meeting) bounds(s, r *side) bool {
	return !r.span.Clock.gone && !s.span.Clock.gone && (r.batch == m.touched || s.batch == m.touched) && r.span.Ref != s.span.Ref
}

// near adds the pairs of near clocks of which one side is new, each once.
func (m *meeting) near(to []nearPair, top int) []nearPair {
	for j := range m.senders.fresh(m.touched) {
		for i := range m.receivers.near(m.senders.list[j].span.Clock, top) {
			to = append(to, nearPair(i)<<32|nearPair(j))
		}
	}
	for i := range m.receivers.fresh(m.touched) {
		for j := range m.senders.near(m.receivers.list[i].span.Clock, top) {
			if m.senders.list[j].batch != m.touched {
				to = append(to, nearPair(i)<<32|nearPair(j))
			}
		}
	}
	return to
}

// worst returns the last start and the first end, by their stamps.
func (m *meeting) worst() (first, second *side) {
	first = m.senders.extreme(m.touched, func(a, b *Span) bool { return a.Begin > b.Begin })
	second = m.receivers.extreme(m.touched, func(a, b *Span) bool { return a.Until < b.Until })
	return first, second
}
