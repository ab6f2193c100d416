// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"iter"
	"strings"
)

const (
	// maxOrderWitnesses bounds the ranks that are asked which of two operations comes first.
	maxOrderWitnesses = 64
	// maxAsked bounds the ranks that are looked at for that, of which few may tell.
	maxAsked = 1024
	// maxOrders and maxKindOrders bound the answers that are kept; others are found again.
	maxOrders     = 1 << 19
	maxKindOrders = 1 << 16
)

// precedes reports whether x comes before y in the program of rank v, by what is known best: the
// number within one communicator; what other ranks did that are members of both; what ranks did in
// other communicators of the same kinds; last the time at which the first rank entered each.
func (w *world) precedes(x, y *node, v int32) bool {
	if x.key.group == y.key.group && x.key.fn == y.key.fn && !x.message && !y.message {
		return x.key.seq < y.key.seq
	}
	if c := w.orderFor(x, y, v); c != 0 {
		return c < 0
	}
	if a, b := x.since(), y.since(); a != b && a > 0 && b > 0 {
		return a < b
	}
	return preferred(x, y, v)
}

// pair is two operations that are compared for a rank; -1: for whichever, which has come to neither.
type pair struct {
	x, y *node
	rank int32
}

// orderFor keeps what orderOf says: thousands of ranks without a dump lack the same operations.
func (w *world) orderFor(x, y *node, v int32) int {
	k := pair{x, y, -1}
	if x.message || y.message {
		k.rank = v
	}
	c, known := w.orders[k]
	if !known {
		c = w.orderOf(x, y, v)
		if w.orders == nil {
			w.orders = map[pair]int{}
		}
		if len(w.orders) < maxOrders {
			w.orders[k] = c
		}
	}
	return c
}

// orderOf is negative where most ranks that tell came to x before y, positive where to y; ranks in
// the operations themselves count more than those in others of the same kinds.
func (w *world) orderOf(x, y *node, v int32) (same int) {
	left := maxOrderWitnesses
	for _, id := range x.group.members {
		if r := w.index[id]; r != v && y.group.has(id) && left > 0 {
			if c := w.ranks[r].view.came(w.turn(r, x, x.key.group, v), w.turn(r, y, y.key.group, v)); c != 0 {
				same += c
				left--
			}
		}
	}
	if same != 0 {
		return same
	}
	return w.kindOrder(x, y, v)
}

// kindPair is what decides the order of two operations by communicators of the same kinds.
type kindPair struct {
	x, y kindPlace
	same bool // both are of one communicator
}

type kindPlace struct {
	kind commKind
	fn   int32
	seq  int64
	name string
}

// kindOrder keeps what orderByKind says: communicators of one kind often stand at the same place.
func (w *world) kindOrder(x, y *node, v int32) int {
	if x.message || y.message || v < maxAsked && w.ranks[v].view != nil { // then v itself matters
		return w.orderByKind(x, y, v)
	}
	k := kindPair{w.kindPlace(x), w.kindPlace(y), x.key.group == y.key.group}
	c, known := w.kindOrders[k]
	if !known {
		c = w.orderByKind(x, y, v)
		if w.kindOrders == nil {
			w.kindOrders = map[kindPair]int{}
		}
		if len(w.kindOrders) < maxKindOrders {
			w.kindOrders[k] = c
		}
	}
	return c
}

func (w *world) kindPlace(n *node) kindPlace {
	return kindPlace{kind: w.kindOf(n.key.group), fn: n.key.fn, seq: n.key.seq, name: n.name}
}

// orderByKind is orderOf by what ranks did in communicators of the same kinds.
func (w *world) orderByKind(x, y *node, v int32) (same int) {
	kindX, kindY := w.kindOf(x.key.group), w.kindOf(y.key.group)
	left := maxOrderWitnesses
	for i, r := range w.ranks[:min(len(w.ranks), maxAsked)] {
		if r.view == nil || int32(i) == v || left == 0 {
			continue
		}
		if c := w.orderIn(int32(i), x, y, kindX, kindY, v); c != 0 {
			same += c
			left--
		}
	}
	return same
}

