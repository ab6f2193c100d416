// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// pathologies are graphs that take long.
var pathologies = []struct {
	name  string
	make  func(w *world, n int) [][2]int
	liars int
}{
	{"ring", func(_ *world, n int) (pairs [][2]int) {
		for i := range n {
			pairs = append(pairs, [2]int{min(i, (i+1)%n), max(i, (i+1)%n)})
		}
		return pairs
	}, 0},
	{"star and mesh", func(w *world, n int) [][2]int {
		pairs := w.choices(n, 2)
		for i := 1; i < n; i++ {
			pairs = append(pairs, [2]int{0, i})
		}
		return pairs
	}, 40},
	{"mesh", func(w *world, n int) [][2]int { return w.choices(n, 5) }, 0},
	{"mesh with liars", func(w *world, n int) [][2]int { return w.choices(n, 5) }, 100},
}

func pathology(tb testing.TB, k, n int, opt Options) (*world, *Solver) {
	tb.Helper()
	const half = 1000.0
	w := newWorld(1, n)
	opt.Prefer = w.names[n-1:]
	s := New(opt)
	for _, p := range pathologies[k].make(w, n) {
		e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
		for _, c := range p {
			if c < pathologies[k].liars {
				e = w.lied(e, c, w.rng.Float64()*1e6)
			}
		}
		mustAdd(tb, s, e)
	}
	return w, s
}

// A solution that is cut short says less, and nothing wrong: bounds hold, sigmas
// cover the errors, and nobody honest is accused.
func TestWorkIsBounded(t *testing.T) {
	const n = 500
	for k, g := range pathologies {
		_, free := pathology(t, k, n, Options{})
		free.Solve()
		require.Zero(t, free.Counters().CutShort, g.name)
		for _, share := range []int{2, 8, 64} {
			most := free.work / share
			w, s := pathology(t, k, n, Options{MaxWork: most})
			sol := s.Solve()
			require.Equal(t, int64(1), s.Counters().CutShort, "%s, 1/%d", g.name, share)
			// The paths of bounds are searched all the same, and a round that was begun is
			// ended.
			assert.Less(t, s.work, most+free.work/4, "%s, 1/%d", g.name, share)
			for _, m := range sol.Models() {
				c := w.find(t, m.Clock)
				require.False(t, m.Untrusted && c >= g.liars, "%s, 1/%d: %+v", g.name, share, m)
				if !m.Bounded || c < g.liars {
					continue
				}
				err := math.Abs(w.errorOf(t, m, m.At))
				for _, r := range []int64{m.From, m.At, m.Until} {
					require.LessOrEqual(t, math.Abs(w.errorOf(t, m, r)), float64(m.Bound)+1, "%s, 1/%d: %+v", g.name, share, m)
				}
				if m.Clock != m.Reference {
					require.LessOrEqual(t, err, 2*m.Sigma, "%s, 1/%d: %+v", g.name, share, m)
				}
			}
			if g.liars == 0 {
				require.False(t, slices.ContainsFunc(sol.Models(), func(m Solved) bool { return !m.Bounded }), g.name)
			}
		}
	}
}

// Solutions in between, from which weights are found, are solved no better than these need:
// all is done long before work ends.
func TestWorkSuffices(t *testing.T) {
	most := map[string]int{"ring": 45e6, "star and mesh": 80e6, "mesh": 4e6, "mesh with liars": 40e6}
	for k, g := range pathologies {
		w, s := pathology(t, k, 2000, Options{})
		sol := s.Solve()
		assert.Zero(t, s.Counters().CutShort, g.name)
		assert.Less(t, s.work, most[g.name], g.name)
		found := untrustedOf(sol)
		for _, name := range found {
			assert.Less(t, w.find(t, name), g.liars, g.name)
		}
		assert.GreaterOrEqual(t, len(found), g.liars*3/4, g.name)
	}
}

// Of a star and a mesh whose centre lies, and some about it, everybody is found who tells three
// honest neighbours times that differ. Where two of three are told the same, or two in all, it
// could be the third who lies. Who is next to two liars is not taken for one in their place.
func TestStarAndMesh(t *testing.T) {
	const star, clearly = 1, 100e3
	sizes := []int{1000, 2000, 10_000}
	for _, n := range sizes[:tier.N(t, 2, 3)] {
		w, s := pathology(t, star, n, Options{})
		lies := make([][]float64, pathologies[star].liars) // to honest neighbours
		for i := range s.edges {
			e := &s.edges[i]
			src, dst := w.find(t, e.Src), w.find(t, e.Dst)
			for _, p := range [][2]int{{src, dst}, {dst, src}} {
				if liar, other := p[0], p[1]; liar < len(lies) && other >= len(lies) {
					lies[liar] = append(lies[liar], math.Abs(float64(w.read(dst, 1e9)-w.read(src, 1e9)-e.Offset)))
				}
			}
		}
		var sure, maybe []string
		for c, told := range lies {
			different := 0
			slices.Sort(told)
			for i, lie := range told {
				if i == 0 || lie-told[i-1] > clearly {
					different++
				}
			}
			if different >= fewestWitnesses {
				sure = append(sure, w.names[c])
			}
			if len(told) >= fewestWitnesses-1 {
				maybe = append(maybe, w.names[c])
			}
		}
		found := untrustedOf(s.Solve())
		require.Less(t, len(sure), len(lies), "all are to be found")
		assert.Subset(t, found, sure, "%d clocks", n)
		assert.Subset(t, maybe, found, "%d clocks", n)
	}
}

// BenchmarkPathologies solves for graphs that take long.
func BenchmarkPathologies(b *testing.B) {
	for k, g := range pathologies {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/clocks=%d", g.name, n), func(b *testing.B) {
				_, s := pathology(b, k, n, Options{})
				b.ResetTimer()
				for b.Loop() {
					s.Solve()
				}
				b.ReportMetric(float64(s.work)/1e6, "M_edges")
				b.ReportMetric(float64(len(untrustedOf(s.last))), "untrusted")
				b.ReportMetric(float64(s.count.Unsettled)/float64(b.N), "unsettled")
				b.ReportMetric(float64(s.count.CutShort)/float64(b.N), "cut_short")
			})
		}
	}
}
