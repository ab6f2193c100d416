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

// An optimizer of FSDP, in a folder, goes on with its scheduler as well.
func TestAccelerate_CountsInShards(t *testing.T) {
	type save struct {
		name      string
		shards    []int
		scheduler int
	}
	const zero, one, two = "checkpoint_0", "checkpoint_1", "checkpoint_2"
	for name, tc := range map[string]struct {
		saves []save
		doubt []string
	}{
		"each step":          {[]save{{zero, []int{100, 100}, 200}, {one, []int{200, 200}, 400}}, nil},
		"the only save":      {[]save{{one, []int{200, 200}, 400}}, nil},
		"saved twice":        {[]save{{zero, []int{100, 100}, 200}, {one, []int{100, 100}, 200}}, nil},
		"steps skipped":      {[]save{{zero, []int{97, 97}, 200}, {one, []int{196, 196}, 400}}, nil},
		"the save before":    {[]save{{zero, []int{100, 100}, 200}, {one, []int{100, 100}, 400}}, []string{"rank 0 in optimizer_0", "rank 1 in optimizer_0"}},
		"a shard of it":      {[]save{{zero, []int{100, 100}, 200}, {one, []int{200, 100}, 400}}, []string{"rank 1 in optimizer_0"}},
		"the first of three": {[]save{{zero, []int{10, 10}, 20}, {one, []int{20, 20}, 40}, {two, []int{10, 20}, 60}}, []string{"rank 0 in optimizer_0", "rank 1 in optimizer_0"}},
		"the scheduler":      {[]save{{zero, []int{100, 100}, 200}, {one, []int{200, 200}, 200}}, []string{"scheduler.bin"}},
		"by the step":        {[]save{{"checkpoint-50", []int{50, 50}, -1}, {"checkpoint-99", []int{50, 50}, -1}}, []string{"rank 0 in optimizer_0", "rank 1 in optimizer_0"}},
	} {
		f := fstest.MapFS{}
		for _, s := range tc.saves {
			dir := s.name + "/"
			stateOf(t, f, s.name, "", 2, 1)
			delete(f, dir+"optimizer.bin")
			f[dir+"scheduler.bin"] = torchSaved(t, table{"last_epoch": s.scheduler})
			if s.scheduler < 0 {
				delete(f, dir+"scheduler.bin")
			}
			dcpOf(t, f, dir+"pytorch_model_fsdp_0/", []numbered{{"model.a", 1}}, []numbered{{"model.b", 1}})
			var ranks [][]numbered
			for _, n := range s.shards {
				ranks = append(ranks, []numbered{{"optimizer.state." + string(rune('a'+len(ranks))) + ".step", n}})
			}
			dcpOf(t, f, dir+"optimizer_0/", ranks...)
		}
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.doubt == nil, ok, "%s: %s %s", name, r.Why, told(r))
		var doubted []string
		for _, m := range r.Judged.Judgement.Missing {
			doubted = append(doubted, m.Domain.ID)
		}
		require.Equal(t, tc.doubt, doubted, name)
	}
}

// Where neither goes on, although the save is of a later step, both are of the save before.
func TestAccelerate_BothStay(t *testing.T) {
	const zero, one, two = "checkpoint_0", "checkpoint_1", "checkpoint_2"
	batches := func(of map[string]int, more ...string) func(fstest.MapFS) {
		return func(f fstest.MapFS) {
			for dir, n := range of {
				f[dir+"/random_states_0.pkl"] = torchSaved(t, table{"step": n, "random_state": []any{3}})
				for _, name := range more {
					f[dir+"/"+name] = torchSaved(t, table{"scale": 65536})
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		saves  []counts
		change func(fstest.MapFS)
		doubt  bool
	}{
		"names of steps":                    {[]counts{{"checkpoint-100", 100, 100}, {"checkpoint-200", 100, 100}}, nil, true},
		"names of steps, with accumulation": {[]counts{{"checkpoint-400", 25, 25}, {"checkpoint-800", 25, 25}}, nil, true},
		"a scheduler of each process":       {[]counts{{"checkpoint-100", 100, 200}, {"checkpoint-150", 100, 200}}, nil, true},
		"the first of three":                {[]counts{{zero, 10, 10}, {one, 20, 20}, {two, 10, 10}}, nil, true},
		"batches":                           {[]counts{{zero, 100, 100}, {one, 100, 100}}, batches(map[string]int{zero: 100, one: 200}), true},
		"batches of a new pass":             {[]counts{{zero, 50, 50}, {one, 50, 50}}, batches(map[string]int{zero: 200, one: 40}), true},

		"one step later":               {[]counts{{"checkpoint-100", 100, 100}, {"checkpoint-101", 100, 100}}, nil, false},
		"less than a step":             {[]counts{{"checkpoint-100", 2, 2}, {"checkpoint-120", 2, 2}}, nil, false},
		"in no save":                   {[]counts{{"checkpoint-100", 70, 70}, {"checkpoint-200", 70, 70}, {"checkpoint-300", 70, 70}}, nil, false},
		"an interrupted accumulation":  {[]counts{{zero, 10, 10}, {one, 10, 10}}, batches(map[string]int{zero: 80, one: 84}), false},
		"at the end of a pass":         {[]counts{{zero, 100, 100}, {one, 100, 100}}, batches(map[string]int{zero: 0, one: 0}), false},
		"steps that a scaler may skip": {[]counts{{zero, 1, 1}, {one, 1, 1}}, batches(map[string]int{zero: 1, one: 9}, "scaler.pt"), false},
	} {
		f := countedStates(t, 1, tc.saves)
		if tc.change != nil {
			tc.change(f)
		}
		r, ok := safe(t, f, ckpt.Options{})
		require.Equal(t, tc.doubt, !ok, "%s: %s %s", name, r.Why, told(r))
		if tc.doubt {
			require.Contains(t, told(r), "it is of another save", name)
			require.Len(t, r.Judged.Judgement.Missing, 2, name)
		}
	}
}