// orderIn compares the operations of one rank that have the places of x and y in its own
// communicators of the same kinds.
func (w *world) orderIn(r int32, x, y *node, kindX, kindY commKind, v int32) int {
	view := w.ranks[r].view
	for i := range view.comms {
		a := view.comms[i].group
		if w.kindOf(a) != kindX {
			continue
		}
		at := w.turn(r, x, a, v)
		if !at.known {
			continue
		}
		for j := range view.comms {
			b := view.comms[j].group
			if b == a && x.key.group != y.key.group || w.kindOf(b) != kindY {
				continue
			}
			if c := view.came(at, w.turn(r, y, b, v)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// turn is where a rank has the operation of n's place on communicator g.
type turn struct {
	known bool // whether it came to it
	came  bool
	order int32 // of issue; unrecorded where it is not
}

func (w *world) turn(r int32, n *node, g int32, v int32) turn {
	view := w.ranks[r].view
	if view == nil {
		return turn{}
	}
	if n.message {
		return w.messageTurn(view, n, g, v)
	}
	k := n.key.opKey
	k.group = g
	if o := view.find(k); o != nil {
		if w.a.sigs.all[o.sig].Name != n.name || o.guessed() {
			return turn{}
		}
		return turn{known: true, came: true, order: o.order}
	}
	c := view.comm(g)
	if c == nil || c.p2pShared || c.inferred {
		return turn{}
	}
	f := c.front(n.key.fn, false)
	if f == nil || f.enqueued == none || !view.counts(c, *f) {
		return turn{}
	}
	return turn{known: true, came: f.enqueued >= k.seq, order: unrecorded}
}

// messageTurn finds the message of a rank that has the place of v's next one, in its direction: all
// messages of a rank on a communicator are counted together.
func (w *world) messageTurn(view *view, n *node, g int32, v int32) turn {
	own := w.ranks[v].view
	if own == nil || view.onlyActive || own.onlyActive {
		return turn{}
	}
	next, sends := none, w.ranks[v].id == n.key.src
	for o := range own.all() {
		if o.message() && o.group == n.key.group {
			next = max(next, o.seq+1)
		}
	}
	var first *op
	known := false
	for o := range view.all() {
		if !o.message() || o.group != g || o.sends != sends {
			continue
		}
		known = true
		if o.seq >= next && (first == nil || o.order < first.order) {
			first = o
		}
	}
	switch {
	case !known || next == none:
		return turn{}
	case first == nil:
		return turn{known: true, order: unrecorded}
	}
	return turn{known: true, came: true, order: first.order}
}

// all are the operations of a view, those that are open first.
func (v *view) all() iter.Seq[*op] {
	return func(yield func(*op) bool) {
		for _, list := range [][]op{v.open, v.done} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// came is -1 where a rank came to x before y, 1 where to y; 0 where it does not tell.
func (v *view) came(x, y turn) int {
	switch {
	case v == nil || !x.known || !y.known:
		return 0
	case x.came && !y.came:
		return -1
	case y.came && !x.came:
		return 1
	case x.order == unrecorded || y.order == unrecorded:
		return 0
	}
	return cmp.Compare(x.order, y.order)
}

// commKind is what communicators have in common that do the same for different ranks.
type commKind struct {
	desc         string
	size, stride int64
}

// kindOf tells communicators apart by what they are for: their descriptions without numbers, how
// many members they have, and how far apart these are.
func (w *world) kindOf(g int32) commKind {
	if w.kinds == nil {
		w.kinds = make([]commKind, len(w.a.groups.all))
		for i, of := range w.a.groups.all {
			k := commKind{desc: strings.Map(withoutDigits, of.comm.Name), size: int64(len(of.members))}
			if len(of.members) > 1 {
				k.stride = of.members[1] - of.members[0]
			}
			w.kinds[i] = k
		}
	}
	return w.kinds[g]
}

func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}
