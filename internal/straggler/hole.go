// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
)

// Spans get lost. What a rank waited in a collective of which nothing was recorded
// looks like idleness of its host, and must accuse nobody: where the numbers of its
// communication have a gap, the time between the neighbours is a hole, in which idleness
// says nothing.

// numbers are the least and the largest number of a stream in a step, over all who
// take part in it.
type numbers struct{ low, high int64 }

// size returns how many numbers there are, which need not be so many operations.
func (n numbers) size() float64 { return float64(n.high) - float64(n.low) + 1 }

// findHoles fills the times of the step in which communication of the rank may be
// missing: between those that have the numbers next to a missing one; and where a stream is
// missing that it had in the step before.
func (v *rankView) findHoles(t *streamTable, does *roleMemory) {
	v.holes, v.seen = v.holes[:0], v.seen[:0]
	for i := range v.comms {
		op := &v.comms[i]
		switch {
		case op.met && op.stream >= 0:
			v.count(v.streams[op.stream].id, t)
		case op.numbered:
			if id, met := t.find(v.streamOf(op)); met {
				v.count(id, t)
			}
		}
	}
	for _, s := range v.seen {
		n := t.known[s.id].of
		all := n.size()
		v.told += all
		if lost := all - float64(s.count); lost > 0 {
			v.lost += lost
			v.findMissing(t.known[s.id].key, n)
		}
	}
	if v.holes = merge(v.holes); v.dark && v.unlaunched {
		v.holes = append(v.holes[:0], span{v.start, v.end}) // the launches were all there was
	}
	does.lacks(v, t)
	for _, s := range v.seen {
		t.known[s.id].seen = 0
	}
}

// streamSeen is how many of a stream the rank recorded.
type streamSeen struct {
	id    int32
	count int
}

func (v *rankView) count(id int32, t *streamTable) {
	k := t.known[id].seen
	if k == 0 {
		if len(v.seen) >= maxStreams {
			return
		}
		v.seen = append(v.seen, streamSeen{id: id})
		k = int32(len(v.seen))
		t.known[id].seen = k
	}
	v.seen[k-1].count++
}

// findMissing adds the holes of one stream. Messages need not be numbered in the order
// in which they were sent.
func (v *rankView) findMissing(key streamKey, n numbers) {
	var ops []*commOp
	for i := range v.comms {
		if op := &v.comms[i]; op.numbered && v.streamOf(op) == key {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b *commOp) int { return cmp.Compare(a.number, b.number) })
	last, end := n.low-1, v.start
	for _, op := range ops {
		if op.number > last+1 {
			v.hole(end, op.start)
		}
		last, end = op.number, op.end
	}
	if n.high > last {
		v.hole(end, v.end)
	}
}

// lacks makes a hole of the whole step where a stream of the step before is missing,
// which others went on with: where its operations were is not known.
func (m *roleMemory) lacks(v *rankView, t *streamTable) {
	for _, was := range m.streams {
		id, goesOn := t.findNear(was.key, was.id)
		if goesOn && t.known[id].seen == 0 {
			n := t.known[id].of
			v.holes = append(v.holes[:0], span{v.start, v.end})
			v.lost, v.told = v.lost+n.size(), v.told+n.size()
			break
		}
	}
	m.streams = m.streams[:0]
	for i := range v.streams {
		m.streams = append(m.streams, streamAt{v.streams[i].key, v.streams[i].id})
	}
}

func (v *rankView) hole(from, to int64) {
	if to != from {
		v.holes = append(v.holes, span{min(from, to), max(from, to)})
	}
}

// lostShare returns what share of the rank's communication was lost. Whatever loses spans
// does not choose, so that as much of everything else is taken to be lost.
func (v *rankView) lostShare() float64 { return v.lost / max(1, v.told) }

// holed reports whether communication may be missing between two instants.
func (v *rankView) holed(from, to int64) bool {
	return slices.ContainsFunc(v.holes, func(h span) bool { return h.start < to && h.end > from })
}

// merge sorts spans and joins those that touch.
func merge(of []span) []span {
	slices.SortFunc(of, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	n := 0
	for _, s := range of {
		if n > 0 && s.start <= of[n-1].end {
			of[n-1].end = max(of[n-1].end, s.end)
			continue
		}
		of[n] = s
		n++
	}
	return of[:n]
}
