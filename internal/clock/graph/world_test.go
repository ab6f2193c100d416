// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// world is a set of clocks of known truth. True time is ns from 0.
type world struct {
	rng   *rand.Rand
	names []string
	start []int64 // reading at true time 0
	drift []float64
}

func newWorld(seed uint64, n int) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range n {
		w.clock(fmt.Sprintf("host:%04d/b/raw", i), w.rng.Int64N(1e15), (w.rng.Float64()*2-1)*50e-6)
	}
	return w
}

func (w *world) clock(name string, start int64, drift float64) int {
	w.names = append(w.names, name)
	w.start = append(w.start, start)
	w.drift = append(w.drift, drift)
	return len(w.names) - 1
}

// read is what clock c shows at true time t.
func (w *world) read(c int, t float64) int64 {
	return w.start[c] + int64(math.Round(t+w.drift[c]*t))
}

// when is the true time at which clock c shows a reading.
func (w *world) when(c int, reading int64) float64 {
	return float64(reading-w.start[c]) / (1 + w.drift[c])
}

// edge is what an honest observer of src and dst says at true time t: the estimate
// is wrong by err, and its bounds lie half to either side of it.
func (w *world) edge(src, dst int, t, err, half float64) model.ClockEdge {
	at := w.read(src, t)
	offset := w.read(dst, t) - at + int64(math.Round(err))
	return model.ClockEdge{
		Src: w.names[src], Dst: w.names[dst], At: at, Span: 2e9,
		Offset: offset, Lower: offset - int64(half) - 1, Upper: offset + int64(half) + 1, Sigma: half / 3,
		Drift: (1+w.drift[dst])/(1+w.drift[src]) - 1, DriftBound: 0.02e-6,
		Samples: 100, Source: model.EdgeProbe, Stamps: model.StampKernel,
	}
}

// choices returns the pairs when every one of n clocks probes k others at random.
func (w *world) choices(n, k int) (pairs [][2]int) {
	seen := map[[2]int]bool{}
	for a := range n {
		for _, b := range w.rng.Perm(n - 1)[:k] {
			if b >= a {
				b++
			}
			if p := [2]int{min(a, b), max(a, b)}; !seen[p] {
				seen[p] = true
				pairs = append(pairs, p)
			}
		}
	}
	return pairs
}

// noise is an error within the bounds of an edge.
func (w *world) noise(half float64) float64 {
	return max(-half, min(half, w.rng.NormFloat64()*half/3))
}

func mustAdd(tb testing.TB, s *Solver, e model.ClockEdge) {
	tb.Helper()
	if err := s.Add(e); err != nil {
		require.NoError(tb, err)
	}
}

// errorOf is by how much a model misplaces its clock against its reference, in ns
// of the reference, at reading r.
func (w *world) errorOf(tb testing.TB, m Solved, r int64) float64 {
	tb.Helper()
	c, ref := w.find(tb, m.Clock), w.find(tb, m.Reference)
	truth := w.read(ref, w.when(c, r))
	placed := r + m.Offset + int64(math.Round(m.Drift*float64(r-m.At)))
	return float64(placed - truth)
}

func (w *world) find(tb testing.TB, name string) int {
	tb.Helper()
	for i, n := range w.names {
		if n == name {
			return i
		}
	}
	tb.Fatalf("clock %q: got one that nobody made", name)
	return -1
}

func rms(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(v)))
}
