// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A rank whose numbers are off (it missed a collective once, or its source began to count
// later) meets others in the wrong collectives, or nobody: it seems late or early by a whole
// collective, and hides who is. In a step in which it did as many as all others, numbered one
// after the other, its numbers are theirs and a constant.

// counted are the numbered collectives of one rank in one group and step, by number.
type counted struct {
	at  *rankView
	ops []*commOp
}

func (c *counted) low() int64  { return c.ops[0].number }
func (c *counted) high() int64 { return c.ops[len(c.ops)-1].number }

// whole reports whether no number is missing in between.
func (c *counted) whole() bool { return c.high()-c.low() == int64(len(c.ops)-1) }

func numbered(op *commOp) bool {
	return op.numbered && op.form.kind == model.KindCollective && op.form.scope != model.ScopeOrdinal && op.form.scope != model.ScopeProcess
}

// recount mends the numbers of ranks that are off, and takes them away where nobody knows
// whether they are. It notes whose.
func (j *job) recount(views []*rankView) {
	if !offset(views) {
		return
	}
	j.faults.recounts++
	groups := map[uint32][]*counted{}
	var order []uint32 // by first use, so that what is said does not depend on chance
	for _, v := range views {
		for i := range v.comms {
			op := &v.comms[i]
			if !numbered(op) {
				continue
			}
			of := groups[op.form.group]
			if of == nil {
				order = append(order, op.form.group)
			}
			if len(of) == 0 || of[len(of)-1].at != v {
				of = append(of, &counted{at: v})
				groups[op.form.group] = of
			}
			last := of[len(of)-1]
			last.ops = append(last.ops, op)
		}
	}
	for _, group := range order {
		of := groups[group]
		for _, c := range of {
			slices.SortStableFunc(c.ops, func(a, b *commOp) int { return cmp.Compare(a.number, b.number) })
		}
		j.recountGroup(of)
	}
}

// offset reports whether ranks begin to count at different numbers in some group.
func offset(views []*rankView) bool {
	type lowest struct {
		group uint32
		low   int64
	}
	first := map[uint32]int64{}
	var here []lowest
	var at byGroup
	for _, v := range views {
		here = here[:0]
		for i := range v.comms {
			op := &v.comms[i]
			if !numbered(op) {
				continue
			}
			k, known := at.place(op.form.group, len(here))
			if !known {
				here = append(here, lowest{op.form.group, op.number})
				continue
			}
			here[k].low = min(here[k].low, op.number)
		}
		for _, l := range here {
			at.forget(l.group)
		}
		for _, l := range here {
			if low, ok := first[l.group]; !ok {
				first[l.group] = l.low
			} else if low != l.low {
				return true
			}
		}
	}
	return false
}

func (j *job) recountGroup(of []*counted) {
	usual, most := majority(of)
	if usual == nil {
		return
	}
	for _, c := range of {
		by := c.low() - usual.low()
		if by == 0 || len(c.ops) != len(usual.ops) || !c.whole() {
			continue
		}
		told := c.off(usual, by)
		if told == offMaybe && j.faults.counts(c, by) {
			told = offSurely
		}
		if told == offNot || (told == offMaybe && !most) {
			continue // of few nobody knows who is right
		}
		for _, op := range c.ops {
			if op.numbered = told == offSurely; op.numbered {
				op.number -= by
			}
		}
		j.e.stats.OpsMiscounted += int64(len(c.ops))
		j.faults.miscount(c, by, told == offSurely)
	}
}

// majority returns one of those that most of a group's ranks count like, of equally many
// those that count from the lowest number, and whether they are more than half of three or
// more: others are wrong then. nil where nobody's numbers are whole.
func majority(of []*counted) (usual *counted, most bool) {
	type span struct {
		low, high int64
		n         int
	}
	count := map[span]int{}
	best := 0
	for _, c := range of {
		if !c.whole() {
			continue
		}
		s := span{c.low(), c.high(), len(c.ops)}
		count[s]++
		if n := count[s]; n > best || (n == best && s.low < usual.low()) {
			best, usual = n, c
		}
	}
	return usual, 2*best > len(of) && len(of) > 2
}

// Whether a rank's numbers are off.
type offness int

const (
	offNot    offness = iota // its collectives belong to other steps than theirs
	offMaybe                 // nobody knows
	offSurely                // the same collectives bear other numbers
)

// nearer is how many times less the ends of true partners scatter than those of wrong ones:
// members leave one collective together, but between collectives times differ.
const nearer = 4

