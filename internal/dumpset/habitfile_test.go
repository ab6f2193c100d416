// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// gatheredFiles writes dumps as files that hold several of them, or one as a member.
func gatheredFiles(t *testing.T, dumps []*frwrite.Dump) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	var pairs []frwrite.Pair
	var list []any
	var lines []byte
	var single, halves []string
	for r, d := range dumps {
		pairs = append(pairs, frwrite.Pair{Key: r, Value: frwrite.Pickle(d)})
		list = append(list, wrapped(t, r, d))
		lines = append(append(lines, marshal(t, wrapped(t, r, d))...), '\n')
		single = append(single, put(t, filepath.Join(dir, fmt.Sprintf("w%d.json", r)), marshal(t, wrapped(t, r, d))))
	}
	for i, part := range [][]any{list[:len(list)/2], list[len(list)/2:]} {
		halves = append(halves, put(t, filepath.Join(dir, fmt.Sprintf("node%d.json", i)), marshal(t, part)))
	}
	return map[string][]string{
		"a pickle":           {put(t, filepath.Join(dir, "all.pkl"), frwrite.Python(4, pairs))},
		"a list":             {put(t, filepath.Join(dir, "all.json"), marshal(t, list))},
		"lines, gzip":        {put(t, filepath.Join(dir, "all.jsonl.gz"), gzipped(t, lines))},
		"a wrapper per file": single,
		"a file per node":    halves,
	}
}

// A job that runs is known by its history in gathered files, too.
func TestRead_GatheredWithoutTimes_WeighsTheHistory(t *testing.T) {
	j := uneven()["one is late"]
	j.stuckRank = -1
	calls := j.play(1)
	dumps := j.dump(calls, moment(calls, 1))
	want := readLost(t, dumps, true)
	require.NotEmpty(t, want.MayRun)
	for name, paths := range gatheredFiles(t, dumps) {
		now := time.Now()
		for _, p := range paths {
			require.NoError(t, os.Chtimes(p, now, now))
		}
		r := Read(t.Context(), paths, Options{WorldSize: int64(len(dumps)), Hung: true})
		require.Len(t, r.Hangs, 1, name)
		named, candidates := listed(&r.Hangs[0])
		assert.Empty(t, named, name)
		assert.Empty(t, candidates, name)
		assert.Equal(t, want.Verdict, r.Hangs[0].Verdict, name)
		assert.Equal(t, want.MayRun, r.Hangs[0].MayRun, name)
	}
}

// A file of several dumps is read once, whichever ranks are suspects.
func TestHabits_GatheredFile_IsReadOnce(t *testing.T) {
	j := uneven()["one is late"]
	j.stuckRank = -1
	calls := j.play(1)
	dumps := j.dump(calls, moment(calls, 1))
	for name, paths := range gatheredFiles(t, dumps) {
		if name == "a wrapper per file" {
			continue
		}
		r := &run{o: Options{}.withDefaults(), ctx: t.Context(), items: make([]item, len(paths)), out: &Result{}}
		var all []int
		for i := range paths {
			r.items[i].path = paths[i]
			all = append(all, i)
		}
		r.readAll(all, false)
		r.spread()
		var taken []*item
		for i := range r.items {
			taken = append(taken, &r.items[i])
		}
		h := r.habits(taken)
		first := h.of(1, []int64{0, 2, 3})
		require.NotEmpty(t, first.Text, name)
		for _, p := range paths {
			require.NoError(t, os.Remove(p))
		}
		delete(h.known, 1)
		assert.Equal(t, first, h.of(1, []int64{0, 2, 3}), name)
		assert.NotEmpty(t, h.of(2, []int64{0, 1, 3}).Text, name)
	}
}
