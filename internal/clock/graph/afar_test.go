// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Many clocks, and one that is said to be a minute off by half of its neighbours: it takes no
// part at once, is accused after half a horizon, and nobody else is touched. It is taken back
// once nobody says so any more.
func TestFarContradictions(t *testing.T) {
	const n, half, liar = 64, 1000.0, 5
	w := newWorld(3, n)
	s := New(Options{Prefer: []string{w.names[liar]}})
	pairs := w.choices(n, 5)
	window := func(at, lie float64) *Solution {
		turn := 0
		for _, p := range pairs {
			e := w.edge(p[0], p[1], at, w.noise(half), half)
			if p[0] == liar || p[1] == liar {
				if turn++; turn%2 == 0 {
					e = w.lied(e, liar, lie)
				}
			}
			mustAdd(t, s, e)
		}
		return s.Solve()
	}
	begin := 1e9
	for k := range 12 {
		at := begin + float64(k)*2e9
		sol := window(at, 60e9)
		accused := untrustedOf(sol)
		if at-begin <= float64(s.opt.Horizon)/2 {
			require.Empty(t, accused, "%v", time.Duration(at))
			_, told := sol.Model(w.names[liar])
			require.False(t, told, "%v", time.Duration(at))
		} else {
			require.Equal(t, []string{w.names[liar]}, accused, "%v", time.Duration(at))
		}
		require.Len(t, sol.Components(), 1)
		assert.Less(t, w.others(t, sol, w.names[liar]), half)
	}
	begin += 24e9
	for k := range 20 {
		sol := window(begin+float64(k)*2e9, 0)
		if k > 18 {
			assert.Empty(t, untrustedOf(sol))
			_, told := sol.Model(w.names[liar])
			assert.True(t, told)
		}
	}
	assert.Zero(t, s.afar.Len())
}

// What is remembered is bounded.
func TestFarContradictionsAreBounded(t *testing.T) {
	w := newWorld(1, 2)
	s := New(Options{MaxClocks: 2})
	mustAdd(t, s, w.edge(0, 1, 1e9, 0, 500))
	p := newProblem(s)
	for _, name := range []string{"a", "b", "c", "c"} {
		s.noteAfar(p, [2]string{name}, []Evidence{{Other: "x"}}, 0)
	}
	assert.Equal(t, 2, s.afar.Len())
	assert.EqualValues(t, 2, s.Counters().AfarOverflow)
}

// Who may have been set is remembered for a horizon, and no more than there are clocks.
func TestWhoMayHaveBeenSetIsBounded(t *testing.T) {
	w := newWorld(1, 4)
	s := New(Options{MaxClocks: 2})
	for k := range 3 {
		e := w.edge(k, k+1, 1e9, 0, 500)
		s.noteMoved(&e)
	}
	assert.Equal(t, 2, s.moved.Len())
	assert.EqualValues(t, 3, s.Counters().AfarOverflow)
	s.elapsed = s.opt.Horizon.Nanoseconds()
	s.lookAfar()
	assert.Zero(t, s.moved.Len())
}

// What is remembered of one clock does not keep what is remembered of another one for longer.
func TestSolver_ExpiredBehindWhatCameAgain_IsForgotten(t *testing.T) {
	w := newWorld(1, 4)
	again, once := w.edge(0, 1, 1e9, 0, 500), w.edge(2, 3, 1e9, 0, 500)
	againPair, oncePair := pairOfNames(again.Src, again.Dst), pairOfNames(once.Src, once.Dst)
	remember := map[string]struct {
		note   func(s *Solver, e *model.ClockEdge)
		forget func(s *Solver)
		held   func(s *Solver, pair [2]string) bool
	}{
		"offset": {
			note: func(s *Solver, e *model.ClockEdge) {
				s.noteAfar(newProblem(s), pairOfNames(e.Src, e.Dst), []Evidence{{Other: "x"}})
			},
			forget: func(s *Solver) { s.lookAfar() },
			held:   func(s *Solver, pair [2]string) bool { return s.afar.Has(pair) },
		},
		"step": {
			note:   (*Solver).noteMoved,
			forget: func(s *Solver) { s.lookAfar() },
			held:   func(s *Solver, pair [2]string) bool { return s.moved.Has(pair[0]) && s.moved.Has(pair[1]) },
		},
		"crossing": {
			note:   func(s *Solver, e *model.ClockEdge) { s.noteCrossing(e, 1) },
			forget: (*Solver).ageCrossings,
			held:   func(s *Solver, pair [2]string) bool { return s.crossing.Has(pair) },
		},
	}
	for name, r := range remember {
		t.Run(name, func(t *testing.T) {
			s := New(Options{})
			r.note(s, &again)
			r.note(s, &once)
			horizon := s.opt.Horizon
			s.elapsed, s.solutions = horizon.Nanoseconds(), int(horizon/s.opt.Window)
			r.note(s, &again)
			s.elapsed++
			s.solutions++
			r.forget(s)
			assert.True(t, r.held(s, againPair))
			assert.False(t, r.held(s, oncePair))
		})
	}
}

// A pair that differs by a minute is named after as long, and nobody is accused.
func TestFarContradictionOfTwoIsUndecided(t *testing.T) {
	const n, half = 64, 1000.0
	w := newWorld(5, n)
	s := New(Options{})
	pairs := w.choices(n, 5)
	named := 0
	for k := range 12 {
		for i, p := range pairs {
			e := w.edge(p[0], p[1], 1e9+float64(k)*2e9, w.noise(half), half)
			if i == 7 {
				e = w.lied(e, p[0], 60e9)
			}
			mustAdd(t, s, e)
		}
		sol := s.Solve()
		require.Empty(t, untrustedOf(sol))
		for _, u := range sol.Undecided() {
			assert.Equal(t, pairOfNames(w.names[pairs[7][0]], w.names[pairs[7][1]]), pairOfNames(u.A, u.B))
			assert.InDelta(t, 60e9, u.Excess, 1e9)
			named++
		}
		w.others(t, sol)
	}
	assert.Equal(t, 3, named, "after 16 s")
}
