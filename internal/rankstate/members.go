// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"encoding/binary"
	"math"
)

// Members are written as runs: ranks a, a+d, a+2d, ... in one of three numbers. Groups of
// parallel layouts are one run, or one per node, so that 16,384 members are some bytes.

// appendMembers writes the number of ranks, and the runs: start less the end of the run
// before, stride, and length.
func appendMembers(b []byte, ranks []int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(ranks)))
	last := int64(0)
	for len(ranks) > 0 {
		n, stride := run(ranks)
		b = binary.AppendVarint(b, ranks[0]-last)
		b = binary.AppendVarint(b, stride)
		b = binary.AppendUvarint(b, uint64(n))
		last = ranks[n-1]
		ranks = ranks[n:]
	}
	return b
}

// run returns how many ranks follow one another at one distance, and that distance.
func run(ranks []int64) (n int, stride int64) {
	if len(ranks) == 1 {
		return 1, 0
	}
	stride = ranks[1] - ranks[0]
	n = 2
	for n < len(ranks) && ranks[n]-ranks[n-1] == stride {
		n++
	}
	return n, stride
}

// members reads what appendMembers wrote; room is how many the state may still have.
func (r *reader) members(room int) []int64 {
	start := r.at
	n := r.count("members", room)
	if n == 0 || r.err != nil {
		return nil
	}
	runs := r.at
	r.skipRuns(n)
	if r.err != nil {
		return nil
	}
	return r.shared.list(r.data[start:r.at], func() []int64 {
		again := reader{data: r.data[:r.at], at: runs}
		return again.expand(n)
	})
}

// skipRuns finds the runs' end, and that they are n ranks of at least 0.
func (r *reader) skipRuns(n int) {
	last := int64(0)
	for left := n; left > 0 && r.err == nil; {
		first, end, length := r.run(last, left)
		if r.err == nil && (first < 0 || end < 0 || first > math.MaxInt32 || end > math.MaxInt32) {
			r.fail("read members: got ranks %d to %d; want 0 to %d", first, end, math.MaxInt32)
		}
		last = end
		left -= length
	}
}

// run reads one run of at most left ranks after the rank last.
func (r *reader) run(last int64, left int) (first, end int64, n int) {
	first = last + r.varint()
	stride := r.varint()
	n = r.count("ranks of a run", left)
	switch {
	case r.err != nil:
	case n == 0:
		r.fail("read members: got a run of no ranks")
	case stride < -math.MaxInt32 || stride > math.MaxInt32:
		r.fail("read members: got stride %d; want at most %d", stride, math.MaxInt32)
	}
	if r.err != nil {
		return 0, 0, 1
	}
	return first, first + stride*int64(n-1), n
}

// expand reads runs that skipRuns has found sound.
func (r *reader) expand(n int) []int64 {
	ranks := make([]int64, 0, n)
	for last := int64(0); len(ranks) < n; {
		first := last + r.varint()
		stride := r.varint()
		for length := r.uvarint(); length > 0; length-- {
			last = first
			ranks = append(ranks, first)
			first += stride
		}
	}
	return ranks
}
