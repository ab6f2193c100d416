// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// nanotronSave writes a save of nanotron's, of so many ranks of tensor parallelism and two pipeline stages.
func nanotronSave(t *testing.T, f fstest.MapFS, tp, step int) {
	t.Helper()
	dir := fmt.Sprintf("%d/", step)
	f[dir+"config.yaml"] = document("a: 1")
	f[dir+"model_config.json"] = document("{}")
	f[dir+"checkpoint_metadata.json"] = document(fmt.Sprintf(`{"version": "1.4", "tp": %d, "dp": 1, "metas": {"last_train_step": %d}}`, tp, step))
	for pp := range 2 {
		f[fmt.Sprintf("%smodel/decoder/%d/norm/model_weight.safetensors", dir, pp)] = weightsOf("{}", "data")
		for r := range tp {
			f[fmt.Sprintf("%smodel/decoder/%d/mlp/model_weight_pp-rank-%d-of-2_tp-rank-%d-of-%d.safetensors", dir, pp, pp, r, tp)] = weightsOf("{}", "data")
			rank := fmt.Sprintf("pp-%d-of-2_tp-%d-of-%d_exp-0-of-1.pt", pp, r, tp)
			f[dir+"optimizer/optimizer_"+rank] = optimizerAt(t, step)
			f[dir+"lr_scheduler/lr_scheduler_"+rank] = torchSaved(t, table{"last_epoch": step})
			f[fmt.Sprintf("%srandom/tp-%d-of-%d_dp-0-of-1_pp-%d-of-2.pt", dir, r, tp, pp)] = torchSaved(t, table{"a": 1})
		}
	}
}

func TestNanotron(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{"latest.txt": document("200")}
		nanotronSave(t, f, 2, 100)
		nanotronSave(t, f, 2, 200)
		return f
	}
	const mlp = "200/model/decoder/1/mlp/model_weight_pp-rank-1-of-2_tp-rank-"
	changes(t, whole, ckpt.FormatNanotron, 200, map[string]change{
		"a shard of the optimizer gone": {do: without("200/optimizer/optimizer_pp-1-of-2_tp-1"), epoch: 200, newest: at(100), text: "optimizer optimizer_pp-1-of-2_tp-1-of-2_exp-0-of-1.pt, which is absent"},
		"no optimizer":                  {do: without("200/optimizer/"), epoch: 200, newest: at(100), text: "a resume needs it"},
		"no optimizer anywhere":         {do: without("200/optimizer/", "100/optimizer/"), epoch: 200, text: "a resume needs it"},
		"a shard of the scheduler gone": {do: without("200/lr_scheduler/lr_scheduler_pp-0-of-2_tp-1"), epoch: 200, newest: at(100), text: "scheduler"},
		"one scheduler for all": {do: func(f fstest.MapFS) {
			for _, dir := range []string{"100/", "200/"} {
				without(dir + "lr_scheduler/")(f)
				f[dir+"lr_scheduler/lr_scheduler.pt"] = torchSaved(t, table{"last_epoch": 1})
			}
		}, want: true, epoch: 200, newest: at(200)},
		"random states gone":        {do: without("200/random/tp-0-of-2_dp-0-of-1_pp-1"), epoch: 200, newest: at(100), text: "rng"},
		"a shard of the model gone": {do: without(mlp + "1"), epoch: 200, newest: at(100), text: "tp-rank-1-of-2.safetensors, which is absent"},
		"a tensor gone":             {do: without("200/model/decoder/1/norm/"), epoch: 200, newest: at(100), text: "got no such file; want it, as in 100"},
		"a shard torn":              {do: cut("200/optimizer/optimizer_pp-0-of-2_tp-0-of-2_exp-0-of-1.pt"), epoch: 200, newest: at(100), text: "torn"},
		"a tensor torn":             {do: cut(mlp + "0-of-2.safetensors"), epoch: 200, newest: at(100), text: "model"},
		"a shard of another save":   {do: put("200/optimizer/optimizer_pp-0-of-2_tp-1-of-2_exp-0-of-1.pt", optimizerAt(t, 100)), epoch: 200, newest: at(100), text: "counts 100 steps; want 200"},
		"metadata of another save":  {do: put("200/checkpoint_metadata.json", document(`{"metas": {"last_train_step": 100}}`)), epoch: 200, newest: at(100), text: "domains hold different epochs"},
		"no metadata":               {do: without("200/checkpoint_metadata.json"), epoch: 200, newest: at(100), text: "checkpoint_metadata.json, which is absent"},
		"the tracker is behind":     {do: all(put("latest.txt", document("100")), without("200/optimizer/optimizer_pp-1-of-2_tp-1")), want: true, epoch: 100, newest: at(100)},
		"the tracker is ahead":      {do: put("latest.txt", document("300")), epoch: 300, newest: at(200), text: "names \"300\", which is not there"},
		"no tracker":                {do: without("latest.txt"), newest: at(200), text: "a resume would find no save"},
		"another number of ranks":   {do: func(f fstest.MapFS) { without("200/")(f); nanotronSave(t, f, 4, 200) }, want: true, epoch: 200, newest: at(200)},
		"shards of two worlds":      {do: put("200/optimizer/optimizer_pp-0-of-2_tp-3-of-4_exp-0-of-1.pt", optimizerAt(t, 200)), epoch: 200, newest: at(100), text: "of another world"},
		"ranks beyond measure":      {do: all(without("200/random/"), put("200/random/tp-0-of-99999999_dp-0-of-99999999_pp-0-of-99999999.pt", optimizerAt(t, 1))), epoch: 200, newest: at(100), text: "ranks by its name"},
		"a model of git-lfs":        {do: put(mlp+"0-of-2.safetensors", lfsPointer("12345")), epoch: 200, newest: at(100), text: "run git lfs pull"},
	})
	named := nanotronNamed(t, "model.norm.weight")
	r, ok := safe(t, below(named, "200/"), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, at(200), r.Epoch, "by what it says itself")
}

