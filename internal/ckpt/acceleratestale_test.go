// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// filled is a file of safetensors with a tensor of each name, all filled with one byte.
func filled(with byte, tensors ...string) *fstest.MapFile {
	f := weightsOf(`{"format": "pt"}`, tensors...)
	n := len(f.Data) - 4*len(tensors)
	f.Data = append(slices.Clone(f.Data[:n]), slices.Repeat([]byte{with}, 4*len(tensors))...)
	return f
}

// trained is a save of accelerate: the model, and what an optimizer of some steps averages.
type trained struct {
	model     *fstest.MapFile
	steps     int
	averages  int // the seed of what they hold
	scheduler int
}

func trainedStates(t *testing.T, all ...trained) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for i, s := range all {
		dir := fmt.Sprintf("checkpoint_%d", i)
		stateOf(t, f, dir, "", 1, s.steps)
		f[dir+"/model.safetensors"] = s.model
		f[dir+"/optimizer.bin"] = torchTensor(t, "optimizer", table{"state": table{"0": table{"step": s.steps}}, "param_groups": []any{table{"lr": 1}}}, varied(s.averages))
		f[dir+"/scheduler.bin"] = torchSaved(t, table{"last_epoch": s.scheduler})
		if s.scheduler < 0 {
			delete(f, dir+"/scheduler.bin")
		}
	}
	return f
}

// Where no name and no count of batches says a step, an optimizer that is that of an older save beside another model
// is of the older save.
func TestAccelerate_OptimizerOfAnotherModel(t *testing.T) {
	first, second, third := filled(1, "a", "b"), filled(2, "a", "b"), filled(3, "a", "b")
	norm := func(with byte) *fstest.MapFile { return filled(with, "bn.running_mean", "bn.running_var") }
	for name, tc := range map[string]struct {
		saves []trained
		doubt string
	}{
		"both of the save before":              {[]trained{{first, 10, 1, 10}, {second, 10, 1, 10}}, "it is the one of checkpoint_0/optimizer.bin, and the model is another"},
		"both of two saves before":             {[]trained{{first, 10, 1, 10}, {second, 20, 2, 20}, {third, 10, 1, 10}}, "want more than"},
		"both, after one that was saved twice": {[]trained{{first, 10, 1, 10}, {first, 10, 1, 10}, {second, 10, 1, 10}}, "the model is another"},
		"a job without a scheduler":            {[]trained{{first, 10, 1, -1}, {second, 10, 1, -1}}, "the model is another"},
		"all of it saved twice":                {[]trained{{first, 10, 1, 10}, {first, 10, 1, 10}}, ""},
		"a scheduler that counts nothing":      {[]trained{{first, 10, 1, 0}, {second, 10, 2, 0}}, ""},
		"running statistics that went on":      {[]trained{{norm(1), 10, 1, 10}, {norm(2), 10, 1, 10}}, ""},
		"another optimizer of as many steps":   {[]trained{{first, 10, 1, 10}, {second, 10, 2, 10}}, ""},
		"both went on":                         {[]trained{{first, 10, 1, 10}, {second, 20, 2, 20}}, ""},
	} {
		r, ok := safe(t, trainedStates(t, tc.saves...), ckpt.Options{})
		require.Equal(t, tc.doubt == "", ok, "%s: %s\n%s", name, r.Why, told(r))
		require.Contains(t, told(r), tc.doubt, name)
		if tc.doubt != "" {
			require.Contains(t, r.Why, "optimizer.bin, which is tentative", name)
		}
	}
}

// part is one of several models of a job: what its weights are filled with, and the steps of its optimizer and
// scheduler; a scheduler of -1 steps is none.
type part struct {
	weights          byte
	steps, scheduler int
}

// modelsOf are saves of accelerate with several models, each with its optimizer.
func modelsOf(t *testing.T, all ...[]part) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for i, parts := range all {
		dir := fmt.Sprintf("checkpoint_%d/", i)
		stateOf(t, f, strings.TrimSuffix(dir, "/"), "", 1, 1)
		delete(f, dir+"scheduler.bin")
		for n, p := range parts {
			id := ""
			if n > 0 {
				id = fmt.Sprintf("_%d", n)
			}
			f[dir+"model"+id+".safetensors"] = filled(p.weights, "a", "b")
			f[dir+"optimizer"+id+".bin"] = torchTensor(t, "optimizer"+id, table{"state": table{"0": table{"step": p.steps}}, "param_groups": []any{table{"lr": 1}}}, varied(100*n+p.steps))
			if p.scheduler >= 0 {
				f[dir+"scheduler"+id+".bin"] = torchSaved(t, table{"last_epoch": p.scheduler})
			}
		}
	}
	return f
}

