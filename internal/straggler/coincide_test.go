// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// Each host holds exactly one stage, and nobody recorded kernels: more layers and a slow host
// leave the same stamps.
func TestAStageThatMayBeAHostIsToldAsBoth(t *testing.T) {
	layout := training.Layout{DP: 2, PP: 4, TP: 2, PerNode: 4, Microbatches: 8, Layers: 2}
	for name, fault := range map[string]training.Fault{
		"more layers": {Family: training.Stage, Severity: 0.5},
		"a slow host": {Family: training.Node, Severity: 1.5, Ranks: []int64{4}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := training.Spec{
				Name: "x", Layout: layout, Noise: training.DefaultNoise(), Steps: 24, Witness: training.KernelChannels, Faults: []training.Fault{fault},
			}
			e := bent(t, spec, func(int64, []model.Op) {})
			told := e.Jobs()[0].Verdicts
			require.NotEmpty(t, told)
			for _, v := range told {
				f := &v.Finding
				assert.Equal(t, model.ClassStageImbalance, f.Class)
				assert.False(t, f.Rank.OK)
				assert.Empty(t, f.Host, "nobody is accused")
				assert.LessOrEqual(t, f.Confidence, 0.5)
				assert.Regexp(t, `^stage \d has more work than the others, or host node\d+ is slow`, f.Action)
				ev, ok := evidence.As[evidence.Straggler](f.Evidence)
				require.True(t, ok)
				require.NotEmpty(t, ev.LoweredBy)
				assert.Contains(t, ev.LoweredBy[0], "holds this stage and nothing else")
			}
		})
	}
}
