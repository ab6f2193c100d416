// SPDX-License-Identifier: Apache-2.0

package part

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// ncclCost is what the plugin costs an operation, from paired runs.
type ncclCost struct {
	Off, On   float64 // median, ns
	Diff      float64 // of the medians, ns
	Low, High float64 // 95 % interval of Diff, ns
	Runs      int     // pairs
}

const (
	resamples = 2000
	// leastOps is the fewest operations of a run.
	leastOps = 30
)

// costOf compares paired runs: what each operation took without and with the plugin, ns.
// The interval is a bootstrap's, over runs and over operations within them.
func costOf(off, on [][]float64) (ncclCost, error) {
	if len(off) != len(on) || len(off) == 0 {
		return ncclCost{}, fmt.Errorf("compare runs: got %d without and %d with the plugin; want as many, and one at least", len(off), len(on))
	}
	for _, run := range slices.Concat(off, on) {
		if len(run) < leastOps {
			return ncclCost{}, fmt.Errorf("compare runs: got %d operations; want %d", len(run), leastOps)
		}
	}
	c := ncclCost{Off: stats.MedianOf(slices.Concat(off...)), On: stats.MedianOf(slices.Concat(on...)), Runs: len(off)}
	c.Diff = c.On - c.Off
	random := rand.New(rand.NewPCG(1, 2)) // the same for the same runs
	diffs := make([]float64, resamples)
	for i := range diffs {
		var a, b []float64
		for range off {
			pair := random.IntN(len(off))
			a, b = sampleOf(random, off[pair], a), sampleOf(random, on[pair], b)
		}
		diffs[i] = stats.MedianOf(b) - stats.MedianOf(a)
	}
	slices.Sort(diffs)
	c.Low, c.High = diffs[resamples/40], diffs[resamples-1-resamples/40]
	return c, nil
}

func sampleOf(random *rand.Rand, from, to []float64) []float64 {
	for range from {
		to = append(to, from[random.IntN(len(from))])
	}
	return to
}

// took returns what each operation of the loop took on a rank, ns: in all, and the call
// alone.
func took(t *ncclTruth) (whole, call []float64) {
	last := 0
	for i := range t.Ops {
		if o := &t.Ops[i]; o.Phase == ncclLoop && o.Call != last {
			whole, call = append(whole, float64(o.After-o.Before)), append(call, float64(o.Called-o.Before))
			last = o.Call
		}
	}
	return whole, call
}
