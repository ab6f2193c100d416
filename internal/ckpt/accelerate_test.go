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

// stateOf writes a folder of accelerate's save_state.
func stateOf(t *testing.T, f fstest.MapFS, dir, weights string, ranks, steps int) {
	t.Helper()
	if weights != "" {
		f[dir+"/"+weights] = weightsOf(`{"format": "pt"}`, "w")
	}
	f[dir+"/optimizer.bin"] = optimizerAt(t, steps)
	f[dir+"/scheduler.bin"] = torchSaved(t, table{"last_epoch": steps * ranks}) // it steps once a process
	f[dir+"/sampler.bin"] = torchSaved(t, table{"epoch": 0})
	for r := range ranks {
		f[fmt.Sprintf("%s/random_states_%d.pkl", dir, r)] = torchSaved(t, table{"step": 0, "random_state": []any{3}})
	}
}

// accelerateAt is a folder of folders of save_state.
func accelerateAt(format, weights string, numbers ...int) func(*testing.T) fstest.MapFS {
	return func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		for _, n := range numbers {
			stateOf(t, f, fmt.Sprintf(format, n), weights, 3, 250*(n+1))
		}
		return f
	}
}

func TestAccelerate_NamedByItself(t *testing.T) {
	changes(t, accelerateAt("checkpoint_%d", "model.safetensors", 0, 1), ckpt.FormatAccelerate, 1, map[string]change{
		"no optimizer":             {do: without("checkpoint_1/optimizer.bin"), epoch: 1, newest: at(0), text: "optimizer optimizer.bin, which is absent"},
		"no optimizer anywhere":    {do: without("checkpoint_1/optimizer.bin", "checkpoint_0/optimizer.bin"), epoch: 1, text: "a resume needs it"},
		"no weights":               {do: without("checkpoint_1/model.safetensors"), epoch: 1, newest: at(0), text: "model model.safetensors, which is absent"},
		"no scheduler":             {do: without("checkpoint_1/scheduler.bin"), epoch: 1, newest: at(0), text: "as in checkpoint_0"},
		"a job without scheduler":  {do: without("checkpoint_1/scheduler.bin", "checkpoint_0/scheduler.bin"), want: true, epoch: 1, newest: at(1)},
		"the optimizer torn":       {do: cut("checkpoint_1/optimizer.bin"), epoch: 1, newest: at(0), text: "got no end of a zip file"},
		"the weights torn":         {do: cut("checkpoint_1/model.safetensors"), epoch: 1, newest: at(0), text: "model.safetensors"},
		"random states in between": {do: without("checkpoint_1/random_states_1.pkl"), epoch: 1, newest: at(0), text: "one of each rank"},
		"random states, the last":  {do: without("checkpoint_1/random_states_2.pkl"), epoch: 1, newest: at(0), text: "or the job had fewer ranks then, which --world-size 2 would say"},
		"fewer ranks, as given":    {do: without("checkpoint_1/random_states_2.pkl"), world: 2, want: true, epoch: 1, newest: at(1)},
		"more ranks, as given":     {do: func(fstest.MapFS) {}, world: 4, epoch: 1, text: "got nothing of rank 3"},
		"no random states":         {do: without("checkpoint_1/random_states_"), epoch: 1, newest: at(0), text: "rng rank 0, which is absent"},
		"nothing but its name":     {do: all(without("checkpoint_1/"), put("checkpoint_1/x", document(""))), epoch: 1, newest: at(0), text: "5 of 5 domains do not confirm it"},
		"a second model":           {do: put("checkpoint_0/model_1.safetensors", weightsOf("{}", "w")), epoch: 1, newest: at(0), text: "model model_1.safetensors, which is absent"},
		"what scripts leave":       {do: put("checkpoint_0/README.md", document("x")), want: true, epoch: 1, newest: at(1)},
		"custom state torn":        {do: all(put("checkpoint_0/custom_checkpoint_0.pkl", optimizerAt(t, 1)), put("checkpoint_1/custom_checkpoint_0.pkl", document("x"))), epoch: 1, newest: at(0), text: "custom_checkpoint_0.pkl"},
		"weights of git-lfs":       {do: put("checkpoint_1/model.safetensors", lfsPointer("4976698672")), epoch: 1, newest: at(0), text: "run git lfs pull"},
		"Megatron-LM in it": {do: all(without("checkpoint_1/model.safetensors", "checkpoint_1/optimizer.bin", "checkpoint_0/"),
			put("checkpoint_1/iter_0000100/mp_rank_00/model_optim_rng.pt", document("x"))), epoch: 1, text: "is of Megatron-LM, which is not read within a save of accelerate"},
	})
	r, ok := safe(t, below(accelerateAt("checkpoint_%d", "model.safetensors", 3)(t), "checkpoint_3/"), ckpt.Options{})
	require.True(t, ok, "one save, under a name of the user's: %s", r.Why)
	project := fstest.MapFS{}
	for name, file := range accelerateAt("checkpoint_%d", "pytorch_model_fsdp.bin", 3, 4)(t) {
		project["project/checkpoints/"+name] = file
	}
	for name := range project {
		if strings.HasSuffix(name, "fsdp.bin") {
			project[name] = torchSaved(t, table{"w": 1})
		}
	}
	r, ok = safe(t, below(project, "project/"), ckpt.Options{})
	require.True(t, ok, "the folder of a project: %s", r.Why)
	require.EqualValues(t, 4, r.Epoch.V)
}

