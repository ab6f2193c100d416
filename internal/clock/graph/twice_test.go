// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Readings of a clock that was stepped back are there twice. A clock that was read beside
// it just before must not be placed where the same reading came again.
func TestNothingHangsOnReadingsThatAreThereTwice(t *testing.T) {
	const step, at = 100e6, 9.9e9
	w := newWorld(1, 5)
	realtime := w.clock("host:0000/b/realtime", 1_780_000_000_000_000_000, 0)
	s := New(Options{Prefer: []string{w.names[1]}})
	// Read together 50 ms before the first raw clock was stepped back by 100 ms.
	e := w.edge(0, realtime, at-50e6, 0, 50)
	e.Source, e.Span = model.EdgePair, 20e6
	mustAdd(t, s, e)
	w.start[0] -= step
	for a := range 5 {
		for b := range a {
			e := w.edge(b, a, 10e9, 0, 1000)
			if b == 0 {
				e = w.edge(b, a, (at+11e9)/2, 0, 1000)
				e.Span, e.Stepped = 11e9-at, true
			}
			mustAdd(t, s, e)
		}
	}
	sol := s.Solve()
	m, ok := sol.Model(w.names[0])
	require.True(t, ok)
	require.True(t, m.Stepped)
	if m, ok := sol.Model("host:0000/b/realtime"); ok && m.Bounded {
		assert.LessOrEqual(t, math.Abs(w.errorOf(t, m, m.At)), float64(m.Bound), "%+v", m)
	}
}
