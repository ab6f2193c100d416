// SPDX-License-Identifier: Apache-2.0

package score

import (
	"cmp"
	"math"
	"slices"
)

// Told is one finding's confidence, and whether it was right.
type Told struct {
	Confidence float64
	Right      bool
}

// Bin is one of a reliability table.
type Bin struct {
	N         int
	Mean      float64 // confidence
	Right     float64 // share
	Low, High float64 // confidence
}

// Reliability sorts by confidence into bins that hold equally many, as nearly as can be
// without dividing what is equally confident.
func Reliability(all []Told, bins int) []Bin {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Told) int { return cmp.Compare(a.Confidence, b.Confidence) })
	var out []Bin
	for begin := 0; begin < len(sorted); {
		end := max(begin+1, (len(out)+1)*len(sorted)/bins)
		for end < len(sorted) && sorted[end].Confidence-sorted[end-1].Confidence < alike {
			end++
		}
		part := sorted[begin:end]
		at := Bin{N: len(part), Low: part[0].Confidence, High: part[len(part)-1].Confidence}
		for _, t := range part {
			at.Mean += t.Confidence / float64(len(part))
			if t.Right {
				at.Right += 1 / float64(len(part))
			}
		}
		out, begin = append(out, at), end
	}
	return out
}

// alike are confidences that nobody can tell apart.
const alike = 1e-6

// Fit returns what findings of each bin should have said: the share of right ones by the
// rule of succession, which of few promises little; pooled with the bins before where it
// would be less than theirs, so that who is more confident is no less often right.
func Fit(bins []Bin) []float64 {
	type pool struct{ bins, n, right float64 }
	rate := func(p pool) float64 { return (p.right + 1) / (p.n + 2) }
	var pools []pool
	for _, b := range bins {
		pools = append(pools, pool{1, float64(b.N), float64(b.N) * b.Right})
		for k := len(pools) - 1; k > 0 && rate(pools[k]) < rate(pools[k-1]); k-- {
			p, q := pools[k-1], pools[k]
			pools = append(pools[:k-1], pool{p.bins + q.bins, p.n + q.n, p.right + q.right})
		}
	}
	var out []float64
	for _, p := range pools {
		for range int(p.bins) {
			out = append(out, rate(p))
		}
	}
	return out
}

// ExpectedError returns the expected calibration error: |confidence - share of right
// ones|, averaged over the bins by what they hold; NaN of none.
func ExpectedError(bins []Bin) float64 {
	n, sum := 0, 0.0
	for _, b := range bins {
		n += b.N
		sum += float64(b.N) * math.Abs(b.Mean-b.Right)
	}
	return sum / float64(n)
}
