// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Packed sequences make every message another size.
func TestASlowLinkOfMessagesOfVaryingSize(t *testing.T) {
	spec := training.Spec{
		Name: "pipeline", Noise: training.DefaultNoise(), Steps: 12,
		Layout: training.Layout{PP: 4, DP: 4, TP: 1, Microbatches: 8, Layers: 1, Scale: 0.25, PerNode: 1},
		Faults: []training.Fault{{Family: training.NICTx, Severity: 4}},
	}
	for name, spread := range map[string]float64{"of one size": 0, "of varying size": 0.1} {
		t.Run(name, func(t *testing.T) {
			job, err := training.New(spec, 0)
			require.NoError(t, err)
			rng := rand.New(rand.NewPCG(7, 7))
			e := changedEngine(t, job, func(_ int, op *model.Op) {
				if size := &op.Collective.Bytes; size.OK && (op.Kind == model.KindSend || op.Kind == model.KindRecv) {
					size.V = int64(float64(size.V) * (1 - spread*rng.Float64()))
				}
			})
			var links []string
			for _, v := range e.Jobs()[0].Verdicts {
				links = append(links, v.Finding.Link)
			}
			assert.Contains(t, links, fmt.Sprintf("rank %d nic tx", job.Truth().Culprits[0].Ranks[0]))
		})
	}
}
