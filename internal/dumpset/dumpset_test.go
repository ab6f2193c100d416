// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// world is a job of n ranks in one group, all in all_reduce 10 but for rank 2, which came
// to 9 only. at shifts its clock, s.
func world(n int, at int64) []*frwrite.Dump {
	ranks := make([]int64, n)
	for i := range ranks {
		ranks[i] = int64(i)
	}
	var out []*frwrite.Dump
	for r := range n {
		d := &frwrite.Dump{LibVersion: "2.27.3", Stacks: true, Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: ranks}}}
		last := int64(10)
		if r == 2 {
			last = 9
		}
		for seq := int64(1); seq <= last; seq++ {
			e := frwrite.Entry{
				RecordID: seq - 1, Group: "0", Desc: "default_pg", CollectiveSeq: seq, OpID: seq, Name: "nccl:all_reduce",
				Created: 1758580155_000_000_000 + (at+seq)*1e9 + int64(r), In: [][]int64{{4}}, Out: [][]int64{{4}},
				InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Scheduled, TimeoutMS: 600_000,
				Frames: []frwrite.Frame{{Name: "step_of_" + strconv.Itoa(r), File: "/job/train.py", Line: seq}},
			}
			if seq <= 9 {
				e.State, e.Completed, e.Retired = frwrite.Completed, e.Created+1000, true
			}
			d.Entries = append(d.Entries, e)
		}
		d.Status = []frwrite.Status{{PGID: 0, Enqueued: last, Started: -1, Completed: 9}}
		out = append(out, d)
	}
	return out
}

// write puts dumps into a folder and returns their paths.
func write(t *testing.T, dir, prefix string, dumps []*frwrite.Dump) (paths []string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for r, d := range dumps {
		if d != nil {
			paths = append(paths, put(t, filepath.Join(dir, prefix+strconv.Itoa(r)), frwrite.Pickle(d)))
		}
	}
	return paths
}

func put(t *testing.T, path string, data []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func problemsOf(r *Result) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, filepath.Base(p.File)+": "+p.What)
	}
	return strings.Join(all, "\n")
}

// namesRank2 checks that rank 2 is told of, and nobody else.
func namesRank2(t *testing.T, h *Hang) {
	t.Helper()
	assert.Equal(t, desync.Hang, h.Verdict)
	require.Len(t, h.Roots, 1)
	f := &h.Roots[0].Finding
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.Some[int64](2), f.Rank)
}

func TestOneRankStaysBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "llama")
	r := Read(t.Context(), write(t, dir, "rank_", world(8, 0)), Options{})
	require.Empty(t, r.Problems)
	require.Len(t, r.Hangs, 1)
	h := &r.Hangs[0]
	namesRank2(t, h)
	assert.Equal(t, "llama", h.Job.ID)
	assert.Equal(t, 8, h.Files)
	assert.Equal(t, int64(79), h.Entries)
	assert.Equal(t, []string{"2.10"}, h.Versions)
	assert.Equal(t, []string{"2.27.3"}, h.Libs)
	// Its call stack is that of the last operation that it came to.
	assert.Equal(t, "step_of_2 (/job/train.py:9)", h.Roots[0].Finding.Stack)
}

// Dumps of one job may lie in a folder for each node.
func TestFoldersOfNodes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "llama")
	dumps := world(4, 0)
	var paths []string
	for r, d := range dumps {
		node := filepath.Join(dir, "node"+strconv.Itoa(r/2))
		require.NoError(t, os.MkdirAll(node, 0o700))
		paths = append(paths, put(t, filepath.Join(node, "rank_"+strconv.Itoa(r)), frwrite.Pickle(d)))
	}
	r := Read(t.Context(), paths, Options{})
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, "llama", r.Hangs[0].Job.ID)
	namesRank2(t, &r.Hangs[0])
}