// below is what there is below a folder.
func below(f fstest.MapFS, dir string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, file := range f {
		if rest, ok := strings.CutPrefix(name, dir); ok {
			out[rest] = file
		}
	}
	return out
}

// The training scripts of diffusers call such folders as the Trainer does.
func TestAccelerate_Diffusers(t *testing.T) {
	lora := accelerateAt("checkpoint-%d", "pytorch_lora_weights.safetensors", 500, 1000)
	changes(t, lora, ckpt.FormatAccelerate, 1000, map[string]change{
		"no weights":         {do: without("checkpoint-1000/pytorch_lora"), epoch: 1000, newest: at(500), text: "pytorch_lora_weights.safetensors, which is absent"},
		"no optimizer":       {do: without("checkpoint-1000/optimizer.bin"), epoch: 1000, newest: at(500), text: "optimizer.bin"},
		"torn":               {do: cut("checkpoint-1000/scheduler.bin"), epoch: 1000, newest: at(500), text: "scheduler.bin"},
		"the newest is gone": {do: without("checkpoint-1000/"), want: true, epoch: 500, newest: at(500)},
	})
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint-%d", "", 500, 1000)(t)
		for _, dir := range []string{"checkpoint-500/", "checkpoint-1000/"} {
			for _, part := range []string{"unet/", "unet_ema/"} {
				f[dir+part+"diffusion_pytorch_model.safetensors"] = weightsOf("{}", "w")
				f[dir+part+"config.json"] = document("{}")
			}
		}
		return f
	}
	const unet = "checkpoint-1000/unet/"
	index := "diffusion_pytorch_model.safetensors.index.json"
	changes(t, whole, ckpt.FormatAccelerate, 1000, map[string]change{
		"weights torn":         {do: cut(unet + "diffusion_pytorch_model.safetensors"), epoch: 1000, newest: at(500), text: "in unet"},
		"weights gone":         {do: without(unet+"diffusion", "checkpoint-1000/unet_ema/"), epoch: 1000, newest: at(500), text: "got no such file; want it, as in checkpoint-500"},
		"one of two":           {do: without("checkpoint-1000/unet_ema/"), epoch: 1000, newest: at(500), text: "unet_ema"},
		"shards":               {do: all(without(unet+"diffusion"), put(unet+index, indexOf("{}", "w: a.safetensors", "v: b.safetensors")), put(unet+"a.safetensors", weightsOf("{}", "w")), put(unet+"b.safetensors", weightsOf("{}", "v"))), want: true, epoch: 1000, newest: at(1000)},
		"a shard gone":         {do: all(without(unet+"diffusion"), put(unet+index, indexOf("{}", "w: a.safetensors", "v: b.safetensors")), put(unet+"a.safetensors", weightsOf("{}", "w"))), epoch: 1000, newest: at(500), text: "b.safetensors"},
		"no index":             {do: all(without(unet+"diffusion"), put(unet+"m-00001-of-00002.safetensors", weightsOf("{}", "w"))), epoch: 1000, newest: at(500), text: "got no index; want the one of 2 shards"},
		"a configuration torn": {do: put(unet+"config.json", document("{")), epoch: 1000, newest: at(500), text: "read JSON"},
	})
}

