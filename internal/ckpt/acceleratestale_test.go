// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"slices"
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
