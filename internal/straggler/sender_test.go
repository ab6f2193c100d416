// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// wires returns hops with the given wire waits in ms and proxy steps, by rank;
// who sends no steps only receives. All leave once the slowest is through.
func wires(waits []float64, steps ...int64) func(int64) hop {
	longest := 0.0
	for _, x := range waits {
		longest = max(longest, x)
	}
	return func(r int64) hop {
		h := hop{transfer: transferMs + longest, wire: waits[r], next: model.Some((r + 1) % int64(len(waits)))}
		if len(steps) > 0 {
			h.steps = steps[r]
		}
		h.silent = h.wire == 0
		return h
	}
}

func TestOnlySendersAreComparedAndPerStep(t *testing.T) {
	for name, tc := range map[string]struct {
		waits []float64
		steps []int64
		link  string
	}{
		"as many steps, longer waits":             {waits: []float64{3, 9, 3, 3}, link: "rank 1 -> rank 2"},
		"three times the steps and waits":         {waits: []float64{3, 9, 3, 3}, steps: []int64{8, 24, 8, 8}},
		"three times the steps, nine the waits":   {waits: []float64{3, 27, 3, 3}, steps: []int64{8, 24, 8, 8}, link: "rank 1 -> rank 2"},
		"a third of the steps, as long waits":     {waits: []float64{9, 9, 9, 9}, steps: []int64{24, 8, 24, 24}, link: "rank 1 -> rank 2"},
		"one sends, the others receive":           {waits: []float64{0, 3, 0, 0}},
		"a ring over two nodes":                   {waits: []float64{0, 10, 0, 10}},
		"a ring over two nodes, one link is slow": {waits: []float64{0, 3, 0, 12}},
		"a tree: inner nodes send more":           {waits: []float64{2, 6, 6, 2, 2, 2, 2}, steps: []int64{16, 48, 48, 16, 16, 16, 16}},
		"one NIC per node":                        {waits: []float64{0, 4, 0, 4, 0, 4, 0, 4}},
		"one NIC per node, one of them slow":      {waits: []float64{0, 4, 0, 12, 0, 4, 0, 4}, link: "rank 3 -> rank 4"},
		"steps are not counted":                   {waits: []float64{3, 9, 3, 3}, steps: []int64{-1, -1, -1, -1}},
		"one source alone counts no steps":        {waits: []float64{3, 9, 3, 3}, steps: []int64{8, -1, 8, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			size := len(tc.waits)
			w := liveWorld(t, size)
			w.ring = wires(tc.waits, tc.steps...)
			vs, at := firstFinding(w, 20, func(int64) []program { return each(size, liveStep, nil) })
			if tc.link == "" {
				assert.Empty(t, vs, "step %d", at)
				return
			}
			require.Len(t, vs, 1)
			assert.Equal(t, model.ClassLink, vs[0].Finding.Class)
			assert.Equal(t, tc.link, vs[0].Finding.Link)
		})
	}
}

func TestALinkShowsItsWaitsPerStep(t *testing.T) {
	w := liveWorld(t, 4)
	w.ring = wires([]float64{3, 27, 3, 3}, 8, 24, 8, 8)
	vs, _ := firstFinding(w, 20, func(int64) []program { return each(4, liveStep, nil) })
	require.Len(t, vs, 1)
	d := linkEvidence(t, vs[0].Finding).Decisive
	assert.InDelta(t, 0.027, d.Wire, 1e-9)
	assert.Equal(t, int64(24), d.Steps)
	assert.InDelta(t, 0.027/24, d.PerStep, 1e-9)
	assert.InDelta(t, 0.003/8, d.PeersStep, 1e-9)
	// 24 steps at the peers' pace take 9 ms: 18 in each of two collectives.
	assert.InDelta(t, 0.036, vs[0].Finding.CostSeconds.V, 1e-6)
}

// Links that are not known to be slow excuse nobody.
func TestEqualSendersHideNoStraggler(t *testing.T) {
	for name, hops := range map[string]func(int64) hop{
		"a ring over two nodes": wires([]float64{0, 10, 0, 10}),
		"four equal senders":    wires([]float64{10, 10, 10, 10}),
		"one sends more":        wires([]float64{3, 15, 3, 3}, 8, 40, 8, 8),
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.ring = hops
			slow := map[int]program{2: "h4:data_loading c37 h1:forward * c10 h1:backward * c5 s"}
			vs, _ := firstFinding(w, 10, func(int64) []program { return each(4, liveStep, slow) })
			require.Len(t, vs, 1)
			assert.Equal(t, model.ClassCompute, vs[0].Finding.Class)
			assert.Equal(t, int64(2), vs[0].Finding.Rank.V)
		})
	}
}

// A link that merely happens to have the largest excess is not evidence that
// another rank's work was uncovered by it.
func TestALinkThatMayBeChanceHidesNoStraggler(t *testing.T) {
	w := liveWorld(t, 4)
	slow := map[int]program{3: "h4:data_loading c34 h1:forward * c10 h1:backward * c5 s"}
	var n int64
	vs, _ := firstFinding(w, 20, func(int64) []program {
		waits := []float64{2, 2, 2, 2}
		waits[n%4] = 14
		n++
		w.ring = wires(waits)
		return each(4, liveStep, slow)
	})
	require.Len(t, vs, 1)
	assert.Equal(t, model.ClassCompute, vs[0].Finding.Class)
	assert.Equal(t, int64(3), vs[0].Finding.Rank.V)
}
