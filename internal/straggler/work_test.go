// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// workTold returns how many findings say that amounts of work differ, and how many accuse
// somebody.
func workTold(vs []Verdict) (work, accused int) {
	for _, v := range vs {
		if v.Finding.Class == model.ClassWorkImbalance {
			work++
		}
	}
	return work, len(accusations(vs))
}

var (
	dataParallel = training.Layout{DP: 8, PerNode: 2}
	inStages     = training.Layout{DP: 2, PP: 4, Microbatches: 8, Layers: 2, Scale: 0.25, PerNode: 2}
)

func TestTheBackwardPassIsToldByNames(t *testing.T) {
	for name, want := range map[string]pass{
		"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel":                       passBackward,
		"cudnn_generated_fort_native_sdpa_sm80_flash_bprop_wmma_f16_kernel0": passBackward,
		"fmha_cutlassB_bf16_aligned_128x64_k64_sm80":                         passBackward,
		"softmax_warp_backward":                                              passBackward,
		"fmha_cutlassF_bf16_aligned_64x128_rf_sm80":                          passForward,
		"cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_kernel0": passForward,
		"cutlass_80_tensorop_bf16_s16816gemm":                                passForward,
	} {
		assert.Equal(t, want, passOf(opName{key: name}), name)
	}
}

// Of sequences whose lengths differ nobody is accused, and they are told where no source
// says how long they are.
func TestLengthsThatNobodyCounts(t *testing.T) {
	for name, layout := range map[string]training.Layout{"data parallel": dataParallel, "pipeline": inStages} {
		for seed := range uint64(tier.N(t, 2, 4)) {
			e := engineOf(t, training.Spec{
				Name: "lengths", Layout: layout, Noise: training.DefaultNoise(), Steps: 24,
				Faults: []training.Fault{{Family: training.SeqLen, Severity: 0.5}},
			}, seed+101)
			work, accused := workTold(e.Verdicts())
			assert.Equal(t, 1, work, "%s, seed %d", name, seed)
			assert.Zero(t, accused, "%s, seed %d", name, seed)
		}
	}
}

// Noise is no work, however loud: not of a job's kernels, nor of its devices.
func TestNoiseIsNoWork(t *testing.T) {
	usual := training.DefaultNoise()
	usual.Experts = 0 // what a router sends to a rank is work, and its grids tell
	loud := usual
	loud.Kernel, loud.Drift = 0.4, 0.02
	const seeds = 20
	for k, of := range []struct {
		name   string
		layout training.Layout
	}{
		{"data parallel", dataParallel},
		{"pipeline", inStages},
		{"sharded", training.Layout{DP: 8, FSDP: true, PerNode: 2, Layers: 3}},
		{"three", training.Layout{DP: 2, PP: 2, TP: 2, Microbatches: 4, Layers: 2, Scale: 0.5, PerNode: 2}},
		{"experts", training.Layout{DP: 8, EP: 8, Layers: 3, PerNode: 2}},
		{"many", training.Layout{DP: 64, Coarse: true, Layers: 1, Buckets: 1}},
		{"many in three", training.Layout{DP: 16, PP: 2, TP: 2, Microbatches: 4, Layers: 1, Scale: 0.5, Coarse: true}},
	} {
		t.Run(of.name, func(t *testing.T) {
			for i := range tier.N(t, 3, seeds) {
				seed := uint64(3*k+i) % seeds // the quick tier's differ between layouts
				noise := usual
				if seed%4 == 3 {
					noise = loud
				}
				e := engineOf(t, training.Spec{Name: of.name, Layout: of.layout, Noise: noise, Steps: 20}, seed+201)
				work, accused := workTold(e.Verdicts())
				assert.Zero(t, work, "seed %d", seed)
				assert.Zero(t, accused, "seed %d", seed)
			}
		})
	}
}

// Where spans are lost, who lost fewer has no more work.
func TestLostSpansAreNoWork(t *testing.T) {
	layout := training.Layout{DP: 4, PP: 2, TP: 2, Microbatches: 2, Layers: 1, Scale: 0.5, PerNode: 2}
	for _, lost := range []float64{0.1, 0.2} {
		for seed := range uint64(tier.N(t, 3, 6)) {
			e := engineOf(t, training.Spec{Name: "three", Layout: layout, Noise: training.DefaultNoise(), Steps: 24, Lost: lost}, seed+301)
			work, accused := workTold(e.Verdicts())
			assert.Zero(t, work, "%g lost, seed %d", lost, seed)
			assert.Zero(t, accused, "%g lost, seed %d", lost, seed)
		}
	}
}
