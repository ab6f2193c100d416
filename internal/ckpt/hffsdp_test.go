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
