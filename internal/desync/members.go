// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// judgeMembers tells of every node what the members did that do not have it open.
func (w *world) judgeMembers() {
	lanes := map[opKey][]int32{}
	for i, n := range w.nodes {
		switch {
		case n.message:
			w.judgeMessage(n)
		case !n.local:
			k := n.key.opKey
			k.seq = 0
			lanes[k] = append(lanes[k], int32(i))
		}
	}
	for _, lane := range lanes {
		slices.SortFunc(lane, func(x, y int32) int { return int(w.nodes[x].key.seq - w.nodes[y].key.seq) })
		for i, at := range lane {
			n := w.nodes[at]
			if i > 0 {
				n.before = lane[i-1]
			}
			if i >= maxHeads {
				w.a.stats.HeadsDropped++
				continue
			}
			w.judgeCollective(n)
		}
	}
}

func (w *world) judgeCollective(n *node) {
	var unsure []int32
	for _, id := range n.group.members {
		r := w.index[id]
		if n.holds(r) != nil {
			continue
		}
		switch w.position(w.ranks[r], n) {
		case atDone:
			n.done = append(n.done, r)
		case atMissing:
			n.missing = append(n.missing, r)
		case atAbsent:
			n.absent = append(n.absent, r)
		case atEither:
			unsure = append(unsure, r)
		default:
			n.unknown = append(n.unknown, r)
		}
	}
	// Who is either through or has not come is not through where nobody can be yet.
	blocked := len(n.missing) > 0 && model.Synchronising(n.name)
	if blocked {
		n.missing = append(n.missing, unsure...)
	} else {
		n.unknown = append(n.unknown, unsure...)
	}
	slices.Sort(n.missing)
	slices.Sort(n.unknown)
}

// position is where a rank is about an operation that it does not have open.
type position int

const (
	atUnknown position = iota
	atDone
	atMissing
	atAbsent
	atEither // through, or not there yet
)

// position compares a rank's numbers with an operation's.
func (w *world) position(r *rank, n *node) position {
	v := r.view
	if v == nil {
		return atAbsent
	}
	c := v.comm(n.key.group)
	if c == nil {
		if v.partial != "" || n.group.inferred || len(v.comms) == 0 {
			return atUnknown
		}
		if v.source != n.source(w) { // another source, that names communicators otherwise
			return w.elsewhere(v)
		}
		return atMissing
	}
	f := c.front(n.key.fn, false)
	if f == nil || c.p2pShared {
		return v.byOperations(n, c, f)
	}
	switch seq := n.key.seq; {
	case f.completed != none && f.completed >= seq:
		return atDone
	case f.enqueued != none && f.enqueued < seq && v.counts(c, *f):
		return atMissing
	case f.enqueued == none && f.completed == none:
		return v.byOperations(n, c, f)
	case v.partial != "":
		return atUnknown
	case f.kept != none && seq < f.kept && !v.onlyActive, f.completed != none && !v.over(n.key.opKey):
		return atUnknown // overwritten, and perhaps open still
	default:
		// It was enqueued, and is not open: it is over.
		return atDone
	}
}

// over reports whether an operation was seen to be over.
func (v *view) over(k opKey) bool {
	for i := range v.done {
		if v.done[i].opKey == k && !v.done[i].message() {
			return true
		}
	}
	return false
}

// byOperations decides where numbers do not count: by the operations that are recorded.
func (v *view) byOperations(n *node, c *comm, f *front) position {
	if v.partial != "" {
		return atUnknown
	}
	lowest, highest := none, none
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			o := &list[i]
			if o.group != n.key.group || o.fn != n.key.fn || o.message() {
				continue
			}
			if o.seq == n.key.seq {
				return atDone // it is not open
			}
			if lowest == none || o.seq < lowest {
				lowest = o.seq
			}
			highest = max(highest, o.seq)
		}
	}
	switch {
	case highest != none && highest > n.key.seq && (lowest < n.key.seq || v.onlyActive):
		return atDone // a later one was enqueued, and this one is not open
	case highest != none && highest > n.key.seq:
		return atUnknown // overwritten
	case v.onlyActive:
		return atEither
	case f == nil && highest == none && c.p2pShared:
		return atEither
	}
	return atMissing
}

// elsewhere is where a rank is about an operation of a source that says nothing of it: with
// nothing open at all, it is not in it.
func (w *world) elsewhere(v *view) position {
	if len(v.open) == 0 && !v.hides() {
		return atEither
	}
	return atUnknown
}

// source is who told of a node.
func (n *node) source(w *world) model.StateSource {
	for i := range n.holders {
		return w.ranks[n.holders[i].rank].view.source
	}
	return ""
}
