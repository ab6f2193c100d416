// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// microbatches compares the microbatches of a rank's step. Those that are longer change
// how its kernels compare with one another, forward and backward alike, as attention
// costs the square of a length and all else the length at most; a device that is slower
// for some of them is so for all kernels.
type microbatches struct {
	ops    []passOp // of the present row
	spread []float32
	sums   []microbatch
}

// passOp is an operation that belongs to a microbatch.
type passOp struct {
	cell       int32
	key        uint32
	microbatch int16
	pass       pass
	seconds    float32
}

// microbatch sums what its operations took, and took longer than they typically do.
type microbatch struct {
	total        float64
	lead         [2]float64 // longer, in the kernel by which a pass varies most
	leadTypical  [2]float64
	other        [2]float64 // longer, in two halves of the other kernels
	otherTypical [2]float64
	ops          int
}

const (
	// minMicrobatches is how many microbatches must have gone through both passes for
	// their correlation to say anything.
	minMicrobatches = 4
	// farthest is how many standard deviations an operation may differ by: one that took
	// long for once says nothing of its microbatch.
	farthest = 3
)

func (m *microbatches) add(v *rankView, a *activity, cell int32, s float32) {
	if a.kind == actCompute && a.microbatch >= 0 && s > 0 {
		m.ops = append(m.ops, passOp{cell, v.keys.ops[a.key].plain, a.microbatch, v.keys.ops[a.key].pass, s})
	}
}

// over returns how the two passes go together over the microbatches of a step, and the
// coefficient of variation of what they have in common; NaN where unknown. ends are where
// each cell's durations end in by, which is lost.
func (m *microbatches) over(cells []judge.Cell, ends []int32, by []float32) (correlation, variation float32) {
	nan := float32(math.NaN())
	if len(m.ops) < 2*minMicrobatches {
		return nan, nan
	}
	m.measure(cells, ends, by)
	lead, ok := m.leads(cells)
	if !ok {
		return nan, nan
	}
	m.sum(cells, lead)
	var n, f, b, ff, bb, fb, total float64
	for i := range m.sums {
		s := &m.sums[i]
		if s.leadTypical[0] == 0 || s.leadTypical[1] == 0 || s.otherTypical[0] == 0 || s.otherTypical[1] == 0 {
			continue
		}
		x, y := s.beyond(0), s.beyond(1)
		n, total = n+1, total+s.total
		f, b, ff, bb, fb = f+x, b+y, ff+x*x, bb+y*y, fb+x*y
	}
	if n < minMicrobatches {
		return nan, nan
	}
	sigmaF, sigmaB, both := math.Sqrt(max(0, ff-f*f/n)), math.Sqrt(max(0, bb-b*b/n)), fb-f*b/n
	if sigmaF == 0 || sigmaB == 0 {
		return nan, nan
	}
	r := both / (sigmaF * sigmaB)
	// Noise of the one pass has nothing to do with that of the other: what correlates of
	// their variances is what they have in common.
	common := math.Sqrt(max(0, r)/(n-1)) * (sigmaF + sigmaB)
	return float32(r), float32(common * n / total)
}

// beyond is what the leading kernel of a pass took longer than the device explains.
func (s *microbatch) beyond(p int) float64 {
	return s.lead[p] - s.leadTypical[p]*s.other[p]/s.otherTypical[p]
}

// measure fills by how much the operations of each cell differ.
func (m *microbatches) measure(cells []judge.Cell, ends []int32, by []float32) {
	m.spread = m.spread[:0]
	begin := int32(0)
	for i := range cells {
		of := by[begin:ends[i]]
		for k, x := range of {
			of[k] = float32(math.Abs(float64(x - cells[i].Typical)))
		}
		m.spread = append(m.spread, stats.MADToSigma*stats.SelectMedian(of))
		begin = ends[i]
	}
}

// leads returns the key of each pass whose operations differ most.
func (m *microbatches) leads(cells []judge.Cell) (lead [2]uint32, ok bool) {
	var most [2]float32
	for i := range m.ops {
		op := &m.ops[i]
		if x := m.spread[op.cell] * float32(cells[op.cell].N); x > most[op.pass] {
			most[op.pass], lead[op.pass] = x, op.key
		}
	}
	return lead, most[passForward] > 0 && most[passBackward] > 0
}

// sum fills the sums of the microbatches.
func (m *microbatches) sum(cells []judge.Cell, lead [2]uint32) {
	m.sums = m.sums[:0]
	for i := range m.ops {
		op := &m.ops[i]
		for int(op.microbatch) >= len(m.sums) {
			m.sums = append(m.sums, microbatch{})
		}
		s := &m.sums[op.microbatch]
		typical, most := cells[op.cell].Typical, farthest*m.spread[op.cell]
		longer := float64(max(-most, min(op.seconds-typical, most)))
		s.total += float64(typical)
		if op.key == lead[op.pass] {
			s.lead[op.pass] += longer
			s.leadTypical[op.pass] += float64(typical)
			continue
		}
		// What is taken out of one pass is of other kernels than what is taken out of the
		// other: else its noise would make both alike.
		s.other[s.ops%2] += longer
		s.otherTypical[s.ops%2] += float64(typical)
		s.ops++
	}
}
