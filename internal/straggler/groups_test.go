// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// changedEngine gives an engine a job, each operation after change of rank number i.
func changedEngine(t *testing.T, job *training.Job, change func(i int, op *model.Op)) *Engine {
	t.Helper()
	e := New(NewDefaultConfig(), time.Now)
	ranks := job.Ranks()
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		for i := range ranks {
			ops := slices.Clone(step.Ops(i))
			for k := range ops {
				change(i, &ops[k])
			}
			e.Add(ranks[i], ops)
		}
	}
	e.Flush()
	return e
}

// Groups of ranks that have no member in common may bear one name: what one of them is
// blamed for is not another's.
func TestGroupsOfOneNameAreComparedWithEachOther(t *testing.T) {
	spec := training.Spec{
		Name: "tensor", Noise: training.DefaultNoise(), Steps: 16,
		Layout: training.Layout{DP: 8, PP: 1, TP: 4, Microbatches: 4, Layers: 2, Scale: 0.5, PerNode: 4},
		Faults: []training.Fault{{Family: training.NVLink, Severity: 6}},
	}
	type told struct {
		ranks []int64
		cost  float64
	}
	of := func(shared func(group int) bool) (out []told) {
		job, err := training.New(spec, 5)
		require.NoError(t, err)
		e := changedEngine(t, job, func(i int, op *model.Op) {
			if op.Kind.IsComm() && op.Comm.Size.V == 4 && shared(i/4) {
				require.NotEmpty(t, op.Comm.Digest)
				op.Comm.ID = "tp"
			}
		})
		for _, v := range e.Jobs()[0].Verdicts {
			assert.Equal(t, 7, evidenceOf(t, v.Finding).Peers, "the other groups, and no other links")
			assert.Equal(t, string(judge.RungLinks), evidenceOf(t, v.Finding).CohortRung)
			out = append(out, told{v.Finding.Ranks, v.Finding.CostSeconds.V})
		}
		return out
	}
	apart := of(func(int) bool { return false })
	require.Len(t, apart, 1)
	require.Len(t, apart[0].ranks, 4)
	bad := int(apart[0].ranks[0] / 4)
	for name, shared := range map[string]func(group int) bool{
		"half of them": func(group int) bool { return (group-bad+8)%8 < 4 },
		"all":          func(int) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			got := of(shared)
			require.Len(t, got, 1)
			assert.Equal(t, apart[0].ranks, got[0].ranks)
			assert.InEpsilon(t, apart[0].cost, got[0].cost, 1e-9, "the others' transfers stay as they are")
		})
	}
}
