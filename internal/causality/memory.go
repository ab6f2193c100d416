// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// memory keeps the latest spans, so that relations are found across batches: the
// sides of a call are seldom sent together. It forgets the oldest. What spans point to
// is kept apart from their stamps, so that the collector of garbage has little to look
// through.
type memory struct {
	records ring[record]
	owners  ring[owner] // of the same numbers
	waits   ring[wait]
	index   index
	batch   batchIndex

	recalled arena
	// touched keeps loads that are made in advance from being removed.
	touched uint64

	forgotten int64 // waiting for a partner that had not come
	crowded   int64 // spans that are there, and are not found for want of a slot
}

// record is a span that was seen, and how it was given out.
type record struct {
	ref                 model.SpanRef
	begin, until, epoch int64
	shift, bound        int64
	is                  Trait
	state               State
	bounded, stepped    bool
}

type owner struct {
	clock    *Clock
	job      *Job
	timeline string
}

// remembered is a span of an earlier batch.
type remembered struct {
	span Span
	was  emitted
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
	m := &memory{index: newIndex(maxSpans)}
	m.records.max, m.owners.max, m.waits.max = uint64(maxSpans), uint64(maxSpans), uint64(maxSpans)
	return m
}

// begin begins a batch: what was recalled for the one before is not needed any more.
func (m *memory) begin(spans int) {
	m.batch.reset(spans)
	m.recalled.reset()
}

// ahead loads what spans will be looked for in, and then what will be found there. Such
// loads do not wait for one another, and those made one after the other, each when it is
// needed, do.
func (m *memory) ahead(all []names) {
	touched := uint64(0)
	for i := range all {
		n := &all[i]
		if n.own == 0 {
			continue // it is not remembered
		}
		touched ^= m.index.bucket(n.own)[0]
		if n.there < 0 {
			touched ^= m.index.bucket(n.parent)[0]
		}
	}
	for i := range all {
		n := &all[i]
		if n.own == 0 {
			continue
		}
		if w := m.waits.get(m.index.latest(n.own, kindWait)); w != nil {
			touched ^= w.of
		}
		if n.there >= 0 {
			continue
		}
		if number := m.index.latest(n.parent, kindRecord); m.records.get(number) != nil {
			touched ^= uint64(m.records.at(number).begin) ^ uint64(m.owners.at(number).clock.seen)
		}
	}
	m.touched = touched
}

// add remembers a span, and returns its number; it calls visit for every span of an
// earlier batch that waited for this one.
func (m *memory) add(hash uint64, s *Span, visit func(*remembered, Via)) uint64 {
	waiting, w := m.waitFor(hash, s.Ref)
	r, number := m.records.add()
	*r = record{ref: s.Ref, begin: s.Begin, until: s.Until, epoch: s.Epoch, is: s.Is}
	o, _ := m.owners.add()
	o.clock, o.job, o.timeline = s.Clock, s.Job, ""
	if waiting > 0 {
		m.index.drop(hash, kindWait, waiting)
	}
	for w != nil && !w.done {
		w.done = true
		if r := m.recall(w.of); r != nil {
			visit(r, w.via)
		}
		w = m.waits.get(w.older)
	}
	m.put(hash, kindRecord, number)
	return number
}

// emit notes how a span is given out.
func (m *memory) emit(number uint64, p *Place) {
	r := m.records.get(number)
	if r == nil {
		return
	}
	r.shift, r.bound, r.state, r.bounded, r.stepped = p.Shift, p.Bound, p.State, p.Bounded, p.Stepped
	m.owners.get(number).timeline = p.Timeline
}

// find returns the number of the latest record of a span, 0 where it is not known.
func (m *memory) find(hash uint64, ref model.SpanRef) (number uint64) {
	for _, slot := range m.index.bucket(hash) {
		n := slot >> numberShift
		if slot&keyMask != kindRecord|hash&tagMask || n <= number {
			continue
		}
		if r := m.records.get(n); r != nil && r.ref == ref {
			number = n
		}
	}
	return number
}