// Two jobs in one folder, under different names, and in two folders, under the same.
func TestTwoJobs(t *testing.T) {
	healthy := world(4, 5)
	for _, d := range healthy {
		d.Entries, d.Status = d.Entries[:9], []frwrite.Status{{PGID: 0, Enqueued: 9, Started: -1, Completed: 9}}
	}
	check := func(t *testing.T, r *Result, first, second string) {
		t.Helper()
		require.Len(t, r.Hangs, 2)
		assert.Equal(t, []string{first, second}, []string{r.Hangs[0].Job.ID, r.Hangs[1].Job.ID})
		namesRank2(t, &r.Hangs[0])
		assert.Equal(t, desync.Healthy, r.Hangs[1].Verdict)
	}
	t.Run("in one folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "dumps")
		paths := append(write(t, dir, "a_rank_", world(4, 0)), write(t, dir, "b_rank_", healthy)...)
		check(t, Read(t.Context(), paths, Options{}), "dumps/a_rank", "dumps/b_rank")
	})
	t.Run("in two folders", func(t *testing.T) {
		dir := t.TempDir()
		paths := append(write(t, filepath.Join(dir, "a"), "rank_", world(4, 0)), write(t, filepath.Join(dir, "b"), "rank_", healthy)...)
		check(t, Read(t.Context(), paths, Options{}), "a", "b")
	})
	for name, dirs := range map[string][2]string{"of one name": {"a", "b"}, "of one name, deeper": {"x/a/run", "x/b/run"}, "at two depths": {"a", "x/b"}} {
		t.Run("in two folders "+name, func(t *testing.T) {
			dir := t.TempDir()
			paths := append(write(t, filepath.Join(dir, dirs[0], "dumps"), "rank_", world(4, 0)), write(t, filepath.Join(dir, dirs[1], "dumps"), "rank_", healthy)...)
			first, second := strings.TrimPrefix(dirs[0], "x/")+"/dumps", strings.TrimPrefix(dirs[1], "x/")+"/dumps"
			check(t, Read(t.Context(), paths, Options{}), first, second)
		})
	}
}

// Of another world than that of most: left out, and said to be.
func TestAStrangersDump(t *testing.T) {
	dumps := world(4, 0)
	dumps[1] = world(8, 0)[1]
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Contains(t, problemsOf(r), "rank_1: find job of dump: got a world of other ranks than in 3 of 4 dumps; the dump is left out")
	assert.Equal(t, 1, r.Stats.Refused)
	assert.Equal(t, model.AbsentRefused, r.Hangs[0].Absent[0].Reason)
}

// One of an earlier incident: left out.
func TestStaleDump(t *testing.T) {
	dumps := world(4, 0)
	dumps[1] = world(4, -7200)[1]
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Contains(t, problemsOf(r), "rank_1: find incident of dump: got one written at least 1h59m59s before operations of the others; the dump is left out")
	assert.Equal(t, []model.Absence{{Rank: 1, Reason: model.AbsentStale, Detail: r.Hangs[0].Absent[0].Detail}}, r.Hangs[0].Absent)
}

func TestTwinsWithOneJobsName(t *testing.T) {
	dir := t.TempDir()
	paths := append(write(t, dir, "a_", world(4, 0)), write(t, dir, "b_", world(4, 5)[:2])...)
	r := Read(t.Context(), paths, Options{Job: "llama"})
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, 4, r.Stats.Refused, "neither of two is believed")
	assert.Contains(t, problemsOf(r), "tell dumps of rank 0 apart")
	for _, root := range r.Hangs[0].Roots {
		assert.NotContains(t, root.Finding.Ranks, int64(0))
	}
}

// The same dump twice is no contradiction.
func TestCopies(t *testing.T) {
	dir := t.TempDir()
	dumps := world(4, 0)
	paths := append(write(t, dir, "a_", dumps), write(t, dir, "b_", dumps)...)
	r := Read(t.Context(), paths, Options{Job: "llama"})
	assert.Zero(t, r.Stats.Refused, problemsOf(r))
	assert.Equal(t, 4, r.Stats.Copies)
	assert.Contains(t, problemsOf(r), "b_3: has the same content as "+paths[3]+"; the copy is left out")
	namesRank2(t, &r.Hangs[0])
	assert.Equal(t, 4, r.Hangs[0].Files)
}

