// SPDX-License-Identifier: Apache-2.0

package bounded

import "iter"

// Order says which entry of a Map leaves first.
type Order uint8

const (
	// ByInsertion has the entry leave first that was added first. A key that is set again keeps its place.
	ByInsertion Order = iota
	// ByUse has the entry leave first that was used longest ago. Set, Update, Get and Touch use an entry.
	ByUse
)

// Reason is the limit for which an entry left.
type Reason uint8

const (
	// LimitEntries means that there were too many entries.
	LimitEntries Reason = iota
	// LimitBytes means that the entries had too many bytes.
	LimitBytes
)

// Pair is one key of a Map and its value.
type Pair[K comparable, V any] struct {
	Key   K
	Value V
}

// MapConfig is what a Map is made of.
type MapConfig[K comparable, V any] struct {
	// Entries is how many entries the map holds at most. 0: as many as there are.
	Entries int
	// Bytes is how many bytes all entries have together at most, by Size. 0: as many as there are.
	Bytes int
	// Size returns how many bytes an entry has. Nil: 0.
	Size func(K, V) int
	// Order says which entry leaves first. Compare takes its place where it is not nil.
	Order Order
	// Compare orders entries: the least leaves first, of equal ones the one that was added first.
	Compare func(a, b *Pair[K, V]) int
	// Evicted, if any, is called with each entry that left for a limit, after the map dropped it. It is not
	// called for an entry that the owner of the map deletes. It must not add entries.
	Evicted func(K, V, Reason)
}

// Map is a map with a limit of entries and a limit of bytes. Set makes room before it adds an entry: the
// first entries in order leave, and are counted. An entry that has more bytes than the limit by itself
// leaves alone. Where the Map has an Order, each method takes constant time but for All, DeleteFunc and
// OldestWhere; with Compare, a change takes time that grows with the logarithm of the entries. It is not
// safe for concurrent use, not even by readers alone.
type Map[K comparable, V any] struct {
	cfg     MapConfig[K, V]
	at      map[K]*entry[K, V]
	line    line[K, V]
	bytes   int
	evicted int64
	// found is the entry that was asked for last, if any: most callers look for a key and then change its
	// entry.
	found *entry[K, V]
	// spare is the entry that was dropped last: a full map needs no new memory to take another one.
	spare *entry[K, V]
}

// NewMap returns an empty map.
func NewMap[K comparable, V any](cfg MapConfig[K, V]) *Map[K, V] {
	m := &Map[K, V]{cfg: cfg, at: map[K]*entry[K, V]{}}
	if cfg.Compare != nil {
		m.line = &heap[K, V]{compare: cfg.Compare}
	} else {
		m.line = newChain[K, V]()
	}
	return m
}

// Len returns how many entries there are.
func (m *Map[K, V]) Len() int { return len(m.at) }

// Bytes returns how many bytes the entries have.
func (m *Map[K, V]) Bytes() int { return m.bytes }

// Evicted returns how many entries left for a limit so far.
func (m *Map[K, V]) Evicted() int64 { return m.evicted }

func (m *Map[K, V]) find(k K) *entry[K, V] {
	if e := m.found; e != nil && e.Key == k {
		return e
	}
	e := m.at[k]
	if e != nil {
		m.found = e
	}
	return e
}

// Get returns the value of a key, and uses the entry.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	e := m.find(k)
	if e == nil {
		return v, false
	}
	if m.byUse() {
		m.line.move(e)
	}
	return e.Value, true
}

// Peek returns the value of a key, and does not use the entry.
func (m *Map[K, V]) Peek(k K) (v V, ok bool) {
	if e := m.find(k); e != nil {
		return e.Value, true
	}
	return v, false
}

// Has reports whether there is an entry of a key, and does not use it.
func (m *Map[K, V]) Has(k K) bool { return m.find(k) != nil }

// Set sets the value of a key, after it made room. It is false where the entry has more bytes than the
// limit by itself: then the map holds no entry of the key, and the entry counts as evicted.
func (m *Map[K, V]) Set(k K, v V) bool {
	if e := m.find(k); e != nil {
		e.Value = v
		return m.changed(e)
	}
	size := m.sizeOf(k, v)
	if m.tooLarge(size) {
		m.count(k, v, LimitBytes)
		return false
	}
	m.makeRoom(1, size, nil)
	e := m.spare
	if m.spare = nil; e == nil {
		e = &entry[K, V]{}
	}
	e.Key, e.Value, e.size = k, v, size
	m.at[k], m.found = e, e
	m.bytes += size
	m.line.add(e)
	return true
}

// Fits reports whether Set would find room for an entry without that any entry leaves: an owner that refuses
// what is too much asks first.
func (m *Map[K, V]) Fits(k K, v V) bool {
	entries, bytes := len(m.at)+1, m.bytes+m.sizeOf(k, v)
	if e := m.find(k); e != nil {
		entries, bytes = entries-1, bytes-e.size
	}
	return (m.cfg.Entries == 0 || entries <= m.cfg.Entries) && (m.cfg.Bytes == 0 || bytes <= m.cfg.Bytes)
}

