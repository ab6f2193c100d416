// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// averageless is an optimizer of Adam's kind that has no state.
func averageless() table {
	return table{"state": table{}, "param_groups": []any{table{"lr": 1, "betas": []any{1, 2}, "params": []any{0}}}}
}

// An optimizer of Adam's kind has averages from its first step on.
func TestOptimizerWithoutAverages(t *testing.T) {
	trainer := func(state any, more ...func(fstest.MapFS)) fstest.MapFS {
		f := saveOfTrainer(t)
		f["checkpoint-400/optimizer.pt"] = torchSaved(t, state)
		all(more...)(f)
		return f
	}
	start := all(
		rename("checkpoint-400/", "checkpoint-0/"), put("checkpoint-0/trainer_state.json", document(`{"global_step": 0}`)),
		put("checkpoint-0/scheduler.pt", torchSaved(t, table{"last_epoch": 0})),
	)
	lightning := func(step int, more table, states ...any) fstest.MapFS {
		v := table{"state_dict": table{"w": 1}, "global_step": step, "optimizer_states": states}
		for key := range more {
			v[key] = more[key]
		}
		return fstest.MapFS{fmt.Sprintf("epoch=1-step=%d.ckpt", step): torchSaved(t, v)}
	}
	accelerate := func(name string, scheduler int, more ...func(fstest.MapFS)) fstest.MapFS {
		f := fstest.MapFS{}
		stateOf(t, f, name, "model.safetensors", 1, 0)
		f[name+"/optimizer.bin"], f[name+"/scheduler.bin"] = torchSaved(t, averageless()), torchSaved(t, table{"last_epoch": scheduler})
		all(more...)(f)
		return f
	}
	zero := func(skipped int, scaler any, state any) fstest.MapFS {
		f := fstest.MapFS{"latest": document("global_step200")}
		f["global_step200/mp_rank_00_model_states.pt"] = torchSaved(t, table{"global_steps": 200, "skipped_steps": skipped, "dp_world_size": 2, "mp_world_size": 1})
		for r := range 2 {
			f[fmt.Sprintf("global_step200/zero_pp_rank_%d_mp_rank_00_optim_states.pt", r)] = torchSaved(t, table{
				"optimizer_state_dict": table{"base_optimizer_state": state, "loss_scaler": scaler, "zero_stage": 1},
			})
		}
		return f
	}
	megatron := func(iteration int, optimizer any) fstest.MapFS {
		return fstest.MapFS{
			"latest_checkpointed_iteration.txt": document(fmt.Sprint(iteration)),
			fmt.Sprintf("iter_%07d/mp_rank_00/model_optim_rng.pt", iteration): torchSaved(t, table{
				"iteration": iteration, "model": table{"w": 1}, "rng_state": []any{1}, "optimizer": optimizer, "args": table{"tensor_model_parallel_size": 1},
			}),
		}
	}
	for name, tc := range map[string]struct {
		f    fstest.MapFS
		text string // "" where it is whole
	}{
		"Trainer":                           {trainer(averageless()), "without state after 400 steps"},
		"Trainer, at its start":             {trainer(averageless(), start), ""},
		"Trainer, nothing to train":         {trainer(table{"state": table{}, "param_groups": []any{table{"betas": []any{1, 2}, "params": []any{}}}}), ""},
		"Trainer, SGD":                      {trainer(stateless()), ""},
		"Trainer, a loss scaler":            {trainer(averageless(), put("checkpoint-400/scaler.pt", torchSaved(t, table{"scale": 1}))), ""},
		"Lightning":                         {lightning(200, nil, averageless()), "without state after 200 steps"},
		"Lightning, both of two":            {lightning(200, nil, averageless(), averageless()), "a resume would begin with new ones"},
		"Lightning, one that begins later":  {lightning(200, nil, averageless(), table{"state": table{"0": table{"step": 200}}, "param_groups": []any{table{"betas": []any{1, 2}}}}), ""},
		"Lightning, at its start":           {lightning(0, nil, averageless()), ""},
		"Lightning, a loss scaler":          {lightning(200, table{"MixedPrecision": table{"scale": 1}}, averageless()), ""},
		"accelerate":                        {accelerate("checkpoint_1", 200), "without state after 200 steps"},
		"accelerate, by its name":           {accelerate("step_100", 0, without("step_100/scheduler.bin")), "without state after 100 steps"},
		"accelerate, at its start":          {accelerate("checkpoint_0", 0), ""},
		"accelerate, one that begins later": {accelerate("checkpoint_1", 200, put("checkpoint_1/optimizer_1.bin", optimizerAt(t, 200))), ""},
		"Megatron":                          {megatron(200, averageless()), "without state after 200 steps"},
		"Megatron, within another":          {megatron(200, table{"optimizer": averageless(), "grad_scaler": nil}), "without state after 200 steps"},
		"Megatron, a loss scaler":           {megatron(200, table{"optimizer": averageless(), "grad_scaler": table{"scale": 1}}), ""},
		"Megatron, at its start":            {megatron(0, averageless()), ""},
		"DeepSpeed":                         {zero(0, nil, averageless()), "without state after 200 steps"},
		"DeepSpeed, all steps skipped":      {zero(200, table{"cur_iter": 200}, averageless()), ""},
		"DeepSpeed, SGD":                    {zero(0, nil, stateless()), ""},
	} {
		r, ok := safe(t, tc.f, ckpt.Options{})
		require.Equal(t, tc.text == "", ok, "%s: %s\n%s", name, r.Why, told(r))
		require.Contains(t, told(r), tc.text, name)
	}
}