// A job that trains several models may pause one of them: its optimizer stays as it was, while the others go on.
func TestAccelerate_PausedOptimizer(t *testing.T) {
	for name, tc := range map[string]struct {
		saves [][]part
		want  bool
	}{
		"the second is frozen":               {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{2, 20, 20}, {1, 10, 10}}}, true},
		"the second, without schedulers":     {[][]part{{{1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {1, 10, -1}}}, true},
		"the first waits, then goes on":      {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{1, 10, 10}, {2, 20, 20}}, {{2, 20, 20}, {2, 20, 20}}}, true},
		"by turns, three of them":            {[][]part{{{1, 10, -1}, {1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {2, 20, -1}, {1, 10, -1}}}, true},
		"one begins after the first save":    {[][]part{{{1, 10, 10}, {1, 0, 0}}, {{2, 20, 20}, {1, 0, 0}}, {{3, 30, 30}, {2, 10, 10}}}, true},
		"both went on":                       {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{2, 20, 20}, {2, 20, 20}}}, true},
		"both of the save before":            {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{2, 10, 10}, {2, 10, 10}}}, false},
		"both of it, without schedulers":     {[][]part{{{1, 10, -1}, {1, 10, -1}}, {{2, 10, -1}, {2, 10, -1}}}, false},
		"both of it, one model went on":      {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{2, 10, 10}, {1, 10, 10}}}, false},
		"both of the first of three":         {[][]part{{{1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {2, 20, -1}}, {{3, 10, -1}, {3, 10, -1}}}, false},
		"both of it, and only one scheduler": {[][]part{{{1, 10, 10}, {1, 10, -1}}, {{2, 10, 10}, {2, 10, -1}}}, false},
		"the second of it, both models went": {[][]part{{{1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {2, 10, -1}}}, false},
		"the same, with schedulers":          {[][]part{{{1, 10, 10}, {1, 10, 10}}, {{2, 20, 20}, {2, 10, 10}}}, false},
		"the second of the first of three":   {[][]part{{{1, 10, -1}, {1, 10, -1}}, {{2, 20, -1}, {2, 20, -1}}, {{3, 30, -1}, {2, 10, -1}}}, false},
	} {
		r, ok := safe(t, modelsOf(t, tc.saves...), ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
	}
}

// Where the names of saves say their steps, a paused optimizer counts fewer, or the same as before.
func TestAccelerate_PausedOptimizerByStep(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []int
		saves [][]part
		want  bool
	}{
		"frozen between two saves":       {[]int{100, 200}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 200, -1}, {2, 150, -1}}}, true},
		"frozen at the first":            {[]int{100, 200}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 200, -1}, {1, 100, -1}}}, true},
		"frozen, with schedulers":        {[]int{100, 200}, [][]part{{{1, 100, 100}, {1, 100, 100}}, {{2, 200, 200}, {1, 100, 100}}}, true},
		"begun later, one save":          {[]int{400}, [][]part{{{1, 400, -1}, {1, 100, -1}}}, true},
		"begun later, three saves":       {[]int{100, 200, 300}, [][]part{{{1, 100, -1}, {1, 20, -1}}, {{2, 200, -1}, {2, 120, -1}}, {{3, 300, -1}, {3, 220, -1}}}, true},
		"one with a scheduler, frozen":   {[]int{100, 200}, [][]part{{{1, 100, 100}, {1, 100, -1}}, {{1, 100, 100}, {2, 200, -1}}}, true},
		"one with a scheduler goes on":   {[]int{100, 200}, [][]part{{{1, 100, 100}, {1, 100, -1}}, {{2, 200, 200}, {1, 100, -1}}}, true},
		"both of the save before":        {[]int{100, 200}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 100, -1}, {1, 100, -1}}}, false},
		"both of it, with schedulers":    {[]int{100, 200}, [][]part{{{1, 100, 100}, {1, 100, 100}}, {{2, 100, 100}, {1, 100, 100}}}, false},
		"one of it, both models went on": {[]int{100, 200}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 200, -1}, {2, 100, -1}}}, false},
		"one went back":                  {[]int{100, 200, 300}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 200, -1}, {2, 200, -1}}, {{3, 300, -1}, {2, 100, -1}}}, false},
		"one of a later save":            {[]int{100, 200}, [][]part{{{1, 100, -1}, {1, 100, -1}}, {{2, 200, -1}, {2, 300, -1}}}, false},
	} {
		f := fstest.MapFS{}
		for file, content := range modelsOf(t, tc.saves...) {
			for i, step := range tc.steps {
				if rest, ok := strings.CutPrefix(file, fmt.Sprintf("checkpoint_%d/", i)); ok {
					f[fmt.Sprintf("checkpoint-%d/%s", step, rest)] = content
				}
			}
		}
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.want, ok, "%s: %s\n%s", name, r.Why, told(r))
	}
}
