// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// fsdpTrainer is a save of the Trainer under FSDP with FULL_STATE_DICT, of one process.
func fsdpTrainer(t *testing.T) fstest.MapFS {
	t.Helper()
	const dir = "checkpoint-200/"
	f := fstest.MapFS{
		dir + "config.json": document("{}"), dir + "trainer_state.json": document(`{"global_step": 200}`),
		dir + "model.safetensors": weightsOf(`{"format": "pt"}`, "w"),
		dir + "optimizer.bin":     optimizerAt(t, 200),
	}
	for name, v := range map[string]table{"pytorch_model_fsdp.bin": {"w": 1}, "scheduler.pt": {"last_epoch": 200}, "rng_state.pth": {"cpu": 1}, "training_args.bin": {"save_only_model": 0}} {
		f[dir+name] = torchSaved(t, v)
	}
	return f
}

// Under FSDP a resume loads pytorch_model_fsdp.bin, and not the model beside it.
func TestHF_FSDPFullStateDict(t *testing.T) {
	const dir = "checkpoint-200/"
	sharded := all(without(dir+"optimizer.bin", dir+"pytorch_model_fsdp.bin"), func(f fstest.MapFS) {
		dcpIn(f, dir+"pytorch_model_fsdp_0", "model")
		dcpIn(f, dir+"optimizer_0", "optim")
	})
	changes(t, fsdpTrainer, ckpt.FormatHFTrainer, 200, map[string]change{
		"its weights torn":                {do: cut(dir + "pytorch_model_fsdp.bin"), epoch: 200, text: "pytorch_model_fsdp.bin"},
		"its weights empty":               {do: put(dir+"pytorch_model_fsdp.bin", document("")), epoch: 200, text: "got 0 bytes"},
		"its weights lost":                {do: without(dir + "pytorch_model_fsdp.bin"), epoch: 200, text: "a resume under FSDP loads both"},
		"both weights lost":               {do: without(dir+"pytorch_model_fsdp.bin", dir+"model.safetensors"), epoch: 200, text: "pytorch_model_fsdp.bin, which is absent"},
		"weights of git-lfs":              {do: put(dir+"pytorch_model_fsdp.bin", lfsPointer("4976698672")), epoch: 200, text: "run git lfs pull"},
		"the model beside it torn":        {do: cut(dir + "model.safetensors"), epoch: 200, text: "model.safetensors"},
		"no model beside it":              {do: without(dir + "model.safetensors"), want: true, epoch: 200, newest: at(200)},
		"as older versions":               {do: all(without(dir+"model.safetensors"), rename(dir+"pytorch_model_fsdp.bin", dir+"pytorch_model.bin")), want: true, epoch: 200, newest: at(200)},
		"shards beside a model":           {do: sharded, want: true, epoch: 200, newest: at(200)},
		"shards beside a model, one lost": {do: all(sharded, without(dir+"pytorch_model_fsdp_0/__1_0.distcp")), epoch: 200, text: "in pytorch_model_fsdp_0"},
		"shards beside a model, unsealed": {do: all(sharded, without(dir+"pytorch_model_fsdp_0/.metadata")), epoch: 200, text: ".metadata"},
	})
}

// A folder of an optimizer's shards goes with the folder of the model's, which a resume under FSDP opens whatever
// model lies beside.
func TestFSDP_FolderOfTheModelLost(t *testing.T) {
	const dir = "checkpoint-200/"
	trainer := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fsdpTrainer(t)
		without(dir+"optimizer.bin", dir+"pytorch_model_fsdp.bin")(f)
		dcpIn(f, dir+"pytorch_model_fsdp_0", "model")
		dcpIn(f, dir+"optimizer_0", "optimizer.state")
		return f
	}
	lost := without(dir + "pytorch_model_fsdp_0/")
	older := all(lost, func(f fstest.MapFS) { dcpIn(f, dir+"pytorch_model_0", "model") })
	before := func(f fstest.MapFS) {
		dcpIn(f, "checkpoint-100/pytorch_model_fsdp_0", "model")
	}
	changes(t, trainer, ckpt.FormatHFTrainer, 200, map[string]change{
		"a model in safetensors beside":   {do: lost, epoch: 200, text: "pytorch_model_fsdp_0, which is absent"},
		"a model of torch.save beside":    {do: all(lost, rename(dir+"model.safetensors", dir+"pytorch_model.bin"), put(dir+"pytorch_model.bin", optimizerAt(t, 1))), epoch: 200, text: "want it beside optimizer_0"},
		"no model beside":                 {do: all(lost, without(dir+"model.safetensors")), epoch: 200, text: "pytorch_model_fsdp_0, which is absent"},
		"an adapter beside":               {do: all(lost, without(dir+"model.safetensors"), put(dir+"adapter_model.safetensors", weightsOf("{}", "w")), put(dir+"adapter_config.json", document("{}"))), epoch: 200, text: "pytorch_model_fsdp_0"},
		"a save before has it":            {do: all(lost, before), epoch: 200, text: "want it beside optimizer_0"},
		"LOCAL_STATE_DICT":                {do: all(lost, put(dir+"pytorch_model_fsdp_rank0.bin", optimizerAt(t, 1))), want: true, epoch: 200, newest: at(200)},
		"as older versions":               {do: older, want: true, epoch: 200, newest: at(200)},
		"as older versions, a shard gone": {do: all(older, without(dir+"pytorch_model_0/__1_0.distcp")), epoch: 200, text: "in pytorch_model_0"},
	})
	full := func(f fstest.MapFS) { f["checkpoint-100/pytorch_model_fsdp.bin"] = f[dir+"optimizer.bin"] }
	changes(t, fsdpTrainer, ckpt.FormatHFTrainer, 200, map[string]change{
		"a file, and a save before has it": {do: all(full, without(dir+"model.safetensors"), rename(dir+"pytorch_model_fsdp.bin", dir+"pytorch_model.bin")), epoch: 200, text: "as from checkpoint-100/pytorch_model_fsdp.bin"},
	})
	accelerate := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "", 1)(t)
		delete(f, "checkpoint_1/optimizer.bin")
		dcpIn(f, "checkpoint_1/pytorch_model_fsdp_0", "model")
		dcpIn(f, "checkpoint_1/optimizer_0", "optimizer.state")
		return f
	}
	changes(t, accelerate, ckpt.FormatAccelerate, 1, map[string]change{
		"accelerate, a model in safetensors": {do: all(without("checkpoint_1/pytorch_model_fsdp_0/"), put("checkpoint_1/model.safetensors", weightsOf("{}", "w"))), epoch: 1, text: "want it beside optimizer_0"},
		"accelerate, a folder of a model":    {do: all(without("checkpoint_1/pytorch_model_fsdp_0/"), put("checkpoint_1/unet/model.safetensors", weightsOf("{}", "w"))), epoch: 1, text: "pytorch_model_fsdp_0, which is absent"},
		"accelerate, both":                   {do: put("checkpoint_1/unet/model.safetensors", weightsOf("{}", "w")), want: true, epoch: 1, newest: at(1)},
	})
}
