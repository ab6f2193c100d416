// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// A tag of DeepSpeed beside the Trainer's saves is named, and what is wrong with it. It is no left-over of save_model
// where there are several, or where it is of a later step and torn, or save_model wrote nothing else.
func TestTagBesideTheTrainer(t *testing.T) {
	job := func(name string, steps ...int64) fstest.MapFS {
		return inMemory(t, saves(t, name, steps...)).(fstest.MapFS)
	}
	const shard = "zero_pp_rank_1_mp_rank_00_optim_states.pt"
	arguments := put("training_args.bin", torchSaved(t, table{"save_only_model": 0}))
	for name, tc := range map[string]struct {
		tags []int64
		do   func(fstest.MapFS)
		want bool
		says string // of the tag
	}{
		"an older one":                           {[]int64{100}, all(), true, "global_step100"},
		"of the same step":                       {[]int64{200}, all(), true, "global_step200"},
		"of the same step, torn":                 {[]int64{200}, without("global_step200/bf16_" + shard), true, shard},
		"of the same step, cut":                  {[]int64{200}, cut("global_step200/bf16_" + shard), true, shard},
		"not named by latest":                    {[]int64{200}, put("latest", document("global_step100")), true, "global_step200"},
		"a later one":                            {[]int64{300}, all(), false, "global_step300"},
		"a later one, torn":                      {[]int64{300}, without("global_step300/bf16_" + shard), false, shard},
		"a later one, cut":                       {[]int64{300}, cut("global_step300/mp_rank_00_model_states.pt"), false, "mp_rank_00_model_states.pt"},
		"a later one, torn, without latest":      {[]int64{300}, all(without("latest"), cut("global_step300/bf16_"+shard)), false, shard},
		"a later one, of save_model":             {[]int64{300}, arguments, true, "global_step300"},
		"a later one, of save_model, torn":       {[]int64{300}, all(arguments, without("global_step300/bf16_"+shard)), false, shard},
		"two":                                    {[]int64{100, 200}, all(), false, "global_step200"},
		"two, of save_model, the newest is torn": {[]int64{100, 200}, all(arguments, cut("global_step200/bf16_"+shard)), false, shard},
	} {
		t.Run(name, func(t *testing.T) {
			f := job("hf trainer, one process", 100, 200)
			tags := job("deepspeed, ZeRO 1", tc.tags...)
			tc.do(tags)
			maps.Copy(f, tags)
			r, ok := safe(t, f, ckpt.Options{})
			require.Equal(t, tc.want, ok, r.Why)
			require.Equal(t, at(200), r.Frontier)
			require.Len(t, r.Problems, 1)
			require.Contains(t, r.Problems[0].File+r.Problems[0].What, tc.says)
			require.Equal(t, strings.Contains(tc.says, shard) || strings.Contains(name, "cut"), strings.Contains(r.Problems[0].What, "and that whole: global_step"))
		})
	}
}

// A model that was exported is no save of a job: beside saves of a framework it is none of another's.
func TestFamilies_ModelAlone(t *testing.T) {
	model := weightsOf(`{"format": "pt"}`, "w")
	exports := map[string]fstest.MapFS{
		"safetensors":         {"model.safetensors": model, "config.json": document("{}"), "generation_config.json": document("{}")},
		"torch.save":          {"pytorch_model.bin": document("x"), "config.json": document("{}")},
		"shards":              {"model-00001-of-00002.safetensors": model, "model-00002-of-00002.safetensors": model, "model.safetensors.index.json": document("{}"), "config.json": document("{}")},
		"shards, torch.save":  {"pytorch_model-00001-of-00001.bin": document("x"), "pytorch_model.bin.index.json": document("{}"), "config.json": document("{}")},
		"an adapter":          {"adapter_model.bin": document("x"), "adapter_config.json": document("{}"), "README.md": document("x")},
		"of save_model":       {"model.safetensors": model, "config.json": document("{}"), "training_args.bin": document("x"), "tokenizer.json": document("{}")},
		"a pipeline":          {"model_index.json": document("{}"), "unet/config.json": document("{}"), "unet/diffusion_pytorch_model.safetensors": model, "scheduler/scheduler_config.json": document("{}")},
		"one file of weights": {"model.safetensors": model},
	}
	states := map[string]fstest.MapFS{
		"an optimizer":             {"model.safetensors": model, "config.json": document("{}"), "optimizer.bin": document("x")},
		"random states":            {"model.safetensors": model, "config.json": document("{}"), "random_states_0.pkl": document("x")},
		"a model under way":        {"model.safetensors": torn(model)},
		"a checkpoint of anything": {"model.pt": document("x"), "config.json": document("{}")},
		"a state of the Trainer":   {"model.safetensors": model, "config.json": document("{}"), "trainer_state.json": document("{}")},
		"an optimizer's folder":    {"model.safetensors": model, "config.json": document("{}"), "optimizer/optimizer.safetensors": model},
	}
	jobs := map[string]fstest.MapFS{}
	for _, name := range []string{"hf trainer, one process", "deepspeed, ZeRO 1", "torchtitan"} {
		jobs[name] = inMemory(t, saves(t, name, 100, 200)).(fstest.MapFS)
	}
	for name, job := range jobs {
		for _, dir := range []string{"epoch_1/", "step_5/", "checkpoint_7/", "3/", "step400/"} {
			for want, all := range map[bool]map[string]fstest.MapFS{true: exports, false: states} {
				for form, files := range all {
					f := maps.Clone(job)
					maps.Copy(f, under(dir, files))
					r, ok := safe(t, f, ckpt.Options{})
					require.Equal(t, want, ok, fmt.Sprint(name, ", ", dir, ", ", form, ": ", r.Why))
				}
			}
		}
	}
}