// Update has change set the value of a key where there is one, as Set does.
func (m *Map[K, V]) Update(k K, change func(*V)) bool {
	e := m.find(k)
	if e == nil {
		return false
	}
	change(&e.Value)
	return m.changed(e)
}

// Touch notes that the entry of a key was used, and that its value may have another size and another place
// in order than before: where V is a pointer, the owner of the map changes values without Set. It returns
// what Set returns, false also where there is no entry of the key.
func (m *Map[K, V]) Touch(k K) bool {
	e := m.find(k)
	return e != nil && m.changed(e)
}

// changed counts the bytes of an entry anew, puts it in its place and makes room for what it grew by.
func (m *Map[K, V]) changed(e *entry[K, V]) bool {
	size := m.sizeOf(e.Key, e.Value)
	m.bytes += size - e.size
	e.size = size
	if m.tooLarge(size) {
		m.evict(e, LimitBytes)
		return false
	}
	if m.byUse() || m.cfg.Compare != nil {
		m.line.move(e)
	}
	m.makeRoom(0, 0, e)
	return true
}

func (m *Map[K, V]) byUse() bool { return m.cfg.Order == ByUse && m.cfg.Compare == nil }

func (m *Map[K, V]) sizeOf(k K, v V) int {
	if m.cfg.Size == nil {
		return 0
	}
	return max(0, m.cfg.Size(k, v))
}

func (m *Map[K, V]) tooLarge(size int) bool { return m.cfg.Bytes > 0 && size > m.cfg.Bytes }

// makeRoom has the first entries leave until so many more fit, but not the one that needs the room.
func (m *Map[K, V]) makeRoom(entries, bytes int, beside *entry[K, V]) {
	for m.cfg.Entries > 0 && len(m.at)+entries > m.cfg.Entries {
		m.evict(m.line.first(beside), LimitEntries)
	}
	for m.cfg.Bytes > 0 && m.bytes+bytes > m.cfg.Bytes {
		m.evict(m.line.first(beside), LimitBytes)
	}
}

func (m *Map[K, V]) evict(e *entry[K, V], reason Reason) {
	k, v := e.Key, e.Value
	m.drop(e)
	m.count(k, v, reason)
}

func (m *Map[K, V]) count(k K, v V, reason Reason) {
	m.evicted++
	if m.cfg.Evicted != nil {
		m.cfg.Evicted(k, v, reason)
	}
}

func (m *Map[K, V]) drop(e *entry[K, V]) {
	delete(m.at, e.Key)
	m.bytes -= e.size
	m.line.remove(e)
	if m.found == e {
		m.found = nil
	}
	*e = entry[K, V]{}
	m.spare = e
}

// Delete drops the entry of a key, which does not count as evicted, and returns its value.
func (m *Map[K, V]) Delete(k K) (v V, ok bool) {
	e := m.find(k)
	if e == nil {
		return v, false
	}
	v = e.Value
	m.drop(e)
	return v, true
}

// DeleteFunc drops the entries that a function names, and returns how many. They do not count as evicted.
func (m *Map[K, V]) DeleteFunc(leaves func(K, V) bool) (gone int) {
	for k, v := range m.All() {
		if leaves(k, v) {
			m.Delete(k)
			gone++
		}
	}
	return gone
}

// DropOldest drops the first entries in order as long as a function names them, and returns how many. They
// do not count as evicted. Where the order is that of a time, it drops what is older than some time, and
// looks at nothing else.
func (m *Map[K, V]) DropOldest(leaves func(K, V) bool) (gone int) {
	for e := m.line.first(nil); e != nil && leaves(e.Key, e.Value); e = m.line.first(nil) {
		m.drop(e)
		gone++
	}
	return gone
}

// Oldest returns the entry that leaves first.
func (m *Map[K, V]) Oldest() (k K, v V, ok bool) {
	if e := m.line.first(nil); e != nil {
		return e.Key, e.Value, true
	}
	return k, v, false
}

// OldestWhere returns the entry that leaves first among those that may leave.
func (m *Map[K, V]) OldestWhere(may func(K, V) bool) (k K, v V, ok bool) {
	if e := m.line.firstWhere(may); e != nil {
		return e.Key, e.Value, true
	}
	return k, v, false
}

// All returns the entries in order, the one that leaves first in front, and does not use them. A loop over
// them may delete the entry that it is at, and must not change the map otherwise.
func (m *Map[K, V]) All() iter.Seq2[K, V] { return m.line.all }

// Keys returns the keys as All does.
func (m *Map[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		m.line.all(func(k K, _ V) bool { return yield(k) })
	}
}

// Clear drops all entries, which do not count as evicted.
func (m *Map[K, V]) Clear() {
	clear(m.at)
	m.line.clear()
	m.bytes, m.found, m.spare = 0, nil, nil
}
