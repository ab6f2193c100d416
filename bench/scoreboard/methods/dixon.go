// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// dixon returns the ratio of Dixon (1953) for a low outlier in sorted values: the gap
// behind the smallest over the range, where for larger samples the values next to
// either end are left out, so that a second outlier does not hide the first.
func dixon(sorted []float64) float64 {
	n := len(sorted)
	gap, end := 1, n-1
	switch {
	case n <= 7: // r10
	case n <= 10: // r11
		end = n - 2
	case n <= 13: // r21
		gap, end = 2, n-2
	default: // r22
		gap, end = 2, n-3
	}
	if span := sorted[end] - sorted[0]; span > 0 {
		return (sorted[gap] - sorted[0]) / span
	}
	return 0
}

// dixonDraws gives the 99.5 % point 500 values beyond it, an error of some 5 % in the
// tail and of 0.005 in the ratio.
const dixonDraws = 100_000

var dixonLimits [dixonMost + 1]func() float64

func init() {
	for n := range dixonLimits {
		dixonLimits[n] = sync.OnceValue(func() float64 { return drawDixon(n) })
	}
}

// dixonLimit returns what the ratio of n normal values exceeds in 0.5 % of samples. It
// is drawn, not looked up, with a fixed seed.
func dixonLimit(n int) float64 { return dixonLimits[n]() }

func drawDixon(n int) float64 {
	rng := rand.New(rand.NewPCG(uint64(n), 1953))
	ratios, sample := make([]float64, dixonDraws), make([]float64, n)
	for i := range ratios {
		for k := range sample {
			sample[k] = rng.NormFloat64()
		}
		slices.Sort(sample)
		ratios[i] = dixon(sample)
	}
	slices.Sort(ratios)
	return ratios[int((1-dixonTail)*dixonDraws)]
}
