// SPDX-License-Identifier: Apache-2.0

package straggler

// streamTable numbers the streams of a job, and holds what is known of each in the present
// step. Programs repeat, so that a number is mostly guessed from the step before.
type streamTable struct {
	ids   map[streamKey]int32
	known []knownStream
	step  uint32 // counts steps
	used  int    // of those known, in the present step

	counted []bool // scratch
}

type knownStream struct {
	key  streamKey
	step uint32 // the last one that it was in
	seen int32  // 1 + its place among what the present rank was seen to do; 0 for none
	of   numbers
}

// leastStreams are kept however few there are in a step.
const leastStreams = 1 << 10

// begin makes ready for a step. Streams that come no more must not be kept for good.
func (t *streamTable) begin() {
	if t.ids == nil || len(t.known) > leastStreams && len(t.known) > roomy*t.used {
		*t = streamTable{ids: map[streamKey]int32{}, step: t.step}
	}
	t.step++
	t.used = 0
}

// add notes numbers of a stream and returns its number; guess is what that may be.
func (t *streamTable) add(key streamKey, guess int32, low, high int64) int32 {
	id := guess
	if int(id) >= len(t.known) || t.known[id].key != key {
		var ok bool
		if id, ok = t.ids[key]; !ok {
			id = int32(len(t.known))
			t.ids[key] = id
			t.known = append(t.known, knownStream{key: key})
		}
	}
	if s := &t.known[id]; s.step != t.step {
		s.step, s.of = t.step, numbers{low, high}
		t.used++
	} else {
		s.of = numbers{min(s.of.low, low), max(s.of.high, high)}
	}
	return id
}

// findNear is find, where the number is mostly known.
func (t *streamTable) findNear(key streamKey, guess int32) (int32, bool) {
	if int(guess) < len(t.known) && t.known[guess].key == key {
		return guess, t.known[guess].step == t.step
	}
	return t.find(key)
}

// find returns the number of a stream of the present step.
func (t *streamTable) find(key streamKey) (int32, bool) {
	id, ok := t.ids[key]
	return id, ok && t.known[id].step == t.step
}
