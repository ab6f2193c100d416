// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
)

// counts are what the optimizer and the scheduler of a save count; -1 for a part that the job lacks.
type counts struct {
	name                 string
	optimizer, scheduler int
}

func countedStates(t *testing.T, ranks int, all []counts) fstest.MapFS {
	t.Helper()
	f := fstest.MapFS{}
	for _, c := range all {
		stateOf(t, f, c.name, "model.safetensors", ranks, 1)
		f[c.name+"/optimizer.bin"] = optimizerAt(t, c.optimizer)
		f[c.name+"/scheduler.bin"] = torchSaved(t, table{"last_epoch": c.scheduler})
		if c.scheduler < 0 {
			delete(f, c.name+"/scheduler.bin")
		}
	}
	return f
}

// An optimizer and its scheduler go on together. Where one of them stays, it is of the save before.
func TestAccelerate_Counts(t *testing.T) {
	const zero, one, two = "checkpoint_0", "checkpoint_1", "checkpoint_2"
	for name, tc := range map[string]struct {
		ranks int
		saves []counts
		doubt string // the file in doubt of the newest save; "" for none
	}{
		"each step":                          {1, []counts{{zero, 2, 2}, {one, 4, 4}}, ""},
		"once a process":                     {2, []counts{{zero, 2, 4}, {one, 4, 8}}, ""},
		"a scheduler by epochs":              {1, []counts{{zero, 100, 0}, {one, 200, 0}, {two, 300, 1}}, ""},
		"by epochs, once a process":          {4, []counts{{zero, 100, 4}, {one, 150, 4}, {two, 199, 4}}, ""},
		"before and after a scheduler":       {2, []counts{{zero, 100, 2}, {one, 100, 4}}, ""},
		"saved twice at one step":            {1, []counts{{zero, 100, 100}, {one, 100, 100}}, ""},
		"a scheduler that counts nothing":    {1, []counts{{zero, 100, 70}, {one, 200, 70}, {two, 300, 70}}, ""},
		"one save":                           {1, []counts{{zero, 2, 4}}, ""},
		"no scheduler":                       {1, []counts{{zero, 2, -1}, {one, 4, -1}}, ""},
		"some steps skipped":                 {1, []counts{{zero, 96, 100}, {one, 190, 200}}, ""},
		"by the step, gradients accumulated": {1, []counts{{"checkpoint-100", 25, 25}, {"checkpoint-200", 50, 50}}, ""},

		"the optimizer of the save before":       {1, []counts{{zero, 2, 2}, {one, 2, 4}}, "optimizer.bin"},
		"the same of two processes":              {2, []counts{{zero, 2, 4}, {one, 2, 8}}, "optimizer.bin"},
		"the scheduler of the save before":       {1, []counts{{zero, 2, 2}, {one, 4, 2}}, "scheduler.bin"},
		"the scheduler of two processes":         {2, []counts{{zero, 2, 4}, {one, 4, 4}}, "scheduler.bin"},
		"the optimizer of the first of three":    {1, []counts{{zero, 10, 10}, {one, 20, 20}, {two, 10, 30}}, "optimizer.bin"},
		"the scheduler of the first of three":    {1, []counts{{zero, 10, 10}, {one, 20, 20}, {two, 30, 10}}, "scheduler.bin"},
		"an optimizer started anew":              {1, []counts{{zero, 10, 10}, {one, 3, 20}}, "optimizer.bin"},
		"a scheduler started anew":               {1, []counts{{zero, 10, 10}, {one, 20, 3}}, "scheduler.bin"},
		"the optimizer, by the step":             {1, []counts{{"checkpoint-2", 2, 2}, {"checkpoint-4", 2, 4}}, "optimizer.bin"},
		"the scheduler, by the step":             {2, []counts{{"checkpoint-2", 2, 4}, {"checkpoint-4", 4, 4}}, "scheduler.bin"},
		"the optimizer without one, by the step": {1, []counts{{"checkpoint-2", 2, -1}, {"checkpoint-4", 2, -1}}, "optimizer.bin"},
		"gradients accumulated, and stale":       {1, []counts{{zero, 25, 25}, {one, 25, 50}}, "optimizer.bin"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ok := safe(t, countedStates(t, tc.ranks, tc.saves), ckpt.Options{})
			require.Equal(t, ckpt.FormatAccelerate, r.Saves[0].Format)
			if tc.doubt == "" {
				require.True(t, ok, "%s %+v", r.Why, r.Saves)
				return
			}
			require.False(t, ok)
			require.Contains(t, r.Why, tc.doubt+", which is tentative")
			require.Equal(t, ckpt.CheckWitness, r.Judged.Problems[0].Check)
			require.Contains(t, r.Judged.Problems[0].What, "it is of another save, or was started anew")
			require.Len(t, r.Judged.Problems, 1)
			require.True(t, r.Frontier.OK, "the saves before are whole")
		})
	}
}

// The part of a later save in an older one leaves the later one whole.
func TestAccelerate_CountsOfALaterSave(t *testing.T) {
	for name, saves := range map[string][]counts{
		"the optimizer": {{"checkpoint_0", 4, 2}, {"checkpoint_1", 4, 4}},
		"the scheduler": {{"checkpoint_0", 2, 4}, {"checkpoint_1", 4, 4}},
	} {
		r, ok := safe(t, countedStates(t, 1, saves), ckpt.Options{})
		require.True(t, ok, "%s: %s", name, r.Why)
	}
}
