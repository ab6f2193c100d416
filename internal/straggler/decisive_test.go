// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// The decisive meeting is the same as when all are looked through.
func TestTheDecisiveMeeting(t *testing.T) {
	spec := training.Spec{
		Name: "pipeline", Noise: training.DefaultNoise(), Steps: 6, Lost: 0.01,
		Layout: training.Layout{DP: 4, PP: 4, Microbatches: 4, Layers: 1, Scale: 0.25, PerNode: 2},
	}
	window := stretch(engineOf(t, spec, 3).sorted()[0].window)
	require.Len(t, window, spec.Steps)
	shared := 0
	for r := range int64(15) {
		for _, ranks := range [][]int64{{r}, {r, r + 1}, {r, (r + 4) % 16, (r + 8) % 16}} {
			var want *meetingRecord
			meetings, lasts := 0, 0
			for _, rec := range window {
				for _, mr := range rec.meets {
					members := 0
					for _, rank := range ranks {
						if mr.find(rank) >= 0 {
							members++
						}
					}
					if !mr.attributed || members == 0 {
						continue
					}
					meetings++
					if members > 1 {
						shared++
					}
					for _, rank := range ranks {
						if mr.ranks[mr.last] == rank && mr.waited > 0 {
							lasts++
							if want == nil || mr.waited > want.waited {
								want = mr
							}
						}
					}
				}
			}
			c := &candidate{in: window}
			c.Ranks = ranks
			var ev evidence.Straggler
			assert.Same(t, want, c.decisive(&ev), "%v", ranks)
			assert.Equal(t, meetings, ev.Meetings, "%v", ranks)
			assert.Equal(t, lasts, ev.LastArrivals, "%v", ranks)
		}
	}
	assert.Positive(t, shared)
}
