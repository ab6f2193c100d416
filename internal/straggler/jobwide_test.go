// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// All hosts stall in every step from the middle on: that is the job's, whether its ranks
// have peers, one sibling, or only their own past.
func TestAStallOfAllHostsIsTheJobs(t *testing.T) {
	for _, l := range []training.Layout{
		{PP: 8, Microbatches: 8, Layers: 2, Scale: 0.25},
		{PP: 4, DP: 2, Microbatches: 8, Layers: 2, Scale: 0.25},
		{DP: 2},
		{DP: 8},
	} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			e := engineOf(t, training.Spec{
				Name: "stalls", Layout: l, Noise: training.DefaultNoise(), Steps: 48,
				Faults: []training.Fault{{Family: training.CheckpointStep, Severity: 0.05, Every: 1, From: 24}},
			}, 3)
			e.Verdicts()
			verdicts := e.Jobs()[0].Verdicts
			require.Len(t, verdicts, 1)
			assert.Equal(t, model.ClassJobWide, verdicts[0].Finding.Class)
			assert.NotEqual(t, model.StatusClosed, verdicts[0].Finding.Status)
		})
	}
}
