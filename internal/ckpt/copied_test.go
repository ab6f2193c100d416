// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// record is one in a file of torch.save.
type record struct {
	name string
	data []byte
}

// torchRecords is a file of torch.save under a name, which the stream "archive" has.
func torchRecords(t *testing.T, name string, records ...record) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, r := range records {
		size := uint64(len(r.data))
		w, err := z.CreateRaw(&zip.FileHeader{Name: name + "/" + r.name, CRC32: crc32.ChecksumIEEE(r.data), CompressedSize64: size, UncompressedSize64: size})
		require.NoError(t, err)
		_, err = w.Write(r.data)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return &fstest.MapFile{Data: b.Bytes(), ModTime: document("").ModTime}
}

// torchTensor is a file of torch.save with a value, and beside it the bytes of a tensor.
func torchTensor(t *testing.T, name string, v any, tensor []byte) *fstest.MapFile {
	t.Helper()
	return torchRecords(t, name, record{"data.pkl", []byte("\x80\x02" + pickleValue(v) + ".")}, record{"data/0", tensor})
}

// varied are bytes of a tensor; those of another seed are others.
func varied(seed int) []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i*i + i*seed)
	}
	return b
}

// memory is a folder of the disk in memory.
func memory(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	f, ok := inMemory(t, dir).(fstest.MapFS)
	require.True(t, ok)
	return f
}

// over copies one file of a folder over another, with its times or without.
func over(from, to string) func(fstest.MapFS) {
	return func(f fstest.MapFS) { f[to] = &fstest.MapFile{Data: f[from].Data, ModTime: f[to].ModTime} }
}

// swapped gives two files each other's content.
func swapped(a, b string) func(fstest.MapFS) {
	return func(f fstest.MapFS) { f[a], f[b] = f[b], f[a] }
}