// nanotronNamed is one save whose optimizers name its tensors, and one more.
func nanotronNamed(t *testing.T, more string) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{"latest.txt": document("200")}
	nanotronSave(t, f, 2, 200)
	f["200/model/model/norm/model_weight.safetensors"] = weightsOf("{}", "data")
	for pp := range 2 {
		names := table{"0": fmt.Sprintf("decoder.%d.norm.weight", pp), "1": fmt.Sprintf("decoder.%d.mlp.weight", pp), "2": more}
		for r := range 2 {
			f[fmt.Sprintf("200/optimizer/optimizer_pp-%d-of-2_tp-%d-of-2_exp-0-of-1.pt", pp, r)] = torchSaved(t, table{"state": table{"0": table{"step": 200}}, "names": names})
		}
	}
	return f
}

// Of a single save the optimizers say which tensors there must be, if anything does.
func TestNanotron_OneSave(t *testing.T) {
	whole := func(t *testing.T) fstest.MapFS { t.Helper(); return nanotronNamed(t, "model.norm.weight") }
	unnamed := func(f fstest.MapFS) {
		for pp := range 2 {
			for r := range 2 {
				f[fmt.Sprintf("200/optimizer/optimizer_pp-%d-of-2_tp-%d-of-2_exp-0-of-1.pt", pp, r)] = optimizerAt(t, 200)
			}
		}
	}
	config := func(pp, configs string) func(fstest.MapFS) {
		return put("200/optimizer/optimizer_config.json", document(`{"type": "ZeroDistributedOptimizer", "parallelism": {"tp_size": "2", "pp_size": "`+pp+`"}, "configs": {`+configs+`}}`))
	}
	const shapes = `"orig_param_shapes": {"decoder.0.norm.weight": ["4"], "decoder.0.mlp.weight": ["4"], "decoder.1.norm.weight": ["4"], "decoder.1.mlp.weight": ["4"]}`
	const offsets = `"param_name_to_dp_rank_offsets": {"decoder.0.norm.weight": {}, "decoder.0.mlp.weight": {}, "decoder.1.norm.weight": {}, "decoder.1.mlp.weight": {}}`
	changes(t, whole, ckpt.FormatNanotron, 200, map[string]change{
		"ZeRO's shapes name them":  {do: all(unnamed, config("1", shapes)), want: true, epoch: 200, newest: at(200)},
		"ZeRO's offsets name them": {do: all(unnamed, config("1", offsets)), want: true, epoch: 200, newest: at(200)},
		"ZeRO's shapes, a tensor lost": {
			do: all(unnamed, config("1", shapes), without("200/model/decoder/1/mlp/")), epoch: 200, text: "200/model/decoder/1/mlp/model_weight has no file",
		},
		"ZeRO's shapes of the first stage": {do: all(unnamed, config("2", shapes)), epoch: 200, text: "optimizer_config.json names those of the first of 2 pipeline stages alone"},
		"ZeRO's names of no number":        {do: all(unnamed, config("many", shapes)), epoch: 200, text: "nothing in it says which tensors the model has"},
		"a configuration of no ZeRO":       {do: all(unnamed, config("1", "")), epoch: 200, text: "nothing in it says which tensors the model has"},
		"a tensor lost":                    {do: without("200/model/decoder/0/norm/"), epoch: 200, text: "200/model/decoder/0/norm/model_weight has no file, and an optimizer names it"},
		"every shard of a tensor lost":     {do: without("200/model/decoder/1/mlp/"), epoch: 200, text: "200/model/decoder/1/mlp/model_weight has no file"},
		"no names":                         {do: unnamed, epoch: 200, text: "nothing in it says which tensors the model has"},
		"no names, a tensor lost":          {do: all(unnamed, without("200/model/decoder/1/mlp/")), epoch: 200, text: "nothing in it says which tensors the model has"},
		"no names, a whole save beside": {do: func(f fstest.MapFS) {
			unnamed(f)
			nanotronSave(t, f, 2, 100)
			delete(f, "200/model/model/norm/model_weight.safetensors")
		}, want: true, epoch: 200, newest: at(200)},
		"another world beside": {do: func(f fstest.MapFS) {
			unnamed(f)
			nanotronSave(t, f, 4, 100)
			delete(f, "200/model/model/norm/model_weight.safetensors")
		}, want: true, epoch: 200, newest: at(200)},
		"a tensor that another world has": {do: func(f fstest.MapFS) {
			unnamed(f)
			nanotronSave(t, f, 4, 100)
			without("200/model/decoder/1/mlp/", "200/model/model/")(f)
		}, epoch: 200, newest: at(100), text: "want it, as in 100"},
		"a tensor lost, one of the tensor": {do: without("200/model/decoder/1/mlp/model_weight_pp-rank-1-of-2_tp-rank-0"), epoch: 200, text: "tp-rank-1-of-2.safetensors says"},
	})
}

