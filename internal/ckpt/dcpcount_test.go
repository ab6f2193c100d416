// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// numbered is an item of DCP that is a number.
type numbered struct {
	fqn string
	n   int
}

// dcpOf writes a save of DCP of numbers: those of each rank.
func dcpOf(t *testing.T, f fstest.MapFS, dir string, ranks ...[]numbered) {
	t.Helper()
	var names []string
	var items []item
	for r, of := range ranks {
		name := fmt.Sprintf("__%d_0.distcp", r)
		file := &fstest.MapFile{ModTime: time.Unix(99, 0)}
		for _, it := range of {
			blob := torchSaved(t, it.n).Data
			names = append(names, it.fqn)
			items = append(items, item{name, int64(len(file.Data)), int64(len(blob))})
			file.Data = append(file.Data, blob...)
		}
		f[dir+name] = file
	}
	f[dir+".metadata"] = metadataOf(names, items)
}

// titanRank is what a rank of torchtitan saves: parameters with the steps that their optimizer counts.
func titanRank(rank int, steps ...int) []numbered {
	of := []numbered{{fmt.Sprintf("layers.%d.weight", rank), 1}}
	for i, n := range steps {
		of = append(of, numbered{fmt.Sprintf("optimizer.state.layers.%d.%d.step", rank, i), n})
	}
	return of
}

// titan writes a save of torchtitan's by two ranks, whose optimizers count so many steps.
func titan(t *testing.T, f fstest.MapFS, step int, first, second []int) {
	t.Helper()
	zero := append(titanRank(0, first...), numbered{"train_state.step", step}, numbered{"lr_scheduler.last_epoch", step})
	dcpOf(t, f, fmt.Sprintf("step-%d/", step), zero, titanRank(1, second...))
}

func TestTorchtitan_StepsInShards(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		titan(t, f, 2, []int{2, 2}, []int{2, 2})
		titan(t, f, 4, []int{4, 4}, []int{4, 4})
		return f
	}
	saves := func(first, second []int) func(fstest.MapFS) {
		return func(f fstest.MapFS) { titan(t, f, 4, first, second) }
	}
	alone := without("step-2/")
	changes(t, whole, ckpt.FormatTorchtitan, 4, map[string]change{
		"a shard of the save before":  {do: from("step-2/", "step-4/", "__1_0.distcp"), epoch: 4, newest: at(2), text: "optimizer rank 1, which is tentative"},
		"the same, the only save":     {do: all(from("step-2/", "step-4/", "__1_0.distcp"), alone), epoch: 4, text: "got a count of 2 steps; want 4"},
		"a shard of a later save":     {do: saves([]int{4, 4}, []int{6, 6}), epoch: 4, newest: at(2), text: "got a count of 6 steps"},
		"all optimizers":              {do: saves([]int{2, 2}, []int{2, 2}), epoch: 4, newest: at(2), text: "optimizer rank 0, which is tentative"},
		"the only save":               {do: alone, want: true, epoch: 4, newest: at(4)},
		"a parameter without a step":  {do: saves([]int{4, 0}, []int{1, 4}), want: true, epoch: 4, newest: at(4)},
		"a rank without an optimizer": {do: saves([]int{4, 4}, nil), want: true, epoch: 4, newest: at(4)},
		"begun with an optimizer": {do: func(f fstest.MapFS) {
			titan(t, f, 2, []int{5002}, []int{5002})
			titan(t, f, 4, []int{5004}, []int{5004})
		}, want: true, epoch: 4, newest: at(4)},
		"begun anew before both": {do: func(f fstest.MapFS) {
			titan(t, f, 2, []int{1}, []int{1})
			titan(t, f, 4, []int{3}, []int{3})
		}, want: true, epoch: 4, newest: at(4)},
	})
	r, ok := safe(t, calledBy{below(whole(t), "step-4/"), "step-4"}, ckpt.Options{})
	require.True(t, ok, r.Why)
	f := whole(t)
	from("step-2/", "step-4/", "__1_0.distcp")(f)
	r, ok = safe(t, calledBy{below(f, "step-4/"), "step-4"}, ckpt.Options{})
	require.False(t, ok, "the folder of the save itself")
	require.Contains(t, r.Why, "optimizer rank 1")
}

