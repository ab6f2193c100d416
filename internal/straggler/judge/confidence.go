package judge

// features are what the confidence rests on beside the conclusion.
type features struct {
	gate, limit float64
	pair        bool
	events      int // that all rests on; 0 where each step counts
}

// confidence is a monotone table: of the rung, the excess over its gate, the number of
// steps, and how near the chance comes to its limit. The factors are set so that what
// only just passes all gates is wrong about once in four times.
func confidence(c *Conclusion, f *features) float64 {
	x := RungConfidence(c.Rung)
	if f.pair {
		x = 0.7
	}
	x *= atLeast(c.Share/f.gate, []step{{1.1, 0.9}, {1.5, 0.95}, {2, 0.98}}, 1)
	trials := c.Steps
	if f.events > 0 {
		trials = f.events
	}
	x *= atLeast(float64(trials), []step{{5, 0.93}, {8, 0.97}, {16, 0.99}}, 1)
	x *= atLeast(f.limit/max(c.Chance, 1e-30), []step{{3, 0.93}, {10, 0.97}}, 1)
	return x
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

func atLeast(x float64, table []step, above float64) float64 {
	for _, s := range table {
		if x < s.below {
			return s.factor
		}
	}
	return above
}
