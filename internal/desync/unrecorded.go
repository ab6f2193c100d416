// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// unrecorded is the place in the order of issue of what no state holds.
const unrecorded = -1

func (o *op) guessed() bool { return o.order == unrecorded }

func (v *view) guesses() bool {
	return slices.ContainsFunc(v.open, func(o op) bool { return o.guessed() })
}

// addUnrecorded adds the operations in which ranks wait that their state no longer holds, or
// does not hold yet: numbers are contiguous, so that the one behind the last that is over is
// open if anything is.
func (w *world) addUnrecorded() {
	plain := w.plainGroups()
	for _, r := range w.ranks {
		if r.view == nil || r.view.onlyActive {
			continue
		}
		for i := range r.view.comms {
			if c := &r.view.comms[i]; plain[c.group] && !c.p2pShared && !c.inferred && len(c.fronts) == 1 {
				w.addBehind(r.view, c, c.fronts[0])
			}
		}
	}
}

// plainGroups are those whose numbers count collectives and nothing else.
func (w *world) plainGroups() []bool {
	plain := make([]bool, len(w.a.groups.all))
	message := make([]bool, len(plain))
	for _, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for _, list := range [][]op{r.view.open, r.view.done} {
			for i := range list {
				plain[list[i].group] = true
				message[list[i].group] = message[list[i].group] || list[i].message()
			}
		}
	}
	for i, g := range w.a.groups.all {
		plain[i] = plain[i] && !message[i] && !g.shared && g.scope == model.ScopeComm
	}
	return plain
}

func (w *world) addBehind(v *view, c *comm, f front) {
	if f.enqueued == none || f.completed == none || f.enqueued <= f.completed {
		return
	}
	seq := f.completed + 1
	torn, lost := v.partial != "", f.kept != none && f.kept > seq
	if !torn && !lost || v.has(opKey{c.group, f.fn, seq}) {
		return
	}
	o := op{
		opKey: opKey{c.group, f.fn, seq}, sig: w.a.sigs.of(&model.StateOp{}),
		order: unrecorded, batch: none, peer: none, nth: none,
	}
	if lost {
		v.open = slices.Insert(v.open, 0, o) // before all that is still there
	} else {
		v.open = append(v.open, o)
	}
}

// has reports whether an operation is recorded.
func (v *view) has(k opKey) bool { return v.find(k) != nil }

// nameNodes names operations as most of those in them call them; where nobody recorded it, as
// those who are through do.
func (w *world) nameNodes() {
	unnamed, lanes := map[opKey]*node{}, map[lane][]*node{}
	for _, n := range w.nodes {
		if n.name = w.mostCalled(n); n.name == "" && !n.message {
			unnamed[n.key.opKey] = n
			l := lane{n.key.group, n.key.fn}
			lanes[l] = append(lanes[l], n)
		}
	}
	if len(unnamed) == 0 {
		return
	}
	for _, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for i := range r.view.done {
			o := &r.view.done[i]
			if o.message() {
				continue
			}
			name := w.a.sigs.all[o.sig].Name
			if n := unnamed[o.opKey]; n != nil {
				n.name = max(n.name, name)
			}
			for _, n := range lanes[lane{o.group, o.fn}] {
				n.outrun = n.outrun || o.seq > n.key.seq && model.Synchronising(name)
			}
		}
	}
}

func (w *world) mostCalled(n *node) (most string) {
	count := map[string]int{}
	for i := range n.holders {
		count[w.a.sigs.all[n.holders[i].op.sig].Name]++
	}
	for name, c := range count {
		if name != "" && (most == "" || cmp.Or(cmp.Compare(c, count[most]), cmp.Compare(most, name)) > 0) {
			most = name
		}
	}
	return most
}
