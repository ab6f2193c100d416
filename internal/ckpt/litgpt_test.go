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
			state["model"], state["optimizer"] = table{"w": 1}, stateless()
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
		"of another save":              {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 1000, "optimizer": stateless()})), epoch: 2000, newest: at(1000), text: "the save is called 2000, and its domains hold 1000"},
		"weights alone":                {do: put(last+"lit_model.pth", torchSaved(t, table{"model": table{"w": 1}})), epoch: 2000, newest: at(1000), text: "has no optimizer, as of fine-tuning", verdict: preflight.WeightsOnly},
		"an optimizer of None":         {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": nil})), epoch: 2000, newest: at(1000), text: "got weights alone"},
		"an empty optimizer":           {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": table{}})), epoch: 2000, newest: at(1000), text: "got weights alone"},
		"an optimizer without moments": {do: put(last+"lit_model.pth", torchSaved(t, table{"step_count": 2000, "optimizer": stateless()})), want: true, epoch: 2000, newest: at(2000)},
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

// litgpt's step_count is what its optimizer counts, less the few steps that a loss scaler skips at first.
func TestLitGPT_CountsOfTheOnlySave(t *testing.T) {
	for name, tc := range map[string]struct {
		steps, optimizer int
		sharded, want    bool
	}{
		"as many":                {2000, 2000, false, true},
		"some skipped":           {2000, 1991, false, true},
		"few steps, and skipped": {20, 8, false, true},
		"of the save before":     {2000, 1000, false, false},
		"of a much older one":    {40000, 100, false, false},
		"started anew":           {2000, 0, false, false},
		"sharded, as many":       {2000, 2000, true, true},
		"sharded, some skipped":  {2000, 1990, true, true},
		"sharded, of before":     {2000, 1000, true, false},
		"sharded, of long ago":   {2000, 7, true, false},
	} {
		f := fstest.MapFS{}
		dir := fmt.Sprintf("step-%08d/", tc.steps)
		state := table{"step_count": tc.steps, "iter_num": 4 * tc.steps}
		if tc.sharded {
			dcpOf(t, f, dir+"lit_model.pth/", []numbered{{"model.w", 1}, {"optimizer.state.w.step", tc.optimizer}})
			f[dir+"lit_model.pth/meta.pt"] = torchSaved(t, state)
		} else {
			state["model"], state["optimizer"] = table{"w": 1}, table{"state": table{"0": table{"step": tc.optimizer}}}
			f[dir+"lit_model.pth"] = torchSaved(t, state)
		}
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s", name, r.Why)
		if !tc.want {
			require.Contains(t, told(r), fmt.Sprintf("got a count of %d steps; want %d", tc.optimizer, tc.steps), name)
		}
	}
}
