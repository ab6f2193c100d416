// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// stateless is an optimizer that has made no step, or that keeps nothing, as SGD without momentum.
func stateless() table { return table{"state": table{}, "param_groups": []any{table{"lr": 1}}} }

// An optimizer that holds nothing is none, whatever the framework; one without state may be SGD.
func TestOptimizerThatHoldsNothing(t *testing.T) {
	file := func(name string, in func(any) any) func(*testing.T, fstest.MapFS, any) {
		return func(t *testing.T, f fstest.MapFS, v any) {
			t.Helper()
			require.Contains(t, f, name)
			at := f[name].ModTime
			f[name] = torchSaved(t, in(v))
			f[name].ModTime = at
		}
	}
	itself := func(v any) any { return v }
	simulated := func(job string) func(*testing.T) fstest.MapFS {
		return func(t *testing.T) fstest.MapFS { t.Helper(); return inMemory(t, saves(t, job, 200)).(fstest.MapFS) }
	}
	one := func(name string, v table) func(*testing.T) fstest.MapFS {
		return func(t *testing.T) fstest.MapFS { t.Helper(); return fstest.MapFS{name: torchSaved(t, v)} }
	}
	lightning := func(v any) table {
		return table{"state_dict": table{"w": 1}, "global_step": 200, "optimizer_states": v}
	}
	iteration := func(v any) any {
		return table{"iteration": 200, "model": table{"w": 1}, "rng_state": []any{1}, "optimizer": v, "args": table{"tensor_model_parallel_size": 1}}
	}
	const rank = "iter_0000200/mp_rank_00/model_optim_rng.pt"
	megatron := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return fstest.MapFS{"latest_checkpointed_iteration.txt": document("200"), rank: torchSaved(t, iteration(stateless()))}
	}
	distributed := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := megatron(t)
		v := iteration(stateless()).(table)
		v["args"].(table)["use_distributed_optimizer"] = 1
		f[rank], f["iter_0000200/mp_rank_00/distrib_optim.pt"] = torchSaved(t, v), torchSaved(t, stateless())
		return f
	}
	zero0 := func(v any) any {
		return table{"global_steps": 200, "dp_world_size": 1, "mp_world_size": 1, "optimizer": v, "ds_config": table{"zero_optimization": table{"stage": 0}}}
	}
	const tag = "global_step200/mp_rank_00_model_states.pt"
	deepspeed := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return fstest.MapFS{"latest": document("global_step200"), tag: torchSaved(t, zero0(stateless()))}
	}
	const shard = "global_step200/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
	nanotron := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{"latest.txt": document("200")}
		nanotronSave(t, f, 2, 100)
		nanotronSave(t, f, 2, 200)
		return f
	}
	for name, tc := range map[string]struct {
		whole func(*testing.T) fstest.MapFS
		set   func(*testing.T, fstest.MapFS, any)
	}{
		"Trainer":                {simulated("hf trainer, one process"), file("checkpoint-200/optimizer.pt", itself)},
		"Trainer under FSDP":     {fsdpTrainer, file("checkpoint-200/optimizer.bin", itself)},
		"accelerate":             {accelerateAt("checkpoint_%d", "model.safetensors", 1), file("checkpoint_1/optimizer.bin", itself)},
		"verl, one of its ranks": {verlFSDP, file("global_step_200/critic/optim_world_size_3_rank_1.pt", itself)},
		"DeepSpeed, a shard":     {simulated("deepspeed, ZeRO 1"), file(shard, func(v any) any { return table{"optimizer_state_dict": v} })},
		"DeepSpeed, within a shard": {simulated("deepspeed, optimizer without steps"), file(shard, func(v any) any {
			return table{"optimizer_state_dict": table{"base_optimizer_state": v, "zero_stage": 1}}
		})},
		"DeepSpeed, without ZeRO":     {deepspeed, file(tag, zero0)},
		"Lightning":                   {one("epoch=1-step=200.ckpt", lightning([]any{stateless()})), file("epoch=1-step=200.ckpt", func(v any) any { return lightning([]any{v}) })},
		"Lightning, one of two":       {one("epoch=1-step=200.ckpt", lightning([]any{stateless()})), file("epoch=1-step=200.ckpt", func(v any) any { return lightning([]any{stateless(), v}) })},
		"Megatron, legacy":            {megatron, file(rank, iteration)},
		"Megatron, a file of its own": {distributed, file("iter_0000200/mp_rank_00/distrib_optim.pt", itself)},
		"torchtune":                   {torchtuneRun, file("recipe_state/recipe_state.pt", func(v any) any { return table{"epochs_run": 2, "optimizer": v} })},
		"litgpt":                      {litgptSaves(false), file("step-00002000/lit_model.pth", func(v any) any { return table{"step_count": 2000, "model": table{"w": 1}, "optimizer": v} })},
		"nanotron, one of its ranks":  {nanotron, file("200/optimizer/optimizer_pp-1-of-2_tp-0-of-2_exp-0-of-1.pt", itself)},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, tc.whole(t), ckpt.Options{})
			require.True(t, ok, "whole: %s", r.Why)
			for text, v := range map[string]any{
				"None": nil, "{}": table{}, "[{}]": []any{table{}}, "[None]": []any{nil}, "of two": table{"g": table{}, "d": nil},
				"no groups": table{"state": table{}, "param_groups": []any{}},
			} {
				if name == "DeepSpeed, within a shard" && strings.HasPrefix(text, "[") {
					continue // what each group of parameters has
				}
				f := tc.whole(t)
				tc.set(t, f, v)
				r, ok := safe(t, f, ckpt.Options{})
				require.False(t, ok, text)
				require.Regexp(t, "(no|has an) optimizer", fmt.Sprint(r.Why, told(r)), text)
			}
			f := tc.whole(t)
			tc.set(t, f, stateless())
			r, ok = safe(t, f, ckpt.Options{})
			require.True(t, ok, "without state: %s", r.Why)
		})
	}
}

