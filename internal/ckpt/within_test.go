// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// A save that lies within another one holds weights alone for both.
func TestWithin_WeightsOnly(t *testing.T) {
	stageZero := func(optimizer any) *fstest.MapFile {
		return torchSaved(t, table{
			"module": table{"w": 1}, "optimizer": optimizer, "global_steps": 4, "skipped_steps": 0, "dp_world_size": 2, "mp_world_size": 1,
			"ds_config": table{"zero_optimization": table{"stage": 0}},
		})
	}
	accelerate := func(optimizer any) fstest.MapFS {
		f := fstest.MapFS{"checkpoint_0/latest": document("pytorch_model"), "checkpoint_0/pytorch_model/mp_rank_00_model_states.pt": stageZero(optimizer)}
		for _, name := range []string{"random_states_0.pkl", "random_states_1.pkl", "scheduler.bin"} {
			f["checkpoint_0/"+name] = torchSaved(t, table{"step": 4})
		}
		return f
	}
	trainer := func(optimizer any) fstest.MapFS {
		f := inMemory(t, saves(t, "hf trainer, one process", 200)).(fstest.MapFS)
		without("checkpoint-200/optimizer.pt", "checkpoint-200/model.safetensors")(f)
		f["checkpoint-200/latest"] = document("global_step200")
		f["checkpoint-200/global_step200/mp_rank_00_model_states.pt"] = torchSaved(t, table{
			"module": table{"w": 1}, "optimizer": optimizer, "global_steps": 200, "skipped_steps": 0, "dp_world_size": 1, "mp_world_size": 1,
			"ds_config": table{"zero_optimization": table{"stage": 0}},
		})
		return f
	}
	litgpt := func(items ...string) fstest.MapFS {
		f := litgptSaves(true)(t)
		without("step-00001000/")(f)
		dcpIn(f, "step-00002000/lit_model.pth", items...)
		return f
	}
	swift := func(items ...string) fstest.MapFS {
		f := swiftSaves(t)
		without("checkpoint-100/", "checkpoint-200/iter_0000200/__")(f)
		dcpIn(f, "checkpoint-200/iter_0000200", append(items, "common_state")...)
		return f
	}
	for name, tc := range map[string]struct {
		alone, whole fstest.MapFS
		why          string
	}{
		"ms-swift":                 {swift("decoder"), swift("decoder", "optimizer.state", "rng_state"), "in iter_0000200 no item"},
		"litgpt with FSDP":         {litgpt("model"), litgpt("model", "optimizer"), "in lit_model.pth no item"},
		"accelerate and DeepSpeed": {accelerate(nil), accelerate(stateless()), "in pytorch_model the files of model states have no optimizer"},
		"Trainer and DeepSpeed":    {trainer(nil), trainer(stateless()), "in global_step200 the files of model states have no optimizer"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, tc.alone, ckpt.Options{})
			require.False(t, ok)
			require.Equal(t, preflight.WeightsOnly, r.Verdict, "%s\n%s", r.Why, told(r))
			require.Contains(t, r.Why, tc.why)
			require.False(t, r.Frontier.OK)
			r, ok = safe(t, tc.whole, ckpt.Options{})
			require.True(t, ok, "%s\n%s", r.Why, told(r))
		})
	}
}

// What is not known of a save that lies within another one is not known of both.
func TestWithin_Unproven(t *testing.T) {
	f := litgptSaves(true)(t)
	dcpIn(f, "step-00002000/lit_model.pth", "model", "opt")
	r, ok := safe(t, f, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, r.Why, `nothing says what lies under "opt"`)
	require.Equal(t, at(1000), r.Frontier)
}
