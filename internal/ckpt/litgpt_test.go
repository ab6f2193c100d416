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

// litgptSaves is a folder of litgpt's pretraining, of one file each, or sharded.
func litgptSaves(sharded bool) func(*testing.T) fstest.MapFS {
	return func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{}
		for _, step := range []int{1000, 2000} {
			dir := fmt.Sprintf("step-%08d/", step)
			f[dir+"hyperparameters.yaml"] = document("a: 1")
			f[dir+"model_config.yaml"] = document("a: 1")
			state := table{"step_count": step, "iter_num": 4 * step}
			if sharded {
				dcpIn(f, dir+"lit_model.pth", "model", "optimizer")
				f[dir+"lit_model.pth/meta.pt"] = torchSaved(t, state)
				continue
			}
			state["model"], state["optimizer"] = table{"w": 1}, table{"state": table{}}
			f[dir+"lit_model.pth"] = torchSaved(t, state)
		}
		f["final/lit_model.pth"] = document("x") // a resume never takes it
		return f
	}
}

func TestLitGPT(t *testing.T) {
	const last = "step-00002000/"
	changes(t, litgptSaves(false), ckpt.FormatLitGPT, 2000, map[string]change{
		"torn":                         {do: cut(last + "lit_model.pth"), epoch: 2000, newest: at(1000), text: "torn"},
		"of another save":              {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 1000, "optimizer": table{"state": table{}}})), epoch: 2000, newest: at(1000), text: "the save is called 2000, and its domains hold 1000"},
		"weights alone":                {do: put(last+"lit_model.pth", torchSaved(t, table{"model": table{"w": 1}})), epoch: 2000, newest: at(1000), text: "has no optimizer, as of fine-tuning", verdict: preflight.WeightsOnly},
		"an optimizer of None":         {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": nil})), epoch: 2000, newest: at(1000), text: "got weights alone"},
		"an empty optimizer":           {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": table{}})), epoch: 2000, newest: at(1000), text: "got weights alone"},
		"an optimizer without moments": {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": table{"state": table{}}})), want: true, epoch: 2000, newest: at(2000)},
		"cut off before it":            {do: without(last + "lit_model.pth"), want: true, epoch: 1000, newest: at(1000)},
		"no hyperparameters":           {do: without(last + "hyperparameters.yaml"), epoch: 2000, newest: at(1000), text: "as in step-00001000"},
		"an adapter alone":             {do: all(without(last+"lit_model.pth"), put(last+"lit_model.pth.lora", torchSaved(t, table{"w": 1}))), epoch: 2000, newest: at(1000), text: "lit_model.pth"},
		"of git-lfs":                   {do: put(last+"lit_model.pth", lfsPointer("99")), epoch: 2000, newest: at(1000), text: "run git lfs pull"},
	})
	changes(t, litgptSaves(true), ckpt.FormatLitGPT, 2000, map[string]change{
		"a shard gone": {do: without(last + "lit_model.pth/__1_0.distcp"), epoch: 2000, newest: at(1000), text: "rank 1 in lit_model.pth"},
		"no .metadata": {do: without(last + "lit_model.pth/.metadata"), epoch: 2000, newest: at(1000), text: ".metadata"},
		"no meta.pt":   {do: without(last + "lit_model.pth/meta.pt"), epoch: 2000, newest: at(1000), text: "meta.pt"},
		"meta.pt torn": {do: cut(last + "lit_model.pth/meta.pt"), epoch: 2000, newest: at(1000), text: "torn"},
	})
	r, ok := safe(t, below(litgptSaves(false)(t), "step-00001000/"), ckpt.Options{})
	require.True(t, ok, r.Why)
	require.Equal(t, at(1000), r.Epoch)
}
