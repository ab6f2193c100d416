// SPDX-License-Identifier: Apache-2.0

package judge

// features are what the confidence rests on beside the conclusion.
type features struct {
	gate, limit float64
	pair        bool
	events      int // that all rests on; 0 where each step counts
}

// pairConfidence is that of one of two, where nobody says which is as it should be: it is told
// where they differ by five gates, and steadily.
const pairConfidence = 0.8

// How a finding may be wrong though it passed its gates: it lies by chance beyond the least
// excess, it was seen in few steps, or chance is not far below its limit. Each makes it the less
// certain the nearer it comes to that gate, and they are multiplied, since they say different
// things. They are as high as findings in families that calibrate bear them.
var (
	byShare  = []step{{1.1, 0.92}, {1.5, 0.96}, {2, 0.985}} // times the gate
	byTrials = []step{{5, 0.93}, {8, 0.97}, {16, 0.99}}
	byChance = []step{{3, 0.93}, {10, 0.97}} // times below its limit
)

// confidence is a monotone table: of the rung, the excess over its gate, the number of
// steps, and how near the chance comes to its limit.
func confidence(c *Conclusion, f *features) float64 {
	x := RungConfidence(c.Rung)
	if f.pair {
		x = pairConfidence
	}
	trials := c.Steps
	if f.events > 0 {
		trials = f.events
	}
	x *= atLeast(c.Share/f.gate, byShare) * atLeast(float64(trials), byTrials)
	return x * atLeast(f.limit/max(c.Chance, 1e-30), byChance)
}

// RungConfidence is how far peers of a rung are to be trusted.
func RungConfidence(r Rung) float64 {
	switch r {
	case RungRole:
		return 0.995
	case RungMembers, RungLinks:
		return 0.98
	case RungSegment, RungKernel:
		return 0.95
	}
	return 0.7
}

// step is a factor for values below a limit.
type step struct{ below, factor float64 }

// atLeast returns the factor of the first limit that x is below, 1 where there is none.
func atLeast(x float64, table []step) float64 {
	for _, s := range table {
		if x < s.below {
			return s.factor
		}
	}
	return 1
}