// recall returns a span as it was when it came, to be used until the next batch; nil
// where it is gone, and where its clock was forgotten: one that comes again under the
// same name has nothing to do with it.
func (m *memory) recall(number uint64) *remembered {
	r := m.records.get(number)
	if r == nil {
		return nil
	}
	o := m.owners.get(number)
	if o.clock.gone {
		return nil
	}
	out := m.recalled.next()
	out.span = Span{Ref: r.ref, Is: r.is, Clock: o.clock, Begin: r.begin, Until: r.until, Epoch: r.epoch, Job: o.job}
	out.was = emitted{Shift: r.shift, Bound: r.bound, Timeline: o.timeline, State: r.state, Bounded: r.bounded, Stepped: r.stepped}
	return out
}

// await notes that a span names another that is not known.
func (m *memory) await(of, hash uint64, missing model.SpanRef, via Via) {
	older, _ := m.waitFor(hash, missing)
	if oldest := m.waits.evicts(); oldest != nil && !oldest.done {
		m.forgotten++
	}
	w, number := m.waits.add()
	*w = wait{missing: missing, of: of, older: older, via: via}
	if !m.index.replace(hash, kindWait, older, number) {
		m.put(hash, kindWait, number)
	}
}

// waitFor returns the latest wait for a span and its number; 0 where there is none.
func (m *memory) waitFor(hash uint64, ref model.SpanRef) (latest uint64, found *wait) {
	for _, slot := range m.index.bucket(hash) {
		number := slot >> numberShift
		if slot&keyMask != kindWait|hash&tagMask || number <= latest {
			continue
		}
		if w := m.waits.get(number); w != nil && !w.done && w.missing == ref {
			latest, found = number, w
		}
	}
	return latest, found
}

func (m *memory) put(hash, kind, number uint64) {
	if m.index.put(hash, kind, number, m.records.oldest(), m.waits.oldest()) {
		m.crowded++
	}
}

// arena hands out values that are all taken back at once.
type arena struct {
	chunks [][]remembered
	used   int
}

const arenaChunk = 64

func (a *arena) next() *remembered {
	if a.used == len(a.chunks)*arenaChunk {
		a.chunks = append(a.chunks, make([]remembered, arenaChunk))
	}
	a.used++
	return &a.chunks[(a.used-1)/arenaChunk][(a.used-1)%arenaChunk]
}

// mostChunks is how much of an arena is kept for the next batch.
const mostChunks = 256

func (a *arena) reset() {
	for _, c := range a.chunks[:(a.used+arenaChunk-1)/arenaChunk] {
		clear(c)
	}
	if len(a.chunks) > mostChunks {
		clear(a.chunks[mostChunks:])
		a.chunks = a.chunks[:mostChunks]
	}
	a.used = 0
}

// ring keeps the latest values, numbered from 1. It grows by chunks, so that nothing is
// copied.
type ring[T any] struct {
	max    uint64
	latest uint64
	chunks [][]T
}

const ringChunk = 256

// add makes room for a value, at the cost of the oldest.
func (r *ring[T]) add() (*T, uint64) {
	if made := uint64(len(r.chunks)) * ringChunk; r.latest == made && made < r.max {
		r.chunks = append(r.chunks, make([]T, min(ringChunk, r.max-made)))
	}
	r.latest++
	return r.at(r.latest), r.latest
}

func (r *ring[T]) at(number uint64) *T {
	i := (number - 1) % r.max
	return &r.chunks[i/ringChunk][i%ringChunk]
}