// Few of many numbers are read, whatever a shard holds.
func TestTorchtitan_StepsInShards_Bounded(t *testing.T) {
	bytesOf := func(parameters int) int64 {
		steps := make([]int, parameters)
		for i := range steps {
			steps[i] = 2
		}
		f := fstest.MapFS{}
		titan(t, f, 2, steps, steps)
		root := ckpt.Read(t.Context(), f, ckpt.Options{})
		return root.Counts.BytesRead - int64(len(f["step-2/.metadata"].Data))
	}
	require.LessOrEqual(t, bytesOf(400), bytesOf(4), "of a shard a hundred times as long")
}

func TestTrainer_StepsInShards(t *testing.T) {
	optimizers := func(f fstest.MapFS, step int, counts ...int) {
		var ranks [][]numbered
		for r, n := range counts {
			ranks = append(ranks, []numbered{{fmt.Sprintf("optimizer.state.%d.w.step", r), n}, {fmt.Sprintf("optimizer.state.%d.w.exp_avg", r), 1}})
		}
		dcpOf(t, f, fmt.Sprintf("checkpoint-%d/optimizer_0/", step), ranks...)
	}
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		for _, step := range []int{100, 200} {
			dir := fmt.Sprintf("checkpoint-%d/", step)
			f[dir+"trainer_state.json"] = document(fmt.Sprintf(`{"global_step": %d, "epoch": 0.5, "save_steps": 100}`, step))
			f[dir+"training_args.bin"] = torchSaved(t, table{"gradient_accumulation_steps": 1, "distributed_state": table{"num_processes": 2}})
			f[dir+"scheduler.pt"] = torchSaved(t, table{"last_epoch": step})
			f[dir+"rng_state_0.pth"], f[dir+"rng_state_1.pth"] = torchSaved(t, table{"a": 1}), torchSaved(t, table{"a": 1})
			dcpOf(t, f, dir+"pytorch_model_fsdp_0/", []numbered{{"model.a", 1}}, []numbered{{"model.b", 1}})
			optimizers(f, step, step, step)
		}
		return f
	}
	counts := func(first, second int) func(fstest.MapFS) {
		return func(f fstest.MapFS) { optimizers(f, 200, first, second) }
	}
	alone := without("checkpoint-100/")
	scaler := put("checkpoint-200/scaler.pt", torchSaved(t, table{"scale": 8192, "growth_interval": 2000}))
	scheduler := func(n int) func(fstest.MapFS) {
		return put("checkpoint-200/scheduler.pt", torchSaved(t, table{"last_epoch": n}))
	}
	changes(t, whole, ckpt.FormatHFTrainer, 200, map[string]change{
		"a shard of the save before":  {do: counts(200, 100), epoch: 200, newest: at(100), text: "optimizer rank 1 in optimizer_0, which is tentative"},
		"the same, the only save":     {do: all(counts(200, 100), alone), epoch: 200, text: "optimizer rank 1 in optimizer_0, which is tentative"},
		"all of it":                   {do: counts(100, 100), epoch: 200, newest: at(100), text: "got a count of 100 steps"},
		"16 steps of PPO":             {do: func(f fstest.MapFS) { optimizers(f, 100, 1600, 1600); optimizers(f, 200, 3200, 3200) }, want: true, epoch: 200, newest: at(200)},
		"16 steps of PPO, alone":      {do: all(counts(3200, 3200), alone), want: true, epoch: 200, newest: at(200)},
		"steps skipped, alone":        {do: all(counts(150, 150), scheduler(150), scaler, alone), want: true, epoch: 200, newest: at(200)},
		"skipped by itself, alone":    {do: all(counts(197, 197), scaler, alone), want: true, epoch: 200, newest: at(200)},
		"a scheduler by epochs":       {do: all(scheduler(1), alone), want: true, epoch: 200, newest: at(200)},
		"the scheduler of before too": {do: all(counts(100, 100), scheduler(100), alone), epoch: 200, text: "want 200"},
	})
}
