package straggler

import "math"

// microbatches sums a rank's forward and backward time by microbatch.
type microbatches struct{ by [2][]float64 }

// minMicrobatches is how many microbatches must have gone through both passes for
// their correlation to say anything.
const minMicrobatches = 4

// over returns how the two passes' times over the microbatches of a step correlate,
// and the coefficient of variation of their sums; NaN where unknown.
func (m *microbatches) over(v *rankView) (correlation, variation float32) {
	m.take(v)
	var n, f, b, ff, bb, fb float64
	for i, forward := range m.by[passForward] {
		backward := m.by[passBackward][i]
		if forward == 0 && backward == 0 {
			continue
		}
		n++
		f += forward
		b += backward
		ff += forward * forward
		bb += backward * backward
		fb += forward * backward
	}
	nan := float32(math.NaN())
	if n < minMicrobatches {
		return nan, nan
	}
	f, b = f/n, b/n
	varF, varB, cov := max(0, ff/n-f*f), max(0, bb/n-b*b), fb/n-f*b
	variation = float32(math.Sqrt(max(0, varF+varB+2*cov)) / (f + b))
	if varF == 0 || varB == 0 {
		return nan, variation
	}
	return float32(cov / math.Sqrt(varF*varB)), variation
}

// take sums the computing of a view.
func (m *microbatches) take(v *rankView) {
	for p := range m.by {
		m.by[p] = m.by[p][:0]
	}
	for i := range v.acts {
		a := &v.acts[i]
		if a.kind != actCompute || a.microbatch < 0 || a.end <= a.start {
			continue
		}
		for p := range m.by {
			for int(a.microbatch) >= len(m.by[p]) {
				m.by[p] = append(m.by[p], 0)
			}
		}
		m.by[v.keys.ops[a.key].pass][a.microbatch] += seconds(a.end - a.start)
	}
}
