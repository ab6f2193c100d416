package causality

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// memory keeps the latest spans, so that relations are found across batches: the
// sides of a call are seldom sent together. It forgets the oldest.
type memory struct {
	records   ring[record]
	byRef     index
	waits     ring[wait]
	byMissing index

	forgotten int64 // waiting for a partner that had not come
}

type record struct {
	span  Span
	batch uint64
	at    int32 // in its batch
	was   emitted
}

// wait is a span that names another which has not come.
type wait struct {
	missing model.SpanRef
	of      uint64 // number of the record
	older   uint64 // number of another wait for the same; 0 none
	via     Via
	done    bool
}

func newMemory(maxSpans int) *memory {
	return &memory{
		records: ring[record]{max: uint64(maxSpans)}, byRef: newIndex(maxSpans),
		waits: ring[wait]{max: uint64(maxSpans)}, byMissing: newIndex(maxSpans),
	}
}

// add remembers a span, and returns its number.
func (m *memory) add(s *Span, batch uint64, at int) uint64 {
	r, number := m.records.add()
	*r = record{span: *s, batch: batch, at: int32(at)}
	r.span.Links = nil // of the caller's batch
	m.byRef.put(s.Ref, number, m.records.oldest())
	return number
}

// find returns the latest record of a span, nil where it is not known.
func (m *memory) find(ref model.SpanRef) *record {
	hash := hashOf(ref)
	var found *record
	latest := uint64(0)
	for _, slot := range m.byRef.bucket(hash) {
		number := slot >> tagBits
		if slot&tagMask != hash&tagMask || number <= latest {
			continue
		}
		if r := m.records.get(number); r != nil && r.span.Ref == ref {
			found, latest = r, number
		}
	}
	return found
}

// await notes that a span names another that is not known.
func (m *memory) await(of uint64, missing model.SpanRef, via Via) {
	older, _ := m.waitFor(missing)
	if oldest := m.waits.evicts(); oldest != nil && !oldest.done {
		m.forgotten++
	}
	w, number := m.waits.add()
	*w = wait{missing: missing, of: of, older: older, via: via}
	m.byMissing.put(missing, number, m.waits.oldest())
}

// waitFor returns the latest wait for a span and its number; 0 where there is none.
func (m *memory) waitFor(ref model.SpanRef) (latest uint64, found *wait) {
	hash := hashOf(ref)
	for _, slot := range m.byMissing.bucket(hash) {
		number := slot >> tagBits
		if slot&tagMask != hash&tagMask || number <= latest {
			continue
		}
		if w := m.waits.get(number); w != nil && !w.done && w.missing == ref {
			latest, found = number, w
		}
	}
	return latest, found
}

// came calls visit for every remembered span that waited for this one.
func (m *memory) came(ref model.SpanRef, visit func(*record, Via)) {
	_, w := m.waitFor(ref)
	for w != nil && !w.done {
		w.done = true
		if r := m.records.get(w.of); r != nil {
			visit(r, w.via)
		}
		w = m.waits.get(w.older)
	}
}

// ring keeps the latest values, numbered from 1.
type ring[T any] struct {
	max    uint64
	latest uint64
	values []T
}

// add makes room for a value, at the cost of the oldest.
func (r *ring[T]) add() (*T, uint64) {
	r.latest++
	if n := len(r.values); uint64(n) < r.max {
		var zero T
		if n == cap(r.values) { // append grows large slices by a quarter, and copies five times
			r.values = slices.Grow(r.values, int(min(uint64(max(n, 64)), r.max-uint64(n))))
		}
		r.values = append(r.values, zero)
	}
	return &r.values[(r.latest-1)%r.max], r.latest
}

// get returns a value by its number, nil where it is gone.
func (r *ring[T]) get(number uint64) *T {
	if number < r.oldest() || number > r.latest || number == 0 {
		return nil
	}
	return &r.values[(number-1)%r.max]
}

// oldest is the number of the oldest value that is left.
func (r *ring[T]) oldest() uint64 {
	if r.latest < r.max {
		return 1
	}
	return r.latest - r.max + 1
}

// evicts returns the value that the next one takes the place of.
func (r *ring[T]) evicts() *T {
	if r.latest < r.max {
		return nil
	}
	return r.get(r.oldest())
}

// index finds numbers by a span's identity, in buckets of a fixed size: so it
// needs no deletion and cannot grow. A slot is a number and some bits of the hash,
// so that nothing else need be looked at to pass it over.
type index struct {
	slots []uint64
	mask  uint64
}

const (
	ways    = 8
	tagBits = 16
	tagMask = 1<<tagBits - 1
)

// newIndex has two slots in eight taken at the most on average, so that one
// bucket in some thousands overflows.
func newIndex(most int) index {
	buckets := 1
	for buckets*2 < most {
		buckets *= 2
	}
	return index{slots: make([]uint64, buckets*ways), mask: uint64(buckets - 1)}
}

// hashOf mixes all bits: ids may count up, at either end.
func hashOf(ref model.SpanRef) uint64 {
	h := binary.LittleEndian.Uint64(ref.Span[:]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(ref.Trace[8:]), 23)
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

func (x *index) bucket(hash uint64) []uint64 {
	b := hash >> tagBits & x.mask * ways
	return x.slots[b : b+ways : b+ways]
}

// put files a number in place of the oldest of its bucket; what is older than the
// oldest value is free.
func (x *index) put(ref model.SpanRef, number, oldest uint64) {
	hash := hashOf(ref)
	bucket := x.bucket(hash)
	victim := 0
	for i, slot := range bucket {
		if slot>>tagBits < oldest {
			victim = i
			break
		}
		if slot < bucket[victim] {
			victim = i
		}
	}
	bucket[victim] = number<<tagBits | hash&tagMask
}
