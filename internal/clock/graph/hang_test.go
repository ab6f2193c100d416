// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In its first second a mesh has edges of some ms each, that hardly two times have in
// common, and some are as wide as a message lay in a queue. Where a clock stands is
// what the best of them say, not the newest, nor one that happens to cover the instant.
func TestWideEdgesMoveNobody(t *testing.T) {
	const good, wide, short = 100e3, 6e6, 2_000_000
	type seen struct {
		src, dst  int
		t         float64
		err, half float64
	}
	for name, edges := range map[string][]seen{
		"newer, to one that is placed": {
			{0, 3, 1.000e9, 0, good},
			{0, 4, 1.000e9, 0, good},
			{0, 2, 0.900e9, 0, good},
			{1, 2, 1.050e9, 5e6, wide},
			{0, 1, 1.000e9, 0, good},
		},
		"of the reference, and newer": {
			{0, 3, 1.000e9, 0, good},
			{0, 4, 1.000e9, 0, good},
			{0, 2, 1.050e9, 5e6, wide},
			{1, 2, 0.900e9, 0, good},
			{0, 1, 1.000e9, 0, good},
		},
		"covers the instant": {
			{0, 3, 1.000e9, 0, good},
			{0, 4, 1.000e9, 0, good},
			{1, 2, 1.000e9, 5e6, wide},
			{0, 2, 0.950e9, 0, good},
			{0, 1, 1.000e9, 0, good},
		},
		"covers the instant, on the way there": {
			{0, 3, 1.000e9, 0, good},
			{0, 4, 1.000e9, 0, good},
			{0, 1, 1.000e9, 5e6, wide},
			{1, 2, 1.000e9, 0, good},
			{0, 2, 0.950e9, 0, good},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1, 5)
			s := New(Options{Prefer: w.names})
			for _, o := range edges {
				e := w.edge(o.src, o.dst, o.t, o.err, o.half)
				e.Span, e.Drift, e.DriftBound = short, 0, 1e-3
				mustAdd(t, s, e)
			}
			m, ok := s.Solve().Model(w.names[2])
			require.True(t, ok)
			require.Equal(t, w.names[0], m.Reference)
			off := w.errorOf(t, m, m.At)
			assert.Less(t, max(off, -off), 2*good)
			assert.Less(t, m.Bound, int64(4*good))
			assert.LessOrEqual(t, max(off, -off), float64(m.Bound))
		})
	}
}
