// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// rename is a change that gives files that begin so another beginning.
func rename(from, to string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		for name, file := range maps.Clone(f) {
			if rest, ok := strings.CutPrefix(name, from); ok {
				delete(f, name)
				f[to+rest] = file
			}
		}
	}
}

// duplicate is a change that adds a copy of a file.
func duplicate(from, to string) func(fstest.MapFS) {
	return func(f fstest.MapFS) { f[to] = f[from] }
}

// save_state numbers its files without a gap, so that a single save shows that one of them is lost.
func TestAccelerate_NumberMissing(t *testing.T) {
	const dir = "checkpoint_3/"
	two := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "model.safetensors", 3)(t)
		for _, names := range [][2]string{{"model", ".safetensors"}, {"optimizer", ".bin"}, {"scheduler", ".bin"}} {
			duplicate(dir+names[0]+names[1], dir+names[0]+"_1"+names[1])(f)
		}
		f[dir+"custom_checkpoint_0.pkl"] = torchSaved(t, table{"w": 1})
		f[dir+"custom_checkpoint_1.pkl"] = torchSaved(t, table{"w": 1})
		return f
	}
	changes(t, two, ckpt.FormatAccelerate, 3, map[string]change{
		"the first model":        {do: without(dir + "model.safetensors"), epoch: 3, text: "model model.safetensors, which is absent"},
		"the first optimizer":    {do: without(dir + "optimizer.bin"), epoch: 3, text: "want it before optimizer_1.bin"},
		"the first scheduler":    {do: without(dir + "scheduler.bin"), epoch: 3, text: "scheduler scheduler.bin, which is absent"},
		"the first custom state": {do: without(dir + "custom_checkpoint_0.pkl"), epoch: 3, text: "part custom_checkpoint_0.pkl, which is absent"},
		"one in between":         {do: rename(dir+"model_1", dir+"model_2"), epoch: 3, text: "model model_1.safetensors, which is absent"},
		"two in between":         {do: rename(dir+"optimizer_1", dir+"optimizer_3"), epoch: 3, text: "optimizer optimizer_1.bin, which is absent"},
		"an index of shards": {do: all(without(dir+"model.safetensors"), put(dir+"model.safetensors.index.json", indexOf("{}", "w: a.safetensors")),
			put(dir+"a.safetensors", weightsOf("{}", "w"))), want: true, epoch: 3, newest: at(3)},
		"a gap of data loaders":   {do: duplicate(dir+"sampler.bin", dir+"sampler_2.bin"), want: true, epoch: 3, newest: at(3)},
		"a model of torch.save":   {do: all(without(dir+"model.safetensors"), rename(dir+"model_1.safetensors", dir+"pytorch_model_1.bin"), put(dir+"pytorch_model_1.bin", torchSaved(t, table{"w": 1}))), epoch: 3, text: "pytorch_model.bin"},
		"FSDP, the first of both": {do: all(without(dir+"model"), put(dir+"pytorch_model_fsdp_1.bin", torchSaved(t, table{"w": 1}))), epoch: 3, text: "pytorch_model_fsdp.bin"},
	})
}

// A script's hook saves the average of a model beside the model.
func TestAccelerate_AverageAlone(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint-%d", "", 500)(t)
		for _, part := range []string{"transformer/", "transformer_ema/"} {
			f["checkpoint-500/"+part+"diffusion_pytorch_model.safetensors"] = weightsOf("{}", "w")
		}
		return f
	}
	changes(t, whole, ckpt.FormatAccelerate, 500, map[string]change{
		"the model lost":   {do: without("checkpoint-500/transformer/"), epoch: 500, text: "want the model beside its average transformer_ema"},
		"the average lost": {do: without("checkpoint-500/transformer_ema/"), want: true, epoch: 500, newest: at(500)},
	})
}

// FSDP's folders have numbers from 0.
func TestAccelerate_FolderMissing(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "", 2)(t)
		delete(f, "checkpoint_2/optimizer.bin")
		for _, n := range []string{"0", "1"} {
			dcpIn(f, "checkpoint_2/pytorch_model_fsdp_"+n, "model")
			dcpIn(f, "checkpoint_2/optimizer_"+n, "optim")
		}
		return f
	}
	changes(t, whole, ckpt.FormatAccelerate, 2, map[string]change{
		"the first model":     {do: without("checkpoint_2/pytorch_model_fsdp_0/"), epoch: 2, text: "model pytorch_model_fsdp_0, which is absent"},
		"the first optimizer": {do: without("checkpoint_2/optimizer_0/"), epoch: 2, text: "optimizer optimizer_0, which is absent"},
		"the last of both":    {do: without("checkpoint_2/optimizer_1/", "checkpoint_2/pytorch_model_fsdp_1/"), want: true, epoch: 2, newest: at(2)},
	})
}
