// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mesh is a solution of n clocks with edges of very different widths.
func mesh(tb testing.TB, w *world, n, k int, opt Options) (*Solver, *Solution) {
	tb.Helper()
	s := New(opt)
	for _, p := range w.choices(n, k) {
		half := 200 * math.Exp(2*w.rng.NormFloat64())
		mustAdd(tb, s, w.edge(p[0], p[1], 1e9, w.noise(half), half))
	}
	return s, s.Solve()
}

// What is searched from both ends is what a search of the whole graph finds, and
// what a search finds that may not end is right as well: no shorter than that, and
// no longer than the way through the reference.
func TestSearchFindsTheShortestPath(t *testing.T) {
	const n = 60
	for seed := range uint64(5) {
		w := newWorld(seed, n)
		_, sol := mesh(t, w, n, 2, Options{Prefer: w.names[:1]})
		q, r := sol.paths, newRoute(n)
		limited := 0
		for a := range int32(n) {
			there := q.net.distances([]int32{a}, q.potential, false)
			back := q.net.distances([]int32{a}, q.potential, true)
			for b := range int32(n) {
				if a == b {
					continue
				}
				got := q.search(a, b)
				require.Equal(t, gap{-back[b], there[b]}, got, "%d to %d", a, b)
				blind, _ := r.search(q.net, q.potential, a, b, noHi, 2*n)
				require.Equal(t, there[b], blind)
				through := q.upper[b] - q.lower[a]
				part, followed := r.search(q.net, q.potential, a, b, through, 3)
				require.LessOrEqual(t, followed, 3)
				require.GreaterOrEqual(t, part, there[b])
				require.LessOrEqual(t, part, through)
				if part > there[b] {
					limited++
				}
			}
		}
		assert.Positive(t, limited, "a limit that binds nobody is not tested")
	}
}

// Without a path there is none, whatever the limit.
func TestSearchBetweenComponents(t *testing.T) {
	w := newWorld(1, 4)
	s := New(Options{})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 1000))
	mustAdd(t, s, w.edge(2, 3, 1e9, 0, 1000))
	q := s.Solve().paths
	length, _ := newRoute(4).search(q.net, q.potential, q.ids[w.names[0]], q.ids[w.names[2]], noHi, 100)
	assert.Equal(t, int64(noHi), length)
}

// A question must not cost a search of the whole graph.
func TestSearchFollowsFewClocks(t *testing.T) {
	const n, questions = 4000, 200
	w := newWorld(1, n)
	_, sol := mesh(t, w, n, 5, Options{})
	for i := range questions {
		a, b := (i*17)%n, (i*7919+1)%n
		_, _, ok := sol.Between(w.names[a], w.read(a, 1e9), w.names[b], w.read(b, 1e9))
		require.True(t, ok)
	}
	assert.Less(t, sol.paths.followed.Load(), int64(questions*n/10))
	before := sol.paths.followed.Load()
	for range 2 {
		_, _, ok := sol.Between(w.names[1], w.read(1, 1e9), w.names[0], w.read(0, 1e9))
		require.True(t, ok)
	}
	assert.Equal(t, before, sol.paths.followed.Load(), "a pair that was asked about, the other way round")
}

// All questions together follow no more than the limit, and the rest is counted.
func TestSearchIsBounded(t *testing.T) {
	const n = 200
	w := newWorld(1, n)
	s, sol := mesh(t, w, n, 3, Options{MaxFollowed: 50})
	for a := range n - 1 {
		lo, hi, ok := sol.Between(w.names[a], w.read(a, 1e9), w.names[a+1], w.read(a+1, 1e9))
		require.True(t, ok)
		require.True(t, lo <= 0 && hi >= 0, "%d to %d", lo, hi)
	}
	assert.Equal(t, int64(50), sol.paths.followed.Load())
	assert.Positive(t, s.Counters().PathsOverflowed)
}

// A search holds up nobody: it needs no lock. Run with -race it also shows that
// nothing else is shared.
func TestSearchesDoNotWaitForOneAnother(t *testing.T) {
	const n = 100
	w := newWorld(1, n)
	_, sol := mesh(t, w, n, 3, Options{})
	q := sol.paths
	q.mu.Lock()
	one := q.search(1, 2)
	q.mu.Unlock()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 3 * n {
				a, b := (i+g)%n, (i*3+g+1)%n
				_, _, ok := sol.Between(w.names[a], w.read(a, 1e9), w.names[b], w.read(b, 1e9))
				assert.True(t, ok)
			}
		})
	}
	all.Wait()
	assert.Equal(t, one, q.search(1, 2))
}
