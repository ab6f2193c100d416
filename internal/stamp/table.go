// SPDX-License-Identifier: Apache-2.0

package stamp

// table holds what is known of at most limit keys, by when they were used last.
type table[K comparable, V any] struct {
	limit int
	idle  int64 // ns after which an entry is forgotten
	m     map[K]*entry[K, V]
	// root.next is the entry used last, root.prev the one idle longest.
	root entry[K, V]
	// dropped, if any, is told which entry was forgotten.
	dropped func(K)
}

type entry[K comparable, V any] struct {
	key        K
	v          V
	used       int64
	next, prev *entry[K, V]
}

func newTable[K comparable, V any](limit int, idle int64) *table[K, V] {
	t := &table[K, V]{limit: limit, idle: idle, m: map[K]*entry[K, V]{}}
	t.root.next, t.root.prev = &t.root, &t.root
	return t
}

// find returns an entry without using it.
func (t *table[K, V]) find(k K) *V {
	if e := t.m[k]; e != nil {
		return &e.v
	}
	return nil
}

// sweep forgets what was idle for too long.
func (t *table[K, V]) sweep(now int64) {
	for e := t.root.prev; e != &t.root && now-e.used >= t.idle; e = t.root.prev {
		t.drop(e)
	}
}

func (t *table[K, V]) drop(e *entry[K, V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	delete(t.m, e.key)
	if t.dropped != nil {
		t.dropped(e.key)
	}
}

func (t *table[K, V]) full() bool { return len(t.m) >= t.limit }

// add makes the entry of a key that has none, where the table is not full.
func (t *table[K, V]) add(k K, now int64) *V {
	e := &entry[K, V]{key: k, used: now}
	t.m[k] = e
	t.front(e)
	return &e.v
}

// use notes that the entry of a key is in use.
func (t *table[K, V]) use(k K, now int64) {
	if e := t.m[k]; e != nil {
		e.used = max(e.used, now)
		e.prev.next, e.next.prev = e.next, e.prev
		t.front(e)
	}
}

func (t *table[K, V]) front(e *entry[K, V]) {
	e.prev, e.next = &t.root, t.root.next
	e.prev.next, e.next.prev = e, e
}