// A file of torch.save has the name under which it was saved in it, which shows a file that was copied over another
// rank's.
func TestCopied_NameWithin(t *testing.T) {
	trainer := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := saveOfTrainer(t)
		delete(f, "checkpoint-400/rng_state.pth")
		for r := range 2 {
			f[fmt.Sprintf("checkpoint-400/rng_state_%d.pth", r)] = torchTensor(t, fmt.Sprintf("rng_state_%d", r), table{"cpu": 1}, varied(1))
		}
		f["checkpoint-400/training_args.bin"] = torchSaved(t, table{"save_only_model": 0, "distributed_state": table{"num_processes": 2}})
		return f
	}
	const rng0, rng1 = "checkpoint-400/rng_state_0.pth", "checkpoint-400/rng_state_1.pth"
	named := func(name string) func(fstest.MapFS) {
		return put(rng1, torchTensor(t, name, table{"cpu": 1}, varied(1)))
	}
	changes(t, trainer, ckpt.FormatHFTrainer, 400, map[string]change{
		"rank 0 over rank 1":   {do: over(rng0, rng1), epoch: 400, text: `got the file that was saved as "rng_state_0.pth"; want that of "rng_state_1.pth"`},
		"both swapped":         {do: swapped(rng0, rng1), epoch: 400, text: `saved as "rng_state_1.pth"`},
		"of a rank far away":   {do: named("rng_state_11"), epoch: 400, text: `saved as "rng_state_11.pth"`},
		"saved by a stream":    {do: named("archive"), want: true, epoch: 400, newest: at(400)},
		"renamed from a draft": {do: named("rng_state_0.pth"), want: true, epoch: 400, newest: at(400)},
		"zeros before it":      {do: named("rng_state_0001"), want: true, epoch: 400, newest: at(400)},
	})
	const first, second = "checkpoint-400/pytorch_model-00001-of-00002.bin", "checkpoint-400/pytorch_model-00002-of-00002.bin"
	shards := func(t *testing.T, one, two string) func(fstest.MapFS) {
		t.Helper()
		return all(without("checkpoint-400/model.safetensors"),
			put(first, torchTensor(t, one, table{"a": 1}, varied(1))), put(second, torchTensor(t, two, table{"b": 1}, varied(2))),
			put("checkpoint-400/pytorch_model.bin.index.json", document(`{"metadata": {}, "weight_map": {"a": "pytorch_model-00001-of-00002.bin", "b": "pytorch_model-00002-of-00002.bin"}}`)))
	}
	changes(t, trainer, ckpt.FormatHFTrainer, 400, map[string]change{
		"shards under their names":         {do: shards(t, "pytorch_model-00001-of-00002", "pytorch_model-00002-of-00002"), want: true, epoch: 400, newest: at(400)},
		"shards that were counted later":   {do: shards(t, "pytorch_model-00001-of-00000", "pytorch_model-00002-of-00000"), want: true, epoch: 400, newest: at(400)},
		"shards that were numbered anew":   {do: shards(t, "pytorch_model-1", "pytorch_model-2"), want: true, epoch: 400, newest: at(400)},
		"a shard in the place of another":  {do: shards(t, "pytorch_model-00001-of-00002", "pytorch_model-00001-of-00002"), epoch: 400, text: "give it that name again"},
		"a shard of a model of more parts": {do: shards(t, "pytorch_model-00001-of-00003", "pytorch_model-00003-of-00003"), epoch: 400, text: `saved as "pytorch_model-00003-of-00003.bin"`},
	})
	accelerate := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := accelerateAt("checkpoint_%d", "model.safetensors", 0, 1)(t)
		for name := range f {
			if _, state, ok := strings.Cut(name, "/random_"); ok {
				f[name] = torchTensor(t, strings.TrimSuffix("random_"+state, ".pkl"), table{"step": 0}, varied(2))
			}
		}
		return f
	}
	changes(t, accelerate, ckpt.FormatAccelerate, 1, map[string]change{
		"rank 0 over rank 2":       {do: over("checkpoint_1/random_states_0.pkl", "checkpoint_1/random_states_2.pkl"), epoch: 1, newest: at(0), text: `saved as "random_states_0.pkl"`},
		"of the save before, same": {do: over("checkpoint_0/random_states_1.pkl", "checkpoint_1/random_states_1.pkl"), want: true, epoch: 1, newest: at(1)},
	})
	changes(t, verlFSDP, ckpt.FormatVerl, 200, map[string]change{
		"a shard of the model": {
			do:    put("global_step_200/actor/model_world_size_3_rank_2.pt", torchTensor(t, "model_world_size_3_rank_1", table{"w": 1}, varied(3))),
			epoch: 200, newest: at(100), text: `saved as "model_world_size_3_rank_1.pt"`,
		},
		"a shard of another world": {
			do:    put("global_step_200/critic/model_world_size_3_rank_1.pt", torchTensor(t, "model_world_size_4_rank_1", table{"w": 1}, varied(3))),
			epoch: 200, newest: at(100), text: `saved as "model_world_size_4_rank_1.pt"`,
		},
	})
}

