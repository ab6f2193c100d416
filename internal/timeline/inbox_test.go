// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// While a solution is made, edges are taken and counters read. A test that waited for
// the solution would never end.
func TestNothingWaitsForASolution(t *testing.T) {
	w := cluster(t, 80, 3)
	w.window()
	taken := w.tl.Counters().Edges.Added
	w.tl.solving.Lock()
	w.now += windowN
	for _, p := range w.pairs {
		require.NoError(t, w.tl.AddEdge(w.edge(p[0], p[1])))
	}
	crossed := w.edge(raw(0), raw(1))
	crossed.Lower, crossed.Upper = crossed.Upper, crossed.Lower
	require.ErrorContains(t, w.tl.AddEdge(crossed), "lower bound above the upper")
	assert.Equal(t, taken, w.tl.Counters().Edges.Added, "those that wait are not counted yet")
	w.contains(raw(1), w.now)
	_, ok := w.tl.Resolve("h1")
	assert.True(t, ok)
	w.tl.solving.Unlock()
	c := w.tl.Counters()
	assert.Equal(t, taken+int64(len(w.pairs)), c.Edges.Added)
	assert.Equal(t, int64(1), c.Edges.LowerAboveUpper)
	assert.Equal(t, int64(1), c.Refused)
	before := w.tl.State().clock(t, raw(1)).Model.Until
	w.advance()
	assert.Greater(t, w.tl.State().clock(t, raw(1)).Model.Until, before, "they count in the next")
}

func TestInboxIsBounded(t *testing.T) {
	tl := New(Options{MaxClocks: 2})
	e := model.ClockEdge{Src: "a", Dst: "b", Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser}
	tl.solving.Lock()
	for range edgesOfClock * 2 {
		require.NoError(t, tl.AddEdge(e))
	}
	require.ErrorContains(t, tl.AddEdge(e), "got 33 edges during a solution; want at most 32")
	tl.solving.Unlock()
	assert.Equal(t, int64(1), tl.Counters().EdgesOverflowed)
	assert.Equal(t, int64(32), tl.Counters().Edges.Added)
	// What was put by beyond a limit of the solver is counted, as what is added at once.
	tl.solving.Lock()
	e.Dst = "c"
	require.NoError(t, tl.AddEdge(e))
	tl.solving.Unlock()
	tl.Advance(time.Unix(0, epoch))
	assert.Equal(t, int64(1), tl.Counters().Refused)
	assert.Equal(t, int64(1), tl.Counters().Edges.TooManyClocks)
}
