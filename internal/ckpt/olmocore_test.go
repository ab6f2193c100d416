// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/preflight"
)

// olmoSave writes a save of OLMo-core's: two ranks write the model, and each of ranks its own state.
func olmoSave(t *testing.T, f fstest.MapFS, ranks, step int, more table) {
	t.Helper()
	dir := fmt.Sprintf("step%d/", step)
	f[dir+".metadata.json"] = document(`{"version": "2.0"}`)
	f[dir+"config.json"] = document("{}")
	dcpIn(f, dir+"model_and_optim", "model.layers", "optim.state")
	for r := range ranks {
		state := table{"global_step": step, "rng": table{}}
		for key, value := range more {
			state[key] = value
		}
		f[fmt.Sprintf("%strain/rank%d.pt", dir, r)] = torchSaved(t, state)
	}
}

func olmoSaves(ranks int, more table) func(*testing.T) fstest.MapFS {
	return func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		olmoSave(t, f, ranks, 100, more)
		olmoSave(t, f, ranks, 200, more)
		return f
	}
}

func TestOLMoCore(t *testing.T) {
	const state = "step200/model_and_optim/"
	changes(t, olmoSaves(2, nil), ckpt.FormatOLMoCore, 200, map[string]change{
		"a rank gone":            {do: without("step200/train/rank1.pt"), epoch: 200, newest: at(100), text: "dataloader rank 1, which is absent"},
		"a rank gone, alone":     {do: without("step100/", "step200/train/rank1.pt"), epoch: 200, text: "dataloader rank 1"},
		"rank 0 gone":            {do: without("step200/train/rank0.pt"), want: true, epoch: 100, newest: at(100)}, // the loader takes it for none
		"a rank torn":            {do: cut("step200/train/rank1.pt"), epoch: 200, newest: at(100), text: "torn"},
		"a rank of another save": {do: put("step200/train/rank1.pt", torchSaved(t, table{"global_step": 100})), epoch: 200, newest: at(100), text: "domains hold different epochs"},
		"a shard gone":           {do: without(state + "__1_0.distcp"), epoch: 200, newest: at(100), text: "model_and_optim"},
		"a shard torn":           {do: cut(state + "__0_0.distcp"), epoch: 200, newest: at(100), text: "want at least"},
		"the model alone":        {do: func(f fstest.MapFS) { dcpIn(f, state[:len(state)-1], "model.layers") }, epoch: 200, newest: at(100), text: "in model_and_optim no item in .metadata is of an optimizer", verdict: preflight.WeightsOnly},
		"not committed":          {do: without("step200/.metadata.json"), want: true, epoch: 100, newest: at(100)},
		"no metadata of DCP":     {do: without(state + ".metadata"), want: true, epoch: 100, newest: at(100)},
		"commit torn":            {do: put("step200/.metadata.json", document("{")), epoch: 200, newest: at(100), text: "read JSON"},
		"under way":              {do: put("step300-tmp/train/rank0.pt", document("x")), want: true, epoch: 200, newest: at(200), text: ""},
		"more ranks, as given":   {do: func(fstest.MapFS) {}, world: 3, epoch: 200, text: "rank 2"},
		"fewer ranks since": {do: func(f fstest.MapFS) {
			olmoSave(t, f, 3, 100, table{"world_size": 3})
			olmoSave(t, f, 2, 200, table{"world_size": 2})
		}, want: true, epoch: 200, newest: at(200)},
		"fewer ranks, nothing says": {do: func(f fstest.MapFS) { olmoSave(t, f, 3, 100, nil) }, epoch: 200, newest: at(100), text: "which --world-size 2 would say"},
		"fewer ranks, as given":     {do: func(f fstest.MapFS) { olmoSave(t, f, 3, 100, nil) }, world: 2, want: true, epoch: 200, newest: at(200)},
		"step-N of torchtitan":      {do: put("step-300/.metadata", document("x")), epoch: 200, newest: at(200), text: "several frameworks (torchtitan's step-N, OLMo-core's stepN)"},
	})
	// Where replicas write nothing of the model, the state of each rank says how many there are.
	changes(t, olmoSaves(4, table{"world_size": 4}), ckpt.FormatOLMoCore, 200, map[string]change{
		"the last rank gone": {do: without("step200/train/rank3.pt"), epoch: 200, newest: at(100), text: "rank 3"},
	})
	// A trainer of one's own may not say it, and a save beside it does.
	changes(t, olmoSaves(4, nil), ckpt.FormatOLMoCore, 200, map[string]change{
		"the last rank gone":                {do: without("step200/train/rank3.pt"), epoch: 200, newest: at(100), text: "rank 3"},
		"the last two gone":                 {do: without("step200/train/rank2.pt", "step200/train/rank3.pt"), epoch: 200, newest: at(100), text: "got no such file; want it, as another save has"},
		"all but one gone":                  {do: without("step200/train/rank1.pt", "step200/train/rank2.pt", "step200/train/rank3.pt"), epoch: 200, newest: at(100), text: "rank 1"},
		"the last two gone, one save alone": {do: without("step100/", "step200/train/rank2.pt", "step200/train/rank3.pt"), epoch: 200, text: "nothing in it says how many ranks wrote it"},
		"one save alone":                    {do: without("step100/"), epoch: 200, text: "nothing in it says how many ranks wrote it"},
		"the same, as given":                {do: without("step100/"), world: 4, want: true, epoch: 200, newest: at(200)},
	})
	r, ok := safe(t, below(olmoSaves(2, table{"world_size": 2})(t), "step200/"), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, at(200), r.Epoch)
}
