// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// from puts files of an older save in the place of those of the newest: all that begin so.
func from(older, newest string, prefixes ...string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		found := false
		for name, file := range f {
			for _, p := range prefixes {
				if rest, ok := strings.CutPrefix(name, older+p); ok {
					f[newest+p+rest] = file
					found = true
				}
			}
		}
		if !found {
			panic("no such file: " + older)
		}
	}
}

// All shards of an older save agree with each other, and not with the pace of the saves.
func TestShards_AllOfTheSaveBefore(t *testing.T) {
	const other = "it is of another save"
	changes(t, verlFSDP, ckpt.FormatVerl, 200, map[string]change{
		"optimizers":             {do: from("global_step_100/", "global_step_200/", "actor/optim", "critic/optim"), epoch: 200, newest: at(100), text: "got a count of 300 steps"},
		"those of the critic":    {do: from("global_step_100/", "global_step_200/", "critic/optim"), epoch: 200, newest: at(100), text: "optimizer critic rank 0, which is tentative"},
		"schedulers":             {do: from("global_step_100/", "global_step_200/", "actor/extra_state"), epoch: 200, newest: at(100), text: other},
		"the critic warms up":    {do: func(f fstest.MapFS) { verlOptimizers(t, f, "actor", map[int]int{100: 80, 200: 180}) }, want: true, epoch: 200, newest: at(200)},
		"the actor never began":  {do: func(f fstest.MapFS) { verlOptimizers(t, f, "actor", map[int]int{100: 0, 200: 0}) }, want: true, epoch: 200, newest: at(200)},
		"steps are skipped":      {do: func(f fstest.MapFS) { verlOptimizers(t, f, "actor", map[int]int{100: 300, 200: 420}) }, want: true, epoch: 200, newest: at(200)},
		"only the critic began":  {do: func(f fstest.MapFS) { verlOptimizers(t, f, "actor", map[int]int{100: 0, 200: 60}) }, want: true, epoch: 200, newest: at(200)},
		"the only save is whole": {do: without("global_step_100/"), want: true, epoch: 200, newest: at(200)},
		"more ranks since": {do: func(f fstest.MapFS) {
			without("global_step_200/actor/")(f)
			verlRole(t, f, "global_step_200/actor", 4, 200)
		}, want: true, epoch: 200, newest: at(200)},
	})
	nanotron := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := fstest.MapFS{"latest.txt": document("200")}
		nanotronSave(t, f, 2, 100)
		nanotronSave(t, f, 2, 200)
		return f
	}
	changes(t, nanotron, ckpt.FormatNanotron, 200, map[string]change{
		"both":       {do: from("100/", "200/", "optimizer/", "lr_scheduler/"), epoch: 200, newest: at(100), text: "got a count of 100 steps"},
		"optimizers": {do: from("100/", "200/", "optimizer/"), epoch: 200, newest: at(100), text: other},
		"schedulers": {do: from("100/", "200/", "lr_scheduler/"), epoch: 200, newest: at(100), text: other},
		"schedulers by epochs": {do: func(f fstest.MapFS) {
			for name := range f {
				if strings.Contains(name, "lr_scheduler/") {
					f[name] = torchSaved(t, table{"last_epoch": 1})
				}
			}
		}, want: true, epoch: 200, newest: at(200)},
	})
	litgpt := func(t *testing.T) fstest.MapFS {
		t.Helper()
		f := litgptSaves(false)(t)
		litgptCounts(t, f, 1000, 2000)
		return f
	}
	changes(t, litgpt, ckpt.FormatLitGPT, 2000, map[string]change{
		"the optimizer":        {do: func(f fstest.MapFS) { litgptCounts(t, f, 1000, 1000) }, epoch: 2000, newest: at(1000), text: "got a count of 1000 steps"},
		"begun without one":    {do: func(f fstest.MapFS) { litgptCounts(t, f, 500, 1500) }, want: true, epoch: 2000, newest: at(2000)},
		"gradients gathered":   {do: func(f fstest.MapFS) { litgptCounts(t, f, 250, 500) }, want: true, epoch: 2000, newest: at(2000)},
		"the only one skipped": {do: func(f fstest.MapFS) { litgptCounts(t, f, 1000, 1900); without("step-00001000/")(f) }, want: true, epoch: 2000, newest: at(2000)},
	})
}

// verlOptimizers lets the optimizers of a role count so many steps, by the steps of the saves.
func verlOptimizers(t *testing.T, f fstest.MapFS, role string, counts map[int]int) {
	t.Helper()
	for step, n := range counts {
		for r := range 3 {
			f[fmt.Sprintf("global_step_%d/%s/optim_world_size_3_rank_%d.pt", step, role, r)] = optimizerAt(t, n)
		}
	}
}

// litgptCounts lets the optimizers of two saves count so many steps.
func litgptCounts(t *testing.T, f fstest.MapFS, first, second int) {
	t.Helper()
	for step, n := range map[int]int{1000: first, 2000: second} {
		f[fmt.Sprintf("step-%08d/lit_model.pth", step)] = torchSaved(t, table{
			"step_count": step, "model": table{"step": 7}, "optimizer": table{"state": table{"w": table{"step": n}}},
		})
	}
}