// off tells whether the rank's numbers are off by so many against usual ones, first by what
// can have been on one clock: members of a collective are in it together for a while.
func (c *counted) off(usual *counted, by int64) offness {
	if on := c.at.ownClock(); on != "" && on == usual.at.ownClock() {
		plain, moved := together(c.ops, usual.ops, by), together(c.ops, usual.ops, 0)
		switch {
		case moved && !plain:
			return offSurely
		case plain && !moved:
			return offNot
		}
	}
	return off(c.ops, usual.ops, by)
}

// together reports whether nobody of those that make all wait left before the other came,
// the i-th of ops paired with the one so many places on.
func together(ops, usual []*commOp, by int64) bool {
	for i, a := range ops {
		k := int64(i) + max(-maxShift-1, min(maxShift+1, by))
		if k < 0 || k >= int64(len(usual)) {
			continue
		}
		b := usual[k]
		if !model.Synchronising(a.form.collective) || a.inferred || b.inferred || a.clock != "" || b.clock != "" {
			continue
		}
		if max(a.start, b.start)-min(a.end, b.end) > int64(clock.DefaultResolution) {
			return false
		}
	}
	return true
}

// off tells which of two explanations of a rank's numbers holds, by what the collectives
// moved and by when they ended: that it counts differently, or that it counts as the others
// do and its steps hold other collectives. Both clocks may be as they like.
func off(ops, usual []*commOp, by int64) offness {
	shift := int(max(-maxShift-1, min(maxShift+1, by)))
	plain, same, pairs := scatter(ops, usual, shift)
	moved, alike, _ := scatter(ops, usual, 0)
	switch {
	case alike && !same && pairs > 0:
		return offSurely
	case same && !alike:
		return offNot
	case pairs < 2 || moved == plain:
		return offMaybe
	case nearer*moved <= plain:
		return offSurely
	case nearer*plain <= moved:
		return offNot
	}
	return offMaybe
}

// scatter pairs the i-th of ops with the one shift places on, and returns by how much the
// differences of their ends vary, whether all pairs can be one collective, and their number.
func scatter(ops, usual []*commOp, shift int) (spread int64, same bool, pairs int) {
	var low, high int64
	same = true
	for i, a := range ops {
		k := i + shift
		if k < 0 || k >= len(usual) {
			continue
		}
		b := usual[k]
		if a.form.collective != b.form.collective || (sameBytes(a.form.collective) && a.bytes >= 0 && b.bytes >= 0 && a.bytes != b.bytes) {
			same = false
		}
		d := a.end - b.end
		if pairs == 0 {
			low, high = d, d
		}
		low, high = min(low, d), max(high, d)
		pairs++
	}
	return high - low, same, pairs
}

// miscounted is a rank that counts differently from the others of a group.
type miscounted struct {
	comm          string
	by            int64
	mended, taken int // steps
	// The latest recounts in which they grew: a rank may count differently in several groups.
	lastMended, lastTaken int64
}

// counts reports whether the rank was known to count so in a step before.
func (f *faults) counts(c *counted, by int64) bool {
	m := f.miscounts[c.at.rank.Rank]
	return m != nil && m.mended > 0 && m.by == by && m.comm == c.ops[0].form.comm
}

// miscount notes it.
func (f *faults) miscount(c *counted, by int64, mended bool) {
	rank := c.at.rank.Rank
	m := f.miscounts[rank]
	if m == nil {
		if len(f.miscounts) >= maxTwins {
			f.unlistedCounts++
			return
		}
		if f.miscounts == nil {
			f.miscounts = map[int64]*miscounted{}
		}
		m = &miscounted{}
		f.miscounts[rank] = m
	}
	if f.recounts != max(m.lastMended, m.lastTaken) {
		m.comm, m.by = c.ops[0].form.comm, by
	}
	steps, last := &m.taken, &m.lastTaken
	if mended {
		steps, last = &m.mended, &m.lastMended
	}
	if *last != f.recounts {
		*steps, *last = *steps+1, f.recounts
	}
}

func (m *miscounted) say(rank int64) string {
	s := fmt.Sprintf("rank %d counts its collectives in communicator %s by %+d differently from other members: ", rank, m.comm, m.by)
	if m.mended > 0 {
		s += "in " + count(m.mended, "step") + " their bytes and times say which are the same, and they were taken for these"
	}
	if m.mended > 0 && m.taken > 0 {
		s += "; "
	}
	if m.taken > 0 {
		s += "in " + count(m.taken, "step") + " nothing says which are the same, and they met nobody"
	}
	return s
}
