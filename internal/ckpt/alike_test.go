// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// zeroTag is a tag of ZeRO 3, whose ranks count so many samples and skipped steps, and have scaled by so much.
func zeroTag(t *testing.T, ranks ...[3]int) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{"latest": document("global_step200")}
	for r, n := range ranks {
		name := fmt.Sprintf("global_step200/zero_pp_rank_%d_mp_rank_00_", r)
		f[name+"model_states.pt"] = torchSaved(t, table{
			"global_steps": 200, "global_samples": n[0], "skipped_steps": n[1], "dp_world_size": len(ranks), "mp_world_size": 1,
		})
		f[name+"optim_states.pt"] = torchSaved(t, table{"optimizer_state_dict": table{
			"loss_scaler": table{"cur_scale": n[2], "last_overflow_iter": n[1] - 1, "cur_iter": 200}, "state": table{"0": table{"step": 198}},
		}})
	}
	return f
}

// Ranks of one attempt count what all of them count alike.
func TestShared_OfAnotherAttempt(t *testing.T) {
	same := [3]int{6400, 2, 32768}
	megatron := func(samples, steps []int) fstest.MapFS {
		f := fstest.MapFS{"latest_checkpointed_iteration.txt": document("200")}
		for r := range samples {
			f[fmt.Sprintf("iter_0000200/mp_rank_%02d/model_optim_rng.pt", r)] = torchSaved(t, table{
				"iteration": 200, "model": table{"w": 1}, "optimizer": table{"state": table{"0": table{"step": 200}}}, "rng_state": []any{1},
				"opt_param_scheduler": table{"num_steps": steps[r]},
				"args":                table{"tensor_model_parallel_size": len(samples), "pipeline_model_parallel_size": 1, "consumed_train_samples": samples[r], "rank": r, "no_save_rng": 0},
			})
		}
		return f
	}
	olmo := func(tokens ...int) fstest.MapFS {
		f := fstest.MapFS{}
		olmoSave(t, f, len(tokens), 200, table{"world_size": len(tokens)})
		for r, n := range tokens {
			f[fmt.Sprintf("step200/train/rank%d.pt", r)] = torchSaved(t, table{"global_step": 200, "world_size": len(tokens), "global_train_tokens_seen": n})
		}
		return f
	}
	verl := func(r, last int) fstest.MapFS {
		f := verlFSDP(t)
		f[fmt.Sprintf("global_step_200/actor/extra_state_world_size_3_rank_%d.pt", r)] = torchSaved(t, table{"lr_scheduler": table{"last_epoch": last}, "rng": table{"cpu": 1}})
		return f
	}
	for name, tc := range map[string]struct {
		f    fstest.MapFS
		text string // "" where it is whole
	}{
		"DeepSpeed, one attempt":       {zeroTag(t, same, same, same), ""},
		"DeepSpeed, other samples":     {zeroTag(t, same, [3]int{6272, 2, 32768}, same), "got global_samples 6272, and 6400 in global_step200/zero_pp_rank_0"},
		"DeepSpeed, more skipped":      {zeroTag(t, same, same, [3]int{6400, 3, 32768}), "got skipped_steps 3, and 2 in"},
		"DeepSpeed, another scale":     {zeroTag(t, [3]int{6400, 2, 65536}, same, same), "got loss_scaler.cur_scale 65536, and 32768 in"},
		"DeepSpeed, half of the ranks": {zeroTag(t, same, [3]int{6272, 2, 32768}), "of another attempt at this step"},
		"Megatron, one attempt":        {megatron([]int{1600, 1600}, []int{1600, 1600}), ""},
		"Megatron, other samples":      {megatron([]int{1600, 1600, 1500}, []int{9, 9, 9}), "got args.consumed_train_samples 1500, and 1600 in iter_0000200/mp_rank_00"},
		"Megatron, another schedule":   {megatron([]int{1600, 1600, 1600}, []int{9, 8, 9}), "got opt_param_scheduler.num_steps 8"},
		"OLMo-core, one attempt":       {olmo(100, 100, 100), ""},
		"OLMo-core, other tokens":      {olmo(100, 100, 99), "got global_train_tokens_seen 99, and 100 in step200/train/rank0.pt"},
		"verl, one attempt":            {verl(1, 200), ""},
		"verl, another schedule":       {verl(1, 199), "got lr_scheduler.last_epoch of actor ranks 199, and 200 in"},
	} {
		r, ok := safe(t, tc.f, ckpt.Options{})
		require.Equal(t, tc.text == "", ok, "%s: %s\n%s", name, r.Why, told(r))
		require.Contains(t, told(r), tc.text, name)
	}
}
