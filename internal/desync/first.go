// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"slices"
)

// maxLacking bounds the operations of one rank that are compared: one of each communicator.
const maxLacking = 32

// firstLacking is the operation that comes first in the program of rank v, of those that v has not
// come to and others have: named is the one that was found already. Who goes on to the next
// operation waits because that one does not end, however many do so.
func (w *world) firstLacking(v int32, named *node) *node {
	if named == nil {
		return nil
	}
	all := w.lacks(v)
	if !slices.Contains(all, named) {
		all = append(all, named)
	}
	best := all[0]
	for _, n := range all[1:] {
		if w.precedes(n, best, v) {
			best = n
		}
	}
	return best
}

// lacks returns the operations that rank v has not come to, the first of each communicator.
func (w *world) lacks(v int32) (all []*node) {
	least := map[lane]*node{}
	for _, i := range w.nodesOf(v) {
		n := w.nodes[i]
		switch l := (lane{n.key.group, n.key.fn}); {
		case !n.misses(v) && !slices.Contains(n.absent, v):
		case n.message || n.local:
			all = append(all, n)
		case least[l] == nil || n.key.seq < least[l].key.seq:
			least[l] = n
		}
	}
	w.addPassed(v, least)
	for _, n := range least {
		all = append(all, n)
	}
	slices.SortFunc(all, func(x, y *node) int { return compareKeys(x.key, y.key) })
	return all[:min(len(all), maxLacking)]
}

// addPassed adds operations that rank v has not come to and in which nobody waits any more: who
// sends to a root, and who receives from it, is through without the others.
func (w *world) addPassed(v int32, least map[lane]*node) {
	view := w.ranks[v].view
	if view == nil {
		return
	}
	for i := range view.comms {
		c := &view.comms[i]
		if c.p2pShared || c.gloo || c.inferred || !w.compares(c.group) {
			continue
		}
		for _, f := range c.fronts {
			l := lane{c.group, f.fn}
			if f.enqueued == none || !view.counts(c, f) || least[l] != nil && least[l].key.seq <= f.enqueued+1 {
				continue
			}
			if n := w.nodeOf(opKey{c.group, f.fn, f.enqueued + 1}); n != nil {
				least[l] = n
			}
		}
	}
}

// nodeOf returns a collective, whether somebody waits in it or not; nil where no member recorded
// it.
func (w *world) nodeOf(k opKey) *node {
	key := nodeKey{opKey: k, src: none, dst: none}
	if i, ok := w.byKey[key]; ok {
		return w.nodes[i]
	}
	if n, ok := w.aside[key]; ok {
		return n
	}
	n := w.recordedNode(key)
	if w.aside == nil {
		w.aside = map[nodeKey]*node{}
	}
	w.aside[key] = n
	return n
}

func (w *world) recordedNode(key nodeKey) *node {
	g := w.a.groups.all[key.group]
	n := &node{key: key, group: g, idle: -1, before: -1}
	for _, id := range g.members {
		r := w.index[id]
		v := w.ranks[r].view
		if v == nil {
			continue
		}
		if o := v.find(key.opKey); o != nil {
			n.name = max(n.name, w.a.sigs.all[o.sig].Name)
			if v.isOpen(o) {
				n.holders = append(n.holders, holder{rank: r, op: o, at: -1})
			}
		}
	}
	if n.name == "" {
		return nil
	}
	slices.SortFunc(n.holders, func(x, y holder) int { return cmp.Compare(x.rank, y.rank) })
	n.name = cmp.Or(w.mostCalled(n), n.name)
	w.judgeCollective(n)
	return n
}

// find returns a collective of a view; nil where it is not recorded.
func (v *view) find(k opKey) *op {
	for o := range v.all() {
		if o.opKey == k && !o.message() {
			return o
		}
	}
	return nil
}

func (v *view) isOpen(o *op) bool {
	return slices.ContainsFunc(v.open, func(p op) bool { return p.opKey == o.opKey && p.order == o.order && !p.message() })
}
