// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// hollow is a file of safetensors whose tensors have no elements.
func hollow() *fstest.MapFile {
	head := `{"a":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"BF16","shape":[0,8],"data_offsets":[0,0]}}`
	return &fstest.MapFile{Data: append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), ModTime: weightsOf("{}").ModTime}
}

// A model or an adapter that was saved without its weights being gathered can be read, and holds nothing.
func TestWeights_WithoutTensors(t *testing.T) {
	const dir = "checkpoint-400/"
	none := weightsOf(`{"format": "pt"}`)
	adapter := func(weights *fstest.MapFile) func(fstest.MapFS) {
		return all(without(dir+"model.safetensors", dir+"config.json"), put(dir+"adapter_config.json", document("{}")), put(dir+"adapter_model.safetensors", weights))
	}
	torch := func(file *fstest.MapFile) func(fstest.MapFS) {
		return all(without(dir+"model.safetensors"), put(dir+"pytorch_model.bin", file))
	}
	changes(t, saveOfTrainer, ckpt.FormatHFTrainer, 400, map[string]change{
		"no tensor":                   {do: put(dir+"model.safetensors", none), epoch: 400, text: "got no tensor; want the weights"},
		"tensors without elements":    {do: put(dir+"model.safetensors", hollow()), epoch: 400, text: "got 2 tensors, all without elements"},
		"an adapter":                  {do: adapter(weightsOf("{}", "lora_A")), want: true, epoch: 400, newest: at(400)},
		"an adapter without tensor":   {do: adapter(none), epoch: 400, text: "adapter_model.safetensors"},
		"an adapter without elements": {do: adapter(hollow()), epoch: 400, text: "stage3_gather_16bit_weights_on_model_save"},
		"of torch.save, none":         {do: torch(torchSaved(t, table{})), epoch: 400, text: "got no tensor"},
		"of torch.save, no elements":  {do: torch(torchTensor(t, "pytorch_model", table{"w": 1}, nil)), epoch: 400, text: "got 1 tensors, all without elements"},
		"of torch.save, some":         {do: torch(torchTensor(t, "pytorch_model", table{"w": 1}, varied(1))), want: true, epoch: 400, newest: at(400)},
		"FSDP's beside, of a rank":    {do: all(put(dir+"model.safetensors", none), put(dir+"pytorch_model_fsdp_rank0.bin", optimizerAt(t, 1))), want: true, epoch: 400, newest: at(400)},
		"DeepSpeed's beside": {do: all(put(dir+"model.safetensors", none), func(f fstest.MapFS) {
			for name, file := range memory(t, saves(t, "deepspeed, ZeRO 3", 400)) {
				f[dir+name] = &fstest.MapFile{Data: file.Data, ModTime: document("").ModTime}
			}
			delete(f, dir+"optimizer.pt")
			f[dir+"training_args.bin"] = torchSaved(t, table{"distributed_state": table{"num_processes": 1}})
		}), want: true, epoch: 400, newest: at(400)},
	})
	changes(t, accelerateAt("checkpoint_%d", "model.safetensors", 0, 1), ckpt.FormatAccelerate, 1, map[string]change{
		"accelerate, no tensor": {do: put("checkpoint_1/model.safetensors", none), epoch: 1, newest: at(0), text: "got no tensor"},
	})
	const loss = "checkpoint_1/model_1.safetensors"
	pair := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t)
		f["checkpoint_0/model_1.safetensors"] = none
		f[loss] = none
		return f
	}
	bin := func(n int) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			for i := range 2 {
				dir := fmt.Sprintf("checkpoint_%d/", i)
				without(dir+"model.safetensors", dir+"model_1.safetensors")(f)
				f[dir+"pytorch_model.bin"] = torchTensor(t, "pytorch_model", table{"w": 1}, varied(n)[:256*min(1, n)])
				f[dir+"pytorch_model_1.bin"] = torchSaved(t, table{})
			}
		}
	}
	changes(t, pair, ckpt.FormatAccelerate, 1, map[string]change{
		"a loss without parameters":       {do: func(fstest.MapFS) {}, want: true, epoch: 1, newest: at(1)},
		"the loss comes first":            {do: all(swapped("checkpoint_1/model.safetensors", loss), swapped("checkpoint_0/model.safetensors", "checkpoint_0/model_1.safetensors")), want: true, epoch: 1, newest: at(1)},
		"of torch.save, a loss":           {do: bin(1), want: true, epoch: 1, newest: at(1)},
		"of torch.save, no elements":      {do: bin(0), epoch: 1, text: "all without elements"},
		"beside it, no elements":          {do: put(loss, hollow()), epoch: 1, newest: at(0), text: "model_1.safetensors"},
		"neither has a tensor":            {do: put("checkpoint_1/model.safetensors", none), epoch: 1, newest: at(0), text: "got no tensor"},
		"the model without elements":      {do: put("checkpoint_1/model.safetensors", hollow()), epoch: 1, newest: at(0), text: "all without elements"},
		"a loss that had weights in both": {do: put("checkpoint_0/model_1.safetensors", weightsOf("{}", "margin")), epoch: 1, newest: at(0), text: "got no tensor"},
	})
	r, ok := safe(t, fstest.MapFS{"model.safetensors": hollow(), "config.json": document("{}")}, ckpt.Options{})
	require.False(t, ok)
	require.Contains(t, told(r), "all without elements")
}