// With FSDP and DeepSpeed, save_state leaves folders of theirs.
func TestAccelerate_Sharded(t *testing.T) {
	fsdp := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "", 1, 2)(t)
		for _, dir := range []string{"checkpoint_1/", "checkpoint_2/"} {
			delete(f, dir+"optimizer.bin")
			dcpIn(f, dir+"pytorch_model_fsdp_0", "model")
			dcpIn(f, dir+"optimizer_0", "optim")
		}
		return f
	}
	changes(t, fsdp, ckpt.FormatAccelerate, 2, map[string]change{
		"no optimizer":       {do: without("checkpoint_2/optimizer_0/"), epoch: 2, newest: at(1), text: "optimizer_0"},
		"a shard gone":       {do: without("checkpoint_2/optimizer_0/__1_0.distcp"), epoch: 2, newest: at(1), text: "rank 1 in optimizer_0"},
		"a shard torn":       {do: cut("checkpoint_2/pytorch_model_fsdp_0/__0_0.distcp"), epoch: 2, newest: at(1), text: "pytorch_model_fsdp_0"},
		"a model not sealed": {do: without("checkpoint_2/pytorch_model_fsdp_0/.metadata"), epoch: 2, newest: at(1), text: ".metadata"},
	})
	deepspeed := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "", 1, 2)(t)
		for n, dir := range []string{"checkpoint_1/", "checkpoint_2/"} {
			delete(f, dir+"optimizer.bin")
			tag := dir + "pytorch_model/"
			f[tag+"mp_rank_00_model_states.pt"] = torchSaved(t, table{"global_steps": 100 * (n + 1), "dp_world_size": 3, "mp_world_size": 1, "optimizer": nil})
			for r := range 3 {
				f[fmt.Sprintf("%szero_pp_rank_%d_mp_rank_00_optim_states.pt", tag, r)] = torchSaved(t, table{"optimizer_state_dict": table{"step": 100 * (n + 1)}})
			}
			f[dir+"latest"] = document("pytorch_model")
		}
		return f
	}
	const tag = "checkpoint_2/pytorch_model/"
	changes(t, deepspeed, ckpt.FormatAccelerate, 2, map[string]change{
		"a shard gone":        {do: without(tag + "zero_pp_rank_2"), epoch: 2, newest: at(1), text: "zero_pp_rank_2_mp_rank_00_optim_states in pytorch_model"},
		"a shard torn":        {do: cut(tag + "zero_pp_rank_1_mp_rank_00_optim_states.pt"), epoch: 2, newest: at(1), text: "torn"},
		"no tag":              {do: without(tag), epoch: 2, newest: at(1), text: "pytorch_model"},
		"random states, last": {do: without("checkpoint_2/random_states_2.pkl"), epoch: 2, newest: at(1), text: "got nothing of rank 2"},
	})
}

// Folders that the Trainer wrote stay the Trainer's, and those of Orbax its own.
func TestAccelerate_NamesOfOthers(t *testing.T) {
	r := judgeDir(t, saves(t, "hf trainer, one process", 100, 200))
	require.True(t, r.OK(), r.Why)
	require.Equal(t, ckpt.FormatHFTrainer, r.Judged.Format)
	f := accelerateAt("epoch_%d", "model.safetensors", 0, 1)(t)
	r, ok := safe(t, f, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, r.Why, "nothing says which of 2 saves a resume would take")
	require.Equal(t, at(1), r.Frontier)
}
