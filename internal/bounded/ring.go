// SPDX-License-Identifier: Apache-2.0

package bounded

// Ring remembers the keys that were added last, to recognise what comes twice. It holds at most so many
// keys, and so many bytes of keys; the key that was added first leaves first, and is counted. It is not safe
// for concurrent use.
type Ring[K comparable] struct {
	keys, maxBytes int
	size           func(K) int

	seen    map[K]struct{}
	queue   []K // from first on, around its end
	first   int
	bytes   int
	evicted int64
}

// NewRing returns a ring of at most so many keys, at least one.
func NewRing[K comparable](keys int) *Ring[K] {
	return &Ring[K]{keys: max(1, keys), seen: map[K]struct{}{}}
}

// NewTextRing returns a ring of at most so many texts, at least one, which have at most so many bytes. 0
// bytes: as many as they have.
func NewTextRing[K ~string](keys, bytes int) *Ring[K] {
	r := NewRing[K](keys)
	r.maxBytes, r.size = bytes, func(k K) int { return len(k) }
	return r
}

// Len returns how many keys are remembered.
func (r *Ring[K]) Len() int { return len(r.seen) }

// Bytes returns how many bytes the texts have that are remembered.
func (r *Ring[K]) Bytes() int { return r.bytes }

// Evicted returns how many keys were forgotten for a limit so far.
func (r *Ring[K]) Evicted() int64 { return r.evicted }

// Seen reports whether a key is remembered.
func (r *Ring[K]) Seen(k K) bool {
	_, ok := r.seen[k]
	return ok
}

// Add remembers a key, and reports whether it was not remembered before. A key that was keeps its place. A
// text that has more bytes than the limit is not remembered, and counts as forgotten.
func (r *Ring[K]) Add(k K) (fresh bool) {
	if r.Seen(k) {
		return false
	}
	size := r.sizeOf(k)
	if r.maxBytes > 0 && size > r.maxBytes {
		r.evicted++
		return true
	}
	for len(r.seen) >= r.keys || r.maxBytes > 0 && r.bytes+size > r.maxBytes {
		r.evict()
	}
	r.push(k)
	r.seen[k] = struct{}{}
	r.bytes += size
	return true
}

func (r *Ring[K]) sizeOf(k K) int {
	if r.size == nil {
		return 0
	}
	return r.size(k)
}

func (r *Ring[K]) evict() {
	var none K
	k := r.queue[r.first]
	r.queue[r.first] = none
	r.first = (r.first + 1) % len(r.queue)
	delete(r.seen, k)
	r.bytes -= r.sizeOf(k)
	r.evicted++
}

// push puts a key at the end of the queue, which grows up to the number of keys.
func (r *Ring[K]) push(k K) {
	n := len(r.seen)
	if n == len(r.queue) {
		longer := make([]K, min(max(8, 2*n), r.keys))
		copy(longer[copy(longer, r.queue[r.first:]):], r.queue[:r.first])
		r.queue, r.first = longer, 0
	}
	r.queue[(r.first+n)%len(r.queue)] = k
}