func TestDamagedDumps(t *testing.T) {
	dir := t.TempDir()
	dumps := world(6, 0)
	paths := write(t, dir, "rank_", dumps)
	put(t, paths[0], nil)
	put(t, paths[1], frwrite.Torn(frwrite.Pickle(dumps[1]), 0.9))
	put(t, paths[3], []byte("hello"))
	r := Read(t.Context(), append(paths, filepath.Join(dir, "rank_7")), Options{})
	require.Len(t, r.Hangs, 1)
	text := problemsOf(r)
	assert.Contains(t, text, "rank_0: dump is empty; the dump is left out")
	assert.Contains(t, text, "rank_1: read as far as it goes: cut off")
	assert.Contains(t, text, "rank_3: read dump: offset 0: got no PROTO")
	assert.Contains(t, text, "rank_7: read dump: no such file")
	assert.Equal(t, Stats{Files: 7, Unreadable: 3, Partial: 1, Bytes: r.Stats.Bytes, Entries: r.Stats.Entries}, r.Stats)
	h := &r.Hangs[0]
	assert.Equal(t, 1, h.Partial)
	reasons := map[int64]model.AbsenceReason{}
	for _, a := range h.Absent {
		reasons[a.Rank] = a.Reason
	}
	assert.Equal(t, model.AbsentUnreadable, reasons[0])
	assert.Equal(t, model.AbsentUnreadable, reasons[3])
	for i := range h.Roots {
		if rank := h.Roots[i].Finding.Rank; rank.OK {
			assert.Equal(t, int64(2), rank.V, "nobody is accused whose dump is damaged")
		}
	}
}

// Who has no dump is named.
func TestMissingDump(t *testing.T) {
	dumps := world(4, 0)
	dumps[3] = nil
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	require.Len(t, r.Hangs[0].Absent, 1)
	assert.Equal(t, int64(3), r.Hangs[0].Absent[0].Rank)
	assert.Equal(t, model.AbsentMissing, r.Hangs[0].Absent[0].Reason)
}

// Without members the ranks in between are missed, and those that --world-size says.
func TestWorldWithoutMembers(t *testing.T) {
	dumps := world(4, 0)
	for _, d := range dumps {
		d.Groups = nil
	}
	dumps[1] = nil
	paths := write(t, t.TempDir(), "rank_", dumps)
	absent := func(o Options) (out []int64) {
		for _, a := range Read(t.Context(), paths, o).Hangs[0].Absent {
			out = append(out, a.Rank)
		}
		return out
	}
	assert.Equal(t, []int64{1}, absent(Options{}))
	assert.Equal(t, []int64{1, 4, 5}, absent(Options{WorldSize: 6}))
}

// A process has only groups of which it is a member.
func TestRankOfContent(t *testing.T) {
	dumps := world(4, 0)
	for r, d := range dumps { // a group of its own tells which rank it is
		d.Groups = append(d.Groups, frwrite.Group{Name: strconv.Itoa(90 + r), Desc: "own", Ranks: []int64{int64(r)}})
	}
	dir := t.TempDir()
	paths := write(t, dir, "rank_", dumps)
	require.NoError(t, os.Rename(paths[1], filepath.Join(dir, "one"))) // says no rank
	require.NoError(t, os.Rename(paths[3], filepath.Join(dir, "rank_9")))
	r := Read(t.Context(), []string{paths[0], filepath.Join(dir, "one"), paths[2], filepath.Join(dir, "rank_9")}, Options{})
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, 4, r.Hangs[0].Ranks)
	assert.Contains(t, problemsOf(r), "rank_9: take it for the dump of rank 3: its name says 9")
	namesRank2(t, &r.Hangs[0])

	t.Run("that does not tell", func(t *testing.T) {
		dir := t.TempDir()
		path := put(t, filepath.Join(dir, "rank_9"), frwrite.Pickle(world(4, 0)[0]))
		other := put(t, filepath.Join(dir, "dump"), frwrite.Pickle(world(4, 0)[1]))
		r := Read(t.Context(), []string{path, other}, Options{})
		assert.Contains(t, problemsOf(r), `find rank of dump: its name says 9, which is no member of its process group "0"; the dump is left out`)
		assert.Contains(t, problemsOf(r), "find rank of dump: got no rank in it, and no number at the end of its name")
	})
}

func TestVersionsMix(t *testing.T) {
	dumps := world(4, 0)
	dumps[1].Version = "2.4"
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	namesRank2(t, &r.Hangs[0])
	assert.Equal(t, []string{"2.10", "2.4"}, r.Hangs[0].Versions)
	assert.Contains(t, r.Hangs[0].Problems, "the dumps are of 2 versions: [2.10 2.4]")
}

