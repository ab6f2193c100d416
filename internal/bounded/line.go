// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"cmp"
	"slices"
)

// entry is one entry of a Map, in a line.
type entry[K comparable, V any] struct {
	Pair[K, V]

	size       int
	prev, next *entry[K, V] // in a chain
	at         int          // in a heap
	number     uint64       // of a heap's entries, by when they were added
}

// line is the order in which the entries of a Map leave.
type line[K comparable, V any] interface {
	add(e *entry[K, V])
	// move puts an entry where it belongs after it was used or its value changed.
	move(e *entry[K, V])
	remove(e *entry[K, V])
	// first returns the first entry but for one; nil where there is none.
	first(beside *entry[K, V]) *entry[K, V]
	firstWhere(may func(K, V) bool) *entry[K, V]
	all(yield func(K, V) bool)
	clear()
}

// chain is a line whose entries enter at the end, and are moved to the end.
type chain[K comparable, V any] struct{ root entry[K, V] }

func newChain[K comparable, V any]() *chain[K, V] {
	c := &chain[K, V]{}
	c.clear()
	return c
}

func (c *chain[K, V]) clear() { c.root.prev, c.root.next = &c.root, &c.root }

func (c *chain[K, V]) add(e *entry[K, V]) {
	e.prev, e.next = c.root.prev, &c.root
	e.prev.next, c.root.prev = e, e
}

func (c *chain[K, V]) remove(e *entry[K, V]) { e.prev.next, e.next.prev = e.next, e.prev }

func (c *chain[K, V]) move(e *entry[K, V]) {
	if e.next != &c.root {
		c.remove(e)
		c.add(e)
	}
}

func (c *chain[K, V]) first(beside *entry[K, V]) *entry[K, V] {
	e := c.root.next
	if e == beside {
		e = e.next
	}
	if e == &c.root {
		return nil
	}
	return e
}

func (c *chain[K, V]) firstWhere(may func(K, V) bool) *entry[K, V] {
	for e := c.root.next; e != &c.root; e = e.next {
		if may(e.Key, e.Value) {
			return e
		}
	}
	return nil
}

func (c *chain[K, V]) all(yield func(K, V) bool) {
	for e := c.root.next; e != &c.root; {
		next := e.next // the loop may delete e
		if !yield(e.Key, e.Value) {
			return
		}
		e = next
	}
}

// heap is a line in the order of a comparison.
type heap[K comparable, V any] struct {
	compare func(a, b *Pair[K, V]) int
	entries []*entry[K, V] // none is less than the one at half its place
	added   uint64
}

func (h *heap[K, V]) clear() { h.entries = nil }

func (h *heap[K, V]) add(e *entry[K, V]) {
	h.added++
	e.number, e.at = h.added, len(h.entries)
	h.entries = append(h.entries, e)
	h.up(e)
}

func (h *heap[K, V]) remove(e *entry[K, V]) {
	n := len(h.entries) - 1
	last := h.entries[n]
	h.put(last, e.at)
	h.entries[n] = nil
	if h.entries = h.entries[:n]; last != e {
		h.move(last)
	}
}

func (h *heap[K, V]) move(e *entry[K, V]) {
	h.up(e)
	h.down(e)
}

func (h *heap[K, V]) put(e *entry[K, V], at int) { h.entries[at], e.at = e, at }

func (h *heap[K, V]) up(e *entry[K, V]) {
	for e.at > 0 {
		above := h.entries[(e.at-1)/2]
		if h.order(above, e) < 0 {
			return
		}
		at := above.at
		h.put(above, e.at)
		h.put(e, at)
	}
}

func (h *heap[K, V]) down(e *entry[K, V]) {
	for {
		below := h.least(2*e.at+1, 2*e.at+2)
		if below == nil || h.order(e, below) < 0 {
			return
		}
		at := below.at
		h.put(below, e.at)
		h.put(e, at)
	}
}

// least returns the least of the entries at some places; nil where none of those is in use.
func (h *heap[K, V]) least(places ...int) (least *entry[K, V]) {
	for _, at := range places {
		if at < len(h.entries) && (least == nil || h.order(h.entries[at], least) < 0) {
			least = h.entries[at]
		}
	}
	return least
}

func (h *heap[K, V]) order(a, b *entry[K, V]) int {
	return cmp.Or(h.compare(&a.Pair, &b.Pair), cmp.Compare(a.number, b.number))
}

func (h *heap[K, V]) first(beside *entry[K, V]) *entry[K, V] {
	if e := h.least(0); e == nil || e != beside {
		return e
	}
	return h.least(1, 2)
}

func (h *heap[K, V]) firstWhere(may func(K, V) bool) (first *entry[K, V]) {
	for _, e := range h.entries {
		if may(e.Key, e.Value) && (first == nil || h.order(e, first) < 0) {
			first = e
		}
	}
	return first
}

func (h *heap[K, V]) all(yield func(K, V) bool) {
	for _, e := range slices.SortedFunc(slices.Values(h.entries), h.order) {
		if !yield(e.Key, e.Value) {
			return
		}
	}
}