// Of shards that were saved through a stream, equal content shows the copy.
func TestCopied_ZeROSaidByContent(t *testing.T) {
	const s2 = "global_step200/bf16_zero_pp_rank_%d_mp_rank_00_optim_states.pt"
	shard := func(r int) string { return fmt.Sprintf(s2, r) }
	for _, stage := range []string{"deepspeed, ZeRO 1", "deepspeed, ZeRO 3"} {
		whole := func(t *testing.T) fstest.MapFS {
			t.Helper()
			return memory(t, saves(t, stage, 100, 200))
		}
		changes(t, whole, ckpt.FormatDeepSpeed, 200, map[string]change{
			stage + ", rank 0 over rank 1": {do: over(shard(0), shard(1)), epoch: 200, newest: at(100), text: "got the same content as global_step200/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"},
			stage + ", rank 2 over rank 0": {do: over(shard(2), shard(0)), epoch: 200, newest: at(100), text: "each rank has a part of its own"},
			stage + ", one over all":       {do: all(over(shard(1), shard(0)), over(shard(1), shard(2))), epoch: 200, newest: at(100), text: "3 of"},
		})
	}
	tag := func(mp int, config table, tensors ...[]byte) func(*testing.T) fstest.MapFS {
		return func(t *testing.T) fstest.MapFS {
			t.Helper()
			f := fstest.MapFS{"latest": document("global_step200")}
			for m := range mp {
				f[fmt.Sprintf("global_step200/mp_rank_%02d_model_states.pt", m)] = torchSaved(t, table{
					"global_steps": 200, "skipped_steps": 0, "dp_world_size": len(tensors), "mp_world_size": mp, "ds_config": config,
				})
				for r, tensor := range tensors {
					f[fmt.Sprintf("global_step200/zero_pp_rank_%d_mp_rank_%02d_optim_states.pt", r, m)] = torchTensor(t, "archive",
						table{"optimizer_state_dict": table{"state": table{"0": table{"step": 200}}}, "ds_config": config}, tensor)
				}
			}
			return f
		}
	}
	zeros, ones := make([]byte, 512), bytes.Repeat([]byte{0, 0, 128, 63}, 128)
	for name, tc := range map[string]struct {
		of   func(*testing.T) fstest.MapFS
		want bool
	}{
		"parts that differ":             {tag(1, table{}, varied(1), varied(2), varied(3)), true},
		"parts that are alike":          {tag(1, table{}, varied(1), varied(2), varied(1)), false},
		"nothing but zeros":             {tag(1, table{}, varied(1), zeros, zeros), true},
		"one value":                     {tag(1, table{}, ones, ones), true},
		"what all tensor ranks have":    {tag(2, table{}, varied(1), varied(2)), true},
		"replicas of groups, as MiCS":   {tag(1, table{"zero_optimization": table{"mics_shard_size": 1}}, varied(1), varied(1)), true},
		"a group size that is not used": {tag(1, table{"zero_optimization": table{"mics_shard_size": -1}}, varied(1), varied(1)), false},
	} {
		r, ok := safe(t, tc.of(t), ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
	}
}

// Megatron's ranks save files of one name, each with the number of the rank that saved it in its arguments.
func TestCopied_MegatronRank(t *testing.T) {
	rank := func(n int, optimizer any, tensor []byte) *fstest.MapFile {
		args := table{"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1, "data_parallel_size": 1, "no_save_rng": 0}
		if n >= 0 {
			args["rank"] = n
		}
		return torchTensor(t, "model_optim_rng", table{"iteration": 200, "model": table{"w": 1}, "rng_state": []any{1}, "optimizer": optimizer, "args": args}, tensor)
	}
	counted := table{"state": table{"0": table{"step": 200}}}
	for name, tc := range map[string]struct {
		a, b *fstest.MapFile
		text string
	}{
		"two ranks":                  {rank(0, counted, varied(1)), rank(1, counted, varied(2)), ""},
		"rank 0 twice":               {rank(0, counted, varied(1)), rank(0, counted, varied(1)), "got args.rank 0, as in iter_0000200/mp_rank_0"},
		"rank 0 of another attempt":  {rank(0, counted, varied(1)), rank(0, counted, varied(2)), "a rank saves one file"},
		"no ranks, the same content": {rank(-1, counted, varied(1)), rank(-1, counted, varied(1)), "got the same content as iter_0000200/mp_rank_0"},
		"no ranks":                   {rank(-1, counted, varied(1)), rank(-1, counted, varied(2)), ""},
		"rank 1 over rank 0":         {rank(1, counted, varied(2)), rank(1, counted, varied(2)), "got args.rank 1"},
	} {
		f := fstest.MapFS{
			"latest_checkpointed_iteration.txt": document("200"), "iter_0000200/mp_rank_00/model_optim_rng.pt": tc.a, "iter_0000200/mp_rank_01/model_optim_rng.pt": tc.b,
		}
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.text == "", ok, "%s: %s\n%s", name, r.Why, told(r))
		require.Contains(t, told(r), tc.text, name)
	}
	converted := fstest.MapFS{ // by one process, without an optimizer
		"latest_checkpointed_iteration.txt": document("200"), "iter_0000200/mp_rank_00/model_optim_rng.pt": rank(0, nil, varied(1)), "iter_0000200/mp_rank_01/model_optim_rng.pt": rank(0, nil, varied(2)),
	}
	r, _ := safe(t, converted, ckpt.Options{})
	require.NotContains(t, told(r), "args.rank")
}

// blobs is a save of DCP of two ranks that have parts of the same tensors, each the bytes given.
func blobs(t *testing.T, names []string, ranks ...[][]byte) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	var fqns []string
	var items []item
	for r, tensors := range ranks {
		file := fmt.Sprintf("__%d_0.distcp", r)
		var data []byte
		for k, tensor := range tensors {
			blob := torchTensor(t, "archive", table{"w": 1}, tensor).Data
			fqns, items = append(fqns, names[k]), append(items, item{file, int64(len(data)), int64(len(blob))})
			data = append(data, blob...)
		}
		f["step-200/"+file] = &fstest.MapFile{Data: data, ModTime: document("").ModTime}
	}
	f["step-200/.metadata"] = metadataOf(fqns, items)
	return f
}

