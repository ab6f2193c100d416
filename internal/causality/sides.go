// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"iter"
	"math/bits"
)

// sides are one per clock.
type sides struct {
	list   []side
	at     map[int]int // by index of the clock, beyond a few
	newest int32       // 1 + the side that changed last; 0 none
	best   int32       // 1 + the side that extreme returned last; 0 none
}

// side is one clock's part in a meeting: its last start, or its first end.
type side struct {
	span  Span
	batch uint64
	index int32 // in its batch
	older int32 // 1 + the side of the same batch that changed before it; 0 none
	was   emitted
}

// fewSides is how many clocks are looked through rather than looked up.
const fewSides = 16

func (ss *sides) keep(s *Span, batch uint64, index int, rather func(there *Span) bool) {
	i := ss.of(s.Clock)
	if i < 0 {
		i = len(ss.list)
		ss.list = append(ss.list, side{})
		if ss.at != nil {
			ss.at[s.Clock.index] = i
		} else if i == fewSides {
			ss.at = make(map[int]int, 2*fewSides)
			for j := range ss.list[:i] {
				ss.at[ss.list[j].span.Clock.index] = j
			}
			ss.at[s.Clock.index] = i
		}
	} else if !rather(&ss.list[i].span) {
		return
	}
	to := &ss.list[i]
	older := to.older
	if to.batch != batch {
		if older = ss.newest; older > 0 && ss.list[older-1].batch != batch {
			older = 0
		}
		ss.newest = int32(i + 1)
	}
	*to = side{span: *s, batch: batch, index: int32(index), older: older}
	to.span.Meet, to.span.Links = nil, nil // of the batch
}

func (ss *sides) of(c *Clock) int {
	if ss.at != nil {
		if i, ok := ss.at[c.index]; ok {
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

// fresh returns the places of the sides that came with a batch, which is the latest, the newest first.
func (ss *sides) fresh(batch uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for next := ss.newest; next > 0; {
			s := &ss.list[next-1]
			if s.batch != batch || !yield(int(next-1)) {
				return
			}
			next = s.older
		}
	}
}

// near returns the places of the sides whose clocks are near to one. No clock has a greater index than top.
func (ss *sides) near(c *Clock, top int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if ss.at == nil {
			for i := range ss.list {
				if near(ss.list[i].span.Clock, c) && !yield(i) {
					return
				}
			}
			return
		}
		if i, ok := ss.at[c.index]; ok && !yield(i) {
			return
		}
		for apart := 1; apart <= max(c.index, top-c.index); apart *= 2 {
			for _, index := range [...]int{c.index - apart, c.index + apart} {
				if i, ok := ss.at[index]; ok && !yield(i) {
					return
				}
			}
		}
	}
}

// near reports whether the indices of two clocks are equal, or a power of two apart.
func near(a, b *Clock) bool {
	d := a.index - b.index
	return bits.OnesCount(uint(max(d, -d))) <= 1
}

// extreme returns the first of the sides that no other is before; nil where all clocks are gone. It
// looks at those of the latest batch, and at all where the one that it returned last has changed.
func (ss *sides) extreme(batch uint64, before func(a, b *Span) bool) *side {
	best := int(ss.best) - 1
	consider := func(i int) {
		s := &ss.list[i].span
		if s.Clock.gone {
			return
		}
		if best < 0 || before(s, &ss.list[best].span) || i < best && !before(&ss.list[best].span, s) {
			best = i
		}
	}
	if best >= 0 && ss.list[best].batch != batch && !ss.list[best].span.Clock.gone {
		for i := range ss.fresh(batch) {
			consider(i)
		}
	} else {
		best = -1
		for i := range ss.list {
			consider(i)
		}
	}
	ss.best = int32(best + 1)
	if best < 0 {
		return nil
	}
	return &ss.list[best]
}
