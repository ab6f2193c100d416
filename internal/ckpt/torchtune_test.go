// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// torchtuneRun is the folder of a recipe with adapters, after two epochs.
func torchtuneRun(t *testing.T) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for e := range 2 {
		dir := fmt.Sprintf("epoch_%d/", e)
		f[dir+"adapter_model.pt"] = torchSaved(t, table{"a": 1})
		f[dir+"model-00001-of-00002.safetensors"] = weightsOf("{}", "v")
		f[dir+"model-00002-of-00002.safetensors"] = weightsOf("{}", "w")
		f[dir+"model.safetensors.index.json"] = indexOf("{}", "v: model-00001-of-00002.safetensors", "w: model-00002-of-00002.safetensors")
	}
	f["recipe_state/recipe_state.pt"] = recipeState(t, 2)
	return f
}

func recipeState(t *testing.T, epochs int) *fstest.MapFile {
	t.Helper()
	return torchSaved(t, table{"epochs_run": epochs, "total_epochs": 4, "optimizer": table{"state": table{"0": table{"step": 50 * epochs}}}})
}

func TestTorchtune(t *testing.T) {
	const state = "recipe_state/recipe_state.pt"
	changes(t, torchtuneRun, ckpt.FormatTorchtune, 1, map[string]change{
		"the state torn":               {do: cut(state), epoch: 1, text: "optimizer recipe_state, which is tentative"},
		"the state gone":               {do: all(without(state), put("recipe_state/x", document(""))), epoch: 1, text: "optimizer recipe_state, which is absent"},
		"the state of an epoch before": {do: put(state, recipeState(t, 1)), epoch: 1, text: "domains hold different epochs"},
		"the newest epoch gone":        {do: without("epoch_1/"), epoch: 0, text: "domains hold different epochs"},
		"no optimizer":                 {do: put(state, torchSaved(t, table{"epochs_run": 2})), epoch: 1, text: "got no optimizer"},
		"an optimizer of None":         {do: put(state, torchSaved(t, table{"epochs_run": 2, "optimizer": nil})), epoch: 1, text: "got no optimizer"},
		"an empty optimizer":           {do: put(state, torchSaved(t, table{"epochs_run": 2, "optimizer": table{}})), epoch: 1, text: "got no optimizer"},
		"an empty list of optimizers":  {do: put(state, torchSaved(t, table{"epochs_run": 2, "optimizer": []any{}})), epoch: 1, text: "got no optimizer"},
		"an optimizer without moments": {do: put(state, torchSaved(t, table{"epochs_run": 2, "optimizer": stateless()})), want: true, epoch: 1, newest: at(1)},
		"a shard gone":                 {do: without("epoch_1/model-00002"), epoch: 1, text: "model-00002-of-00002.safetensors, which is absent"},
		"a shard gone, no index":       {do: without("epoch_1/model-00002", "epoch_1/model.safetensors.index.json", "epoch_0/"), epoch: 1, text: "want it of 2 shards"},
		"a shard torn":                 {do: cut("epoch_1/model-00001-of-00002.safetensors"), epoch: 1, text: "model-00001"},
		"the adapter gone":             {do: without("epoch_1/adapter_model.pt"), epoch: 1, text: "as in epoch_0"},
		"the adapter torn":             {do: cut("epoch_1/adapter_model.pt"), epoch: 1, text: "adapter_model.pt"},
		"no weights":                   {do: all(without("epoch_1/", "epoch_0/"), put("epoch_1/config.json", document("{}"))), epoch: 1, text: "got no weights"},
		"of git-lfs":                   {do: put("epoch_1/model-00001-of-00002.safetensors", lfsPointer("5000000000")), epoch: 1, text: "run git lfs pull"},
		"adapters alone":               {do: without("epoch_0/model", "epoch_1/model"), want: true, epoch: 1, newest: at(1)},
		"in the folder of the save": {do: func(f fstest.MapFS) {
			for e := range 2 {
				f[fmt.Sprintf("epoch_%d/recipe_state.pt", e)] = recipeState(t, e+1)
			}
			delete(f, state)
		}, want: true, epoch: 1, newest: at(1)},
	})
	steps := func(t *testing.T) fstest.MapFS {
		t.Helper()
		return fstest.MapFS{
			"step_50/ft-model-00001-of-00001.safetensors":  weightsOf("{}", "v"),
			"step_100/ft-model-00001-of-00001.safetensors": weightsOf("{}", "v"),
			"recipe_state/recipe_state.pt":                 torchSaved(t, table{"steps_run": 100, "epochs_run": 0, "optimizer": stateless()}),
		}
	}
	changes(t, steps, ckpt.FormatTorchtune, 100, map[string]change{
		"the state torn":       {do: cut(state), epoch: 100, text: "recipe_state"},
		"the state of another": {do: put(state, torchSaved(t, table{"steps_run": 50, "optimizer": stateless()})), epoch: 100, text: "domains hold different epochs"},
		"the weights torn":     {do: cut("step_100/ft-model-00001-of-00001.safetensors"), epoch: 100, text: "ft-model"},
	})
	sharded := fstest.MapFS{"recipe_state/recipe_state.pt": recipeState(t, 1)}
	dcpIn(sharded, "epoch_0", "model", "optimizer")
	r, ok := safe(t, sharded, ckpt.Options{})
	require.True(t, ok, r.Why)
	delete(sharded, "epoch_0/__1_0.distcp")
	_, ok = safe(t, sharded, ckpt.Options{})
	require.False(t, ok)
}