// Files of DCP that hold other parts of the same tensors are not alike.
func TestCopied_FileOfDCP(t *testing.T) {
	zeros := make([]byte, 256)
	names := []string{"layers.0.w", "layers.1.w", "optimizer.state.layers.0.w.exp_avg"}
	experts := []string{"layers.0.moe.experts.w1", "layers.1.mlp.local_experts.w1", "optimizer.state.layers.0.moe.experts.w1.exp_avg"}
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return blobs(t, names, [][]byte{varied(1), varied(2), varied(3)}, [][]byte{varied(4), varied(5), varied(6)}, [][]byte{varied(7), varied(8), varied(9)})
	}
	file := func(r int) string { return fmt.Sprintf("step-200/__%d_0.distcp", r) }
	changes(t, whole, ckpt.FormatTorchtitan, 200, map[string]change{
		"rank 0 over rank 1": {do: over(file(0), file(1)), epoch: 200, text: "got the same content as step-200/__0_0.distcp"},
		"rank 2 over rank 0": {do: over(file(2), file(0)), epoch: 200, text: ".metadata names them as different parts"},
		"one over all":       {do: all(over(file(1), file(0)), over(file(1), file(2))), epoch: 200, text: "__2_0.distcp"},
	})
	for name, tc := range map[string]struct {
		names  []string
		first  [][]byte
		second [][]byte
		want   bool
	}{
		"one tensor alike, as an embedding's padding": {names, [][]byte{varied(1), varied(2), varied(3)}, [][]byte{varied(1), varied(5), varied(6)}, true},
		"all zeros":              {names, [][]byte{zeros, zeros, zeros}, [][]byte{zeros, zeros, zeros}, true},
		"zeros, and one that is": {names, [][]byte{zeros, zeros, varied(1)}, [][]byte{zeros, zeros, varied(1)}, false},
		"zeros, and others":      {names, [][]byte{zeros, zeros, varied(1)}, [][]byte{zeros, zeros, varied(2)}, true},
		"experts that begin alike, averages of zeros":  {experts, [][]byte{varied(1), varied(2), zeros}, [][]byte{varied(1), varied(2), zeros}, true},
		"experts that begin alike, without averages":   {experts[:2], [][]byte{varied(1), varied(2)}, [][]byte{varied(1), varied(2)}, true},
		"experts that begin alike, averages that vary": {experts, [][]byte{varied(1), varied(2), varied(3)}, [][]byte{varied(1), varied(2), varied(4)}, true},
		"experts and their averages alike":             {experts, [][]byte{varied(1), varied(2), varied(3)}, [][]byte{varied(1), varied(2), varied(3)}, false},
		"layers alike, averages of zeros":              {names, [][]byte{varied(1), varied(2), zeros}, [][]byte{varied(1), varied(2), zeros}, true},
		"layers alike, without averages":               {names[:2], [][]byte{varied(1), varied(2)}, [][]byte{varied(1), varied(2)}, false},
	} {
		r, _ := safe(t, blobs(t, tc.names, tc.first, tc.second), ckpt.Options{})
		require.Equal(t, tc.want, !strings.Contains(told(r), "got the same content"), "%s: %s\n%s", name, r.Why, told(r))
	}
	replicated := func(names ...string) fstest.MapFS { // each rank has tensors of its own, all alike
		f := blobs(t, names[:2], [][]byte{varied(1), varied(2)}, [][]byte{varied(1), varied(2)})
		n := int64(len(f[file(0)].Data) / 2)
		f["step-200/.metadata"] = metadataOf(names, []item{{"__0_0.distcp", 0, n}, {"__0_0.distcp", n, n}, {"__1_0.distcp", 0, n}, {"__1_0.distcp", n, n}})
		return f
	}
	for name, tc := range map[string]struct {
		names []string
		want  bool
	}{
		"buffers of layers":        {[]string{"layers.0.inv_freq", "layers.0.mask", "layers.1.inv_freq", "layers.1.mask"}, true},
		"averages of parameters":   {[]string{"optimizer.state.a.exp_avg", "optimizer.state.a.exp_avg_sq", "optimizer.state.b.exp_avg", "optimizer.state.b.exp_avg_sq"}, false},
		"averages beside a buffer": {[]string{"layers.0.inv_freq", "optimizer.state.a.exp_avg", "layers.1.inv_freq", "optimizer.state.b.exp_avg"}, false},
	} {
		f := replicated(tc.names...)
		r, _ := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.want, !strings.Contains(told(r), "got the same content"), "%s: %s\n%s", name, r.Why, told(r))
	}
}