// That there are no optimizers, Lightning says by an empty list.
func TestOptimizer_NoneInLightning(t *testing.T) {
	for text, want := range map[string]bool{"list": true, "None": false} {
		v := table{"state_dict": table{"w": 1}, "global_step": 200, "optimizer_states": []any{}}
		if text == "None" {
			v["optimizer_states"] = nil
		}
		r, ok := safe(t, fstest.MapFS{"epoch=1-step=200.ckpt": torchSaved(t, v)}, ckpt.Options{})
		require.Equal(t, want, ok, "%s: %s", text, r.Why)
	}
}

// A folder of an optimizer that holds items of a model holds no optimizer.
func TestOptimizerFolderOfAnotherThing(t *testing.T) {
	trainer := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fsdpTrainer(t)
		without("checkpoint-200/optimizer.bin", "checkpoint-200/pytorch_model_fsdp.bin")(f)
		dcpIn(f, "checkpoint-200/pytorch_model_fsdp_0", "model")
		dcpIn(f, "checkpoint-200/optimizer_0", "optimizer.state")
		return f
	}
	accelerate := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "", 1)(t)
		delete(f, "checkpoint_1/optimizer.bin")
		dcpIn(f, "checkpoint_1/pytorch_model_fsdp_0", "model")
		dcpIn(f, "checkpoint_1/optimizer_0", "state.w")
		return f
	}
	for dir, whole := range map[string]func(*testing.T) fstest.MapFS{"checkpoint-200/optimizer_0": trainer, "checkpoint_1/optimizer_0": accelerate} {
		r, ok := safe(t, whole(t), ckpt.Options{})
		require.True(t, ok, "%s: %s", dir, r.Why)
		for _, names := range [][]string{{"model"}, {"model.optimizer"}, {"app.model"}} {
			f := whole(t)
			dcpIn(f, dir, names...)
			r, ok := safe(t, f, ckpt.Options{})
			require.False(t, ok, names)
			require.Contains(t, told(r), "got no item of an optimizer", names)
		}
	}
}
