// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// elsewhereRuns solves a minute and a half of four hosts whose realtime clocks call one
// another; the traces of eight seconds come five after they end. It returns how often each
// clock was untrusted. steps are when the first realtime clock is stepped by 100 ms; apart is by how much that is
// not the clock of the spans.
func elsewhereRuns(t *testing.T, apart int64, steps ...float64) map[string]int {
	t.Helper()
	const hosts = 4
	w := newWorld(3, hosts)
	for i := range hosts {
		w.clock("host:"+w.names[i]+"/realtime", 1_780_000_000_000_000_000, 10e-6)
	}
	first := w.start[hosts]
	s := New(Options{Prefer: w.names[:1]})
	set := func(at float64) (n int) {
		for _, step := range steps {
			if at >= step {
				n++
			}
		}
		w.start[hosts] = first + int64(n)*100e6
		return n
	}
	marked := map[string]int{}
	for now := 20e9; now < 110e9; now += 2e9 {
		stepped := set(now-1e9) != set(now-3e9)
		set(now - 1e9)
		for i := range hosts {
			for j := range i {
				mustAdd(t, s, w.edge(j, i, now-1e9, w.noise(500), 500))
			}
			e := w.edge(i, hosts+i, now-1e9, w.noise(50), 50)
			e.Source, e.Stepped = model.EdgePair, stepped && i == 0
			mustAdd(t, s, e)
		}
		if set(now-13e9) == set(now-5e9) {
			w.start[hosts] += apart
			for i := range hosts {
				for j := range i {
					e := w.edge(hosts+j, hosts+i, now-9e9, w.noise(1e6), 1e6)
					e.Source, e.Stamps, e.Span = model.EdgeCall, model.StampApplication, 8e9
					mustAdd(t, s, e)
				}
			}
		}
		sol := s.Solve()
		require.Empty(t, sol.Undecided())
		for _, name := range untrustedOf(sol) {
			marked[name]++
		}
	}
	return marked
}

func TestTracesThatComeLateCatchTheWrongClock(t *testing.T) {
	marked := elsewhereRuns(t, 50e6)
	require.Len(t, marked, 1)
	assert.Greater(t, marked["host:host:0000/b/raw/realtime"], 30, "of 45 solutions: some pass before there is proof")
	assert.Empty(t, elsewhereRuns(t, 0))
}

// What a clock was before it was stepped is no proof that it is not the clock of its spans.
func TestStepsAreNotElsewhere(t *testing.T) {
	assert.Empty(t, elsewhereRuns(t, 0, 40e9))
	assert.Empty(t, elsewhereRuns(t, 0, 40e9, 52e9, 64e9, 76e9, 88e9))
	assert.Empty(t, elsewhereRuns(t, 0, 40e9, 61e9, 82e9))
}
