// SPDX-License-Identifier: Apache-2.0

package desync

import "slices"

const (
	// maxUnseen bounds the ranks without a state whose operations are compared.
	maxUnseen = 64
	// maxElsewhere bounds the candidates of other operations that are named.
	maxElsewhere = 4
)

// lackedBy reports whether a member is not known to have come to an operation.
func (n *node) lackedBy(v int32) bool {
	return n.misses(v) || slices.Contains(n.absent, v) || slices.Contains(n.unknown, v)
}

// firstUnseen is the operation that comes first of those that candidates without a state lack; n where
// none of them lacks any. Ranks that wait further on wait because that one does not end.
func (w *world) firstUnseen(n *node, candidates []int32) *node {
	if n == nil || n.message {
		return n
	}
	best, left := n, maxUnseen
	for _, v := range candidates {
		if w.ranks[v].view != nil || left == 0 {
			continue
		}
		left--
		other := w.firstOf(v)
		if other == nil || other == best {
			continue
		}
		if w.orderFor(other, best, v) < 0 || !slices.ContainsFunc(candidates, best.lackedBy) {
			best = other
		}
	}
	return best
}

// firstOf is the collective that comes first of those that ranks wait in and a rank without a state
// lacks; nil where there is none.
func (w *world) firstOf(v int32) (best *node) {
	for _, n := range w.nodes {
		if n.message || n.maybeOver() || !n.lackedBy(v) {
			continue
		}
		if best == nil || w.precedes(n, best, v) {
			best = n
		}
	}
	return best
}

// lackElsewhere names what candidates lack that are no members of the operation of their root.
func (w *world) lackElsewhere(n *node, candidates []int32) (notes []string) {
	if n == nil || n.message || len(n.group.members) == 0 {
		return nil
	}
	for _, v := range candidates {
		if w.ranks[v].view != nil || n.group.has(w.ranks[v].id) || len(notes) == maxElsewhere {
			continue
		}
		if other := w.firstOf(v); other != nil {
			notes = append(notes, "rank "+number(w.ranks[v].id)+" is no member of it, and lacks "+other.opText(other.key.seq)+" of "+other.group.label())
		}
	}
	return notes
}

// behindEvicted is the operation that some ranks have not enqueued, where the operations themselves are
// not recorded any more and the numbers of one communicator alone differ; nil elsewhere. few: it is fewer
// than half of its ranks; then communicators of which more are behind do not count.
func (w *world) behindEvicted() (only *node, few bool) {
	at := map[lane][]voter{}
	var lanes []lane
	for i, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for k := range r.view.comms {
			c := &r.view.comms[k]
			for _, f := range c.fronts {
				if l := (lane{c.group, f.fn}); f.enqueued != none && !c.p2pShared {
					if at[l] == nil {
						lanes = append(lanes, l)
					}
					at[l] = append(at[l], voter{int32(i), r.view})
				}
			}
		}
	}
	var some, many []*node
	for _, l := range lanes {
		n := w.behindIn(l, at[l])
		switch {
		case n == nil:
		case 2*len(n.missing) < len(at[l]):
			some = append(some, n)
		default:
			many = append(many, n)
		}
	}
	switch {
	case len(some) == 1:
		return some[0], true
	case len(some) == 0 && len(many) == 1:
		return many[0], false
	}
	return nil, false
}

// behindIn is the first operation of a lane that some of its ranks have not enqueued.
func (w *world) behindIn(l lane, of []voter) *node {
	enqueued := func(v voter) int64 { return v.view.comm(l.group).front(l.fn, false).enqueued }
	least, most := enqueued(of[0]), enqueued(of[0])
	hides := false
	for _, v := range of {
		least, most = min(least, enqueued(v)), max(most, enqueued(v))
		c := v.view.comm(l.group)
		hides = hides || v.view.hidesIn(c, c.front(l.fn, false))
	}
	if least == most || !hides {
		return nil
	}
	n := &node{key: nodeKey{opKey: opKey{l.group, l.fn, least + 1}, src: none, dst: none}, group: w.a.groups.all[l.group], idle: -1, before: -1}
	for _, v := range of {
		if enqueued(v) == least {
			n.missing = append(n.missing, v.rank)
		}
	}
	return n
}