// Names of many ranks cost as many steps as there are files.
func TestNanotron_ManyRanks(t *testing.T) {
	const ranks = 1024
	f := fstest.MapFS{"latest.txt": document("200")}
	nanotronSave(t, f, 1, 200)
	tensor := weightsOf("{}", "data")
	for r := range ranks {
		f[fmt.Sprintf("200/model/embed/model_weight_tp-rank-%d-of-%d.safetensors", r, ranks)] = tensor
	}
	steps := testing.AllocsPerRun(1, func() { ckpt.Read(t.Context(), f, ckpt.Options{}) })
	for r := range ranks {
		delete(f, fmt.Sprintf("200/model/embed/model_weight_tp-rank-%d-of-%d.safetensors", r, ranks))
	}
	few := testing.AllocsPerRun(1, func() { ckpt.Read(t.Context(), f, ckpt.Options{}) })
	require.Less(t, (steps-few)/ranks, 200.0, "allocations a file")
}

// A folder that is called by a number and is no save of nanotron's is Orbax's.
func TestNanotron_NumbersOfOthers(t *testing.T) {
	r := judgeDir(t, saves(t, "orbax", 100, 200))
	require.True(t, r.OK(), r.Why)
	require.Equal(t, ckpt.FormatOrbax, r.Judged.Format)
}

// A job that saves its model alone leaves no optimizer and no scheduler in any save.
func TestNanotron_WeightsAlone(t *testing.T) {
	const none = "it has no optimizer and no lr_scheduler"
	for name, tc := range map[string]struct {
		do      func(fstest.MapFS)
		verdict epoch.Verdict
		text    string
		accept  bool
	}{
		"random states left":          {all(), preflight.WeightsOnly, none, true},
		"nothing but the model":       {without("100/random/", "200/random/"), preflight.WeightsOnly, none, true},
		"random states of one rank":   {without("200/random/tp-0-of-2_dp-0-of-1_pp-1"), epoch.Converging, "rng", false},
		"a tensor lost":               {without("200/model/decoder/1/norm/"), epoch.Converging, "want it, as in 100", false},
		"a shard torn":                {cut("200/model/decoder/1/mlp/model_weight_pp-rank-1-of-2_tp-rank-0-of-2.safetensors"), epoch.Converging, "model", false},
		"cut off before its metadata": {without("200/checkpoint_metadata.json"), epoch.Converging, "a resume needs it", false},
		"a scheduler in another":      {put("100/lr_scheduler/lr_scheduler.pt", torchSaved(t, table{"last_epoch": 1})), epoch.Converging, "a resume needs it", false},
		"an optimizer in another":     {put("100/optimizer/optimizer_pp-0-of-1_tp-0-of-1.pt", optimizerAt(t, 100)), epoch.Converging, "a resume needs it", false},
		"the only save":               {without("100/"), epoch.Unknown, "nothing in it says which tensors the model has", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := fstest.MapFS{"latest.txt": document("200")}
			nanotronSave(t, f, 2, 100)
			nanotronSave(t, f, 2, 200)
			without("100/optimizer/", "200/optimizer/", "100/lr_scheduler/", "200/lr_scheduler/")(f)
			tc.do(f)
			places := []preflight.Place{{Name: "x", Root: ckpt.Read(t.Context(), f, ckpt.Options{})}}
			r := preflight.Judge(places, model.Optional[int64]{})
			require.Equal(t, tc.verdict, r.Verdict, r.Why)
			require.Contains(t, r.Why+told(r), tc.text)
			accepted := preflight.JudgeAccepting(places, model.Optional[int64]{}, preflight.Accept{WeightsOnly: true})
			require.Equal(t, tc.accept, accepted.OK(), accepted.Why)
		})
	}
}