// Nanotron's files of weights say which part of a tensor each has.
func TestCopied_PartOfNanotron(t *testing.T) {
	const mlp = "200/model/decoder/0/mlp/model_weight_pp-rank-0-of-2_tp-rank-%d-of-2.safetensors"
	part := func(from, to int) *fstest.MapFile {
		return weightsOf(fmt.Sprintf(`{"version": "1.4", "local_global_slices_pairs": "((0,%d),),((%d,%d),)", "unsharded_shape": "(8,)"}`, to-from, from, to), "data")
	}
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{"latest.txt": document("200")}
		nanotronSave(t, f, 2, 100)
		nanotronSave(t, f, 2, 200)
		f[fmt.Sprintf(mlp, 0)], f[fmt.Sprintf(mlp, 1)] = part(0, 4), part(4, 8)
		return f
	}
	first, second := fmt.Sprintf(mlp, 0), fmt.Sprintf(mlp, 1)
	changes(t, whole, ckpt.FormatNanotron, 200, map[string]change{
		"rank 0 over rank 1":      {do: over(first, second), epoch: 200, newest: at(100), text: "got the same part of its tensor as " + first},
		"rank 1 over rank 0":      {do: over(second, first), epoch: 200, newest: at(100), text: "one was copied over the other"},
		"of another stage, alike": {do: put(strings.NewReplacer("decoder/0", "decoder/1", "rank-0-of-2_tp", "rank-1-of-2_tp").Replace(first), part(0, 4)), want: true, epoch: 200, newest: at(200)},
		"no slices":               {do: all(put(first, weightsOf("{}", "data")), put(second, weightsOf("{}", "data"))), want: true, epoch: 200, newest: at(200)},
	})
}

// A file that is a whole save is a part of nothing: renamed, it is the same save.
func TestCopied_SaveOfOneFile(t *testing.T) {
	whole := func(name string) *fstest.MapFile {
		return torchTensor(t, name, table{"global_step": 4, "epoch": 1, "pytorch-lightning_version": "2.5", "state_dict": table{"w": 1}, "optimizer_states": []any{1}, "lr_schedulers": []any{1}, "loops": table{"fit_loop": 1}}, varied(1))
	}
	for now, then := range map[string]string{
		"run2-step=4.ckpt":            "run1-step=4",
		"epoch=01-step=0004.ckpt":     "epoch=1-step=4",
		"epoch=1-step=4-v2.ckpt":      "epoch=1-step=4-v1",
		"2025-11-29-step=4.ckpt":      "2025-11-28-step=4",
		"epoch=1-step=4-loss=2.ckpt":  "epoch=1-step=4-loss=2",
		"epoch=1-step=4-rank=0.ckpt":  "archive",
		"exp7_epoch=1-step=4-b2.ckpt": "exp6_epoch=1-step=4-b1",
	} {
		r, _ := safe(t, fstest.MapFS{now: whole(then)}, ckpt.Options{})
		require.Len(t, r.Saves, 1, now)
		require.NotContains(t, told(r), "saved as", now)
		require.EqualValues(t, 4, r.Saves[0].Epoch.V, now)
	}
}