// get returns a value by its number, nil where it is gone.
func (r *ring[T]) get(number uint64) *T {
	if number < r.oldest() || number > r.latest || number == 0 {
		return nil
	}
	return r.at(number)
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

// batchIndex finds the spans of one batch, where most find who they name: it is small,
// and stays near to the processor.
type batchIndex struct {
	slots []uint64 // a span's number in the batch from 1, and half of its hash
	mask  uint64
}

func (x *batchIndex) reset(spans int) {
	n := 64
	for n < 2*spans {
		n *= 2
	}
	if n > cap(x.slots) || n*16 < cap(x.slots) {
		x.slots = make([]uint64, n)
	} else {
		x.slots = x.slots[:n]
		clear(x.slots)
	}
	x.mask = uint64(n - 1)
}

// put files a span in place of one with the same identity.
func (x *batchIndex) put(hash uint64, at int, spans []Span) {
	i := hash & x.mask
	for x.slots[i] != 0 && !x.is(x.slots[i], hash, spans[at].Ref, spans) {
		i = (i + 1) & x.mask
	}
	x.slots[i] = hash&^math.MaxUint32 | uint64(at+1)
}

func (x *batchIndex) is(slot, hash uint64, ref model.SpanRef, spans []Span) bool {
	return (slot^hash)>>32 == 0 && spans[slot&math.MaxUint32-1].Ref == ref
}

// find returns the last span of the batch with an identity, -1 where there is none.
func (x *batchIndex) find(hash uint64, ref model.SpanRef, spans []Span) int32 {
	for i := hash & x.mask; x.slots[i] != 0; i = (i + 1) & x.mask {
		if x.is(x.slots[i], hash, ref, spans) {
			return int32(x.slots[i]&math.MaxUint32) - 1
		}
	}
	return -1
}

// index finds numbers of records and of waits by a span's identity, in buckets of a
// fixed size: so it needs no deletion and cannot grow. A slot is a number, which of both
// it is of, and some bits of the hash, so that nothing else need be looked at to pass it
// over. Both are in one bucket, since who looks for one looks for the other.
type index struct {
	slots []uint64
	mask  uint64
}

const (
	ways        = 8
	tagBits     = 16
	tagMask     = 1<<tagBits - 1
	kindRecord  = 0
	kindWait    = 1 << tagBits
	numberShift = tagBits + 1
	keyMask     = kindWait | tagMask
)

// newIndex has at most two in eight slots taken on average, of records and of waits
// together: one bucket in some thousands overflows.
func newIndex(most int) index {
	buckets := 1
	for buckets < most {
		buckets *= 2
	}
	return index{slots: make([]uint64, buckets*ways), mask: uint64(buckets - 1)}
}

// secret keeps who sends spans from choosing identities of one hash.
var secret = [3]uint64{rand.Uint64() | 1, rand.Uint64() | 1, rand.Uint64() | 1}

// hashOf mixes all bits: ids may count up, at either end.
func hashOf(ref model.SpanRef) uint64 {
	high, low := bits.Mul64(binary.LittleEndian.Uint64(ref.Span[:])^secret[0], binary.LittleEndian.Uint64(ref.Trace[8:])^secret[1])
	high, low = bits.Mul64(high^low^binary.LittleEndian.Uint64(ref.Trace[:8]), secret[2])
	return high ^ low
}

func (x *index) bucket(hash uint64) []uint64 {
	b := hash >> tagBits & x.mask * ways
	return x.slots[b : b+ways : b+ways]
}

// latest is the greatest number of a kind with a hash's tag, 0 where none is.
func (x *index) latest(hash, kind uint64) (number uint64) {
	for _, slot := range x.bucket(hash) {
		if slot&keyMask == kind|hash&tagMask {
			number = max(number, slot>>numberShift)
		}
	}
	return number
}

// put files a number in place of what is older than the oldest value of its kind, else
// of the oldest of its own kind in the bucket, else of the oldest of the other. It
// reports whether what made room was not too old.
func (x *index) put(hash, kind, number, oldestRecord, oldestWait uint64) (crowded bool) {
	bucket := x.bucket(hash)
	victim, least, own := 0, uint64(math.MaxUint64), false
	crowded = true
	for i, slot := range bucket {
		n, oldest, same := slot>>numberShift, oldestRecord, slot&kindWait == kind
		if slot&kindWait != 0 {
			oldest = oldestWait
		}
		if n < oldest {
			victim, crowded = i, false
			break
		}
		if same && !own || same == own && n < least {
			victim, least, own = i, n, same
		}
	}
	bucket[victim] = number<<numberShift | kind | hash&tagMask
	return crowded
}

// replace gives the slot of a number to another; false where it has none.
func (x *index) replace(hash, kind, number, by uint64) bool {
	i := slices.Index(x.bucket(hash), number<<numberShift|kind|hash&tagMask)
	if number == 0 || i < 0 {
		return false
	}
	x.bucket(hash)[i] = by<<numberShift | kind | hash&tagMask
	return true
}

// drop frees the slot of a number.
func (x *index) drop(hash, kind, number uint64) {
	for i, slot := range x.bucket(hash) {
		if slot == number<<numberShift|kind|hash&tagMask {
			x.bucket(hash)[i] = 0
			return
		}
	}
}
