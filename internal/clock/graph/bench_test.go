// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"testing"
)

// BenchmarkSolve solves for n clocks with ten neighbours each, and with a liar
// among them. Its growth from 1,000 to 10,000 clocks is what counts.
func BenchmarkSolve(b *testing.B) {
	for _, liars := range []int{0, 1} {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("clocks=%d/liars=%d", n, liars), func(b *testing.B) {
				const half = 1000.0
				w := newWorld(1, n)
				s := New(Options{})
				for _, p := range w.choices(n, 5) {
					e := w.edge(p[0], p[1], 1e9, w.noise(half), half)
					if p[0] < liars || p[1] < liars {
						e = w.lied(e, min(p[0], p[1]), w.rng.Float64()*1e6)
					}
					mustAdd(b, s, e)
				}
				b.ResetTimer()
				for b.Loop() {
					if sol := s.Solve(); len(untrustedOf(sol)) != liars {
						b.Fatalf("untrusted: got %v; want %d", untrustedOf(sol), liars)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/clock")
			})
		}
	}
}

// BenchmarkBetween asks one solution about pairs of clocks, each for the first
// time.
func BenchmarkBetween(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("clocks=%d", n), func(b *testing.B) {
			const half = 1000.0
			w := newWorld(1, n)
			s := New(Options{})
			for _, p := range w.choices(n, 5) {
				mustAdd(b, s, w.edge(p[0], p[1], 1e9, w.noise(half), half))
			}
			sol := s.Solve()
			i, followed := 0, int64(0)
			for b.Loop() {
				a, c := i%n, (i*7919+1)%n
				if _, _, ok := sol.Between(w.names[a], w.read(a, 1e9), w.names[c], w.read(c, 1e9)); !ok {
					b.Fatal("clocks of one component: got nothing; want bounds")
				}
				if i++; i%64 == 0 {
					b.StopTimer()
					followed += sol.paths.followed.Load()
					sol = s.Solve()
					b.StartTimer()
				}
			}
			followed += sol.paths.followed.Load()
			b.ReportMetric(float64(followed)/float64(b.N), "clocks/op")
		})
	}
}