// What is kept of a dump is a few kilobytes, whatever it was.
func TestMemory(t *testing.T) {
	paths := write(t, t.TempDir(), "rank_", world(64, 0))
	items := make([]item, len(paths))
	o := Options{}.withDefaults()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range items {
		items[i].path = paths[i]
		items[i].rank, items[i].prefix, items[i].named = o.RankOf(paths[i])
		items[i].read(&o, nil, false)
		require.NoError(t, items[i].err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(len(items)*16<<10))
	runtime.KeepAlive(items)
}

// A real dump of another incident of the same job, which tells no time as nothing is open in it,
// is left out; nobody is accused for it.
func TestARealDumpOfAnotherIncident(t *testing.T) {
	shared := testdata.Shared(t, "flight-recorder")
	for _, foreign := range []int64{9, 14} {
		dir := t.TempDir()
		for rank := range int64(16) {
			incident := "gpu_error_2nd"
			if rank == foreign {
				incident = "lock_gil_1st"
			}
			name := "_dump_" + strconv.FormatInt(rank, 10)
			b, err := os.ReadFile(filepath.Join(shared, incident, name))
			require.NoError(t, err)
			put(t, filepath.Join(dir, name), b)
		}
		paths, err := filepath.Glob(filepath.Join(dir, "_dump_*"))
		require.NoError(t, err)
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 1)
		require.Len(t, r.Hangs[0].Absent, 1)
		assert.Equal(t, foreign, r.Hangs[0].Absent[0].Rank)
		assert.Equal(t, model.AbsentStale, r.Hangs[0].Absent[0].Reason)
		require.Len(t, r.Hangs[0].Problems, 1)
		assert.Contains(t, r.Hangs[0].Problems[0], "which tells no time, is of another time or another job")
		for _, root := range r.Hangs[0].Roots {
			assert.Subset(t, []int64{9 + 14 - foreign}, root.Finding.Ranks)
			assert.NotEqual(t, model.ClassStalledOp, root.Finding.Class)
		}
		assert.Equal(t, []int64{9 + 14 - foreign}, r.Hangs[0].Roots[0].Finding.Ranks)
	}
}

// Few dumps of one incident beside those of another that tell no time: nobody is accused for it.
func TestFewRealDumpsOfTwoIncidents(t *testing.T) {
	shared := testdata.Shared(t, "flight-recorder")
	for _, of := range [][2][]int{{{0, 1, 2, 3, 4, 5, 6, 7, 11}, {9, 14}}, {{4, 5, 11}, {14}}, {{0, 2, 3, 5, 6, 8, 10, 12}, {9, 14}}} {
		dir := t.TempDir()
		var paths []string
		for i, incident := range []string{"gpu_error_2nd", "lock_gil_1st"} {
			for _, rank := range of[i] {
				name := "_dump_" + strconv.Itoa(rank)
				b, err := os.ReadFile(filepath.Join(shared, incident, name))
				require.NoError(t, err)
				paths = append(paths, put(t, filepath.Join(dir, name), b))
			}
		}
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 1)
		for _, root := range r.Hangs[0].Roots {
			for _, rank := range root.Finding.Ranks {
				assert.Contains(t, []int64{9, 14}, rank, "%v: %s", of, root.Finding.Class)
			}
		}
	}
}

// The real dumps, whose faults are in the logs beside them: in both, ranks 9 and 14.
func TestRealHangs(t *testing.T) {
	for incident, class := range map[string]string{"gpu_error_2nd": model.ClassCompletionLag, "lock_gil_1st": model.ClassNotScheduled} {
		t.Run(incident, func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join(testdata.Shared(t, "flight-recorder"), incident, "_dump_*"))
			require.NoError(t, err)
			r := Read(t.Context(), paths, Options{})
			assert.Empty(t, r.Problems)
			require.Len(t, r.Hangs, 1)
			var named []int64
			for _, root := range r.Hangs[0].Roots {
				assert.Equal(t, class, root.Finding.Class)
				named = append(named, root.Finding.Ranks...)
			}
			assert.Equal(t, []int64{9, 14}, named)
		})
	}
}
