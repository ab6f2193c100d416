// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// When a chain ends in which nothing is mended is not looked for where its steps stand as
// recorded. It must be what a replay gives, also where spans were lost and where clocks come
// to be placed otherwise from step to step.
func TestWhatStandsAsRecordedIsNotReplayed(t *testing.T) {
	layouts := []training.Spec{
		{Name: "ddp", Layout: training.Layout{DP: 16}},
		{Name: "lost", Layout: training.Layout{DP: 16}, Lost: 0.02},
		{Name: "pipeline", Layout: training.Layout{PP: 4, DP: 4, Microbatches: 8, Layers: 3, Scale: 0.25}},
		{Name: "clocks", Layout: training.Layout{DP: 16}, Clock: training.Clock{Error: 0.001, Drift: 200}},
		{Name: "pipeline of clocks", Layout: training.Layout{PP: 4, DP: 4, Microbatches: 8, Layers: 3, Scale: 0.25}, Clock: training.Clock{Error: 0.001, Drift: 200}},
	}
	steady, moved := 0, 0
	for _, spec := range layouts {
		spec.Noise, spec.Steps = training.DefaultNoise(), 12
		window := engineOf(t, spec, 7).sorted()[0].window
		for n := 1; n < len(window); n++ {
			chain := window[n-1 : n+1]
			stands := chain[0].steady && chain[1].steady
			got := replayChain(chain, mending{})
			chain[0].steady = false
			want := replayChain(chain, mending{})
			chain[0].steady = stands
			assert.Equal(t, want, got, "%s, step %d", spec.Name, chain[1].step)
			if stands {
				steady++
			}
			if want != chain[1].lastEnd() {
				moved++
			}
		}
	}
	assert.Positive(t, steady, "chains that stand")
	assert.Positive(t, moved, "chains that a replay moves")
	t.Logf("%d stand, %d are moved", steady, moved)
}
