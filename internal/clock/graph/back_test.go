// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func tightEdge(src, dst string, at, offset int64) model.ClockEdge {
	return model.ClockEdge{
		Src: src, Dst: dst, At: at, Span: 2e9, Lower: offset - 1000, Upper: offset + 1000, Offset: offset, Sigma: 100,
		DriftBound: 1e-7, Samples: 100, Source: model.EdgeProbe, Stamps: model.StampKernel,
	}
}

// TestOlderForLong: an edge of a moment that is past is late, as is one of two senders
// that is always late, but what only comes later is heard.
func TestOlderForLong(t *testing.T) {
	s := New(Options{})
	add := func(at int64) {
		t.Helper()
		require.NoError(t, s.Add(tightEdge("a", "b", at, 5e6)))
	}
	until := func() int64 {
		m, ok := s.Solve().Model("b")
		require.True(t, ok)
		return m.Until - 5e6
	}
	at := int64(1000e9)
	add(at)
	until()
	for range 10 { // in turn
		at += 2e9
		add(at)
		require.InDelta(t, at, until(), 1.5e9)
		add(at - 20e9)
		require.InDelta(t, at, until(), 1.5e9)
	}
	assert.EqualValues(t, 10, s.Counters().Late)

	at += 2e9
	add(at)
	until()
	at -= 25e9 // the sender was ahead
	for i := range 6 {
		at += 2e9
		add(at)
		add(at) // twice in a solution is once
		if i >= convinced-1 {
			require.InDelta(t, at, until(), 1.5e9, "after %d", i+1)
		} else {
			require.Greater(t, until(), at+15e9)
		}
	}
}

// TestStepIsOfTheOneThatMoreTellOf: the reference is set back by less than a window, and
// some of its neighbours see it before others.
func TestStepIsOfTheOneThatMoreTellOf(t *testing.T) {
	s := New(Options{Prefer: []string{"a"}})
	names := []string{"a", "b", "c", "d", "e", "f"}
	window := func(at, back int64, seen map[string]bool) *Solution {
		for i, x := range names {
			for _, y := range names[i+1:] {
				e := tightEdge(x, y, at, 0)
				if x == "a" && seen[y] {
					e = tightEdge(x, y, at-back, back)
					e.Stepped = true
				} else if x == "a" && seen != nil {
					continue // it says nothing yet
				}
				require.NoError(t, s.Add(e))
			}
		}
		return s.Solve()
	}
	window(1000e9, 0, nil)
	sol := window(1002e9, 1.5e9, map[string]bool{"b": true, "c": true})
	for _, name := range names[1:] {
		m, ok := sol.Model(name)
		require.True(t, ok, name)
		assert.False(t, m.Untrusted, name)
		if m.Bounded {
			assert.InDelta(t, -1.5e9, m.Offset, float64(m.Bound), name)
		}
	}
	m, _ := sol.Model("a")
	assert.True(t, m.Stepped)
	for _, name := range []string{"d", "e", "f"} {
		m, _ := sol.Model(name)
		assert.False(t, m.Stepped, name)
		assert.True(t, m.Bounded, name)
	}
	assert.Empty(t, sol.Undecided())
}
