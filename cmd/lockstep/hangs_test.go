// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// writeDumps writes the dumps of four ranks that have finished nine collectives. Those not
// listed as behind have enqueued a tenth, and wait in it.
func writeDumps(t *testing.T, behind ...int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "llama")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	late := map[int]bool{}
	for _, r := range behind {
		late[r] = true
	}
	for r := range 4 {
		d := &frwrite.Dump{Stacks: true, Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}}}
		last := int64(10)
		if late[r] {
			last = 9
		}
		for seq := int64(1); seq <= last; seq++ {
			e := frwrite.Entry{
				RecordID: seq - 1, Group: "0", Desc: "default_pg", CollectiveSeq: seq, OpID: seq, Name: "nccl:all_reduce",
				Created: 1758580155_000_000_000 + seq*1e9 + int64(r), In: [][]int64{{4}}, Out: [][]int64{{4}},
				InTypes: []string{"Float"}, OutTypes: []string{"Float"}, State: frwrite.Completed, Completed: 1758580155_000_001_000 + seq*1e9,
				Retired: true, TimeoutMS: 600_000, Frames: []frwrite.Frame{{Name: "forward", File: "train.py", Line: seq}},
			}
			if seq == 10 {
				e.State, e.Completed, e.Retired = frwrite.Scheduled, 0, false
			}
			d.Entries = append(d.Entries, e)
		}
		d.Status = []frwrite.Status{{Enqueued: last, Started: -1, Completed: 9}}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)), frwrite.Pickle(d), 0o600))
	}
	return dir
}

func TestAnalyzeDumps(t *testing.T) {
	dir := writeDumps(t, 2)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), []byte("hello"), 0o600))
	status, stdout, stderr := call("analyze", dir)
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, stderr)
	for _, want := range []string{"job llama", "rank 2", "not_scheduled", "all_reduce 10", "default_pg", "Last call of rank 2", "forward (train.py:9)"} {
		assert.Contains(t, stdout, want)
	}

	status, stdout, stderr = call("analyze", writeDumps(t, 0, 1, 2, 3))
	assert.Equal(t, exitNothing, status)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "Nothing hangs.")
}

// Dumps with stacks that are written seconds after their newest operation may be of a job that
// runs: nothing is said to hang.
func TestAnalyzeDumpsThatAreYoung(t *testing.T) {
	dir := writeDumps(t, 2)
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	for _, p := range paths {
		at := time.Unix(1758580155+10+3, 0)
		require.NoError(t, os.Chtimes(p, at, at))
	}
	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, stdout, "Cannot tell whether anything hangs: the dumps were written 3s after")
	_, stdout, _ = call("analyze", "--json", dir)
	assert.Contains(t, stdout, `"may_run"`)
	assert.Contains(t, stdout, `"verdict": "undecided"`)
}

// A person's word that the job hung is believed: of a recorded hang whose files have lost their
// times, and not of recorded jobs that ran.
func TestAnalyzeHung(t *testing.T) {
	lost := func(job string) string {
		dir := filepath.Join(t.TempDir(), job)
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(testdata.Root(t), "testdata", "hangs", job, "dumps"))))
		paths, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, p := range paths {
			now := time.Now()
			require.NoError(t, os.Chtimes(p, now, now))
		}
		return dir
	}
	status, stdout, _ := call("analyze", "--hung", "--world-size", "4", lost("stuck_python"))
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, stdout, "rank 2: desync (not_scheduled): has not entered all_reduce 15 of tensor (2)")
	assert.Contains(t, stdout, "taken from --hung")
	assert.NotContains(t, stdout, "If the job stood still")

	status, stdout, _ = call("analyze", "--world-size", "4", lost("stuck_python"))
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, stdout, "If the job stood still")
	assert.Contains(t, stdout, "(confidence 0.40)")
	assert.Contains(t, stdout, "--hung, where it is known")

	status, stdout, _ = call("analyze", "--hung", "--world-size", "4", lost("exit"))
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, stdout, "candidates are ranks 3, 1 and 2")

	for _, flags := range [][]string{{"analyze"}, {"analyze", "--hung"}} {
		status, stdout, _ = call(append(flags, "--world-size", "4", lost("healthy_uneven"))...)
		assert.Equal(t, exitUnusable, status)
		assert.NotContains(t, stdout, "candidate")
		assert.Contains(t, strings.Join(strings.Fields(stdout), " "), "a job that runs looks like this")
	}
	assert.Contains(t, stdout, "The dumps show no reason for a hang:")
	_, stdout, _ = call("analyze", "--hung", "--json", "--world-size", "4", lost("healthy_json"))
	assert.Contains(t, stdout, `"hung": true`)
	assert.Contains(t, stdout, `"may_run": "all 2 members have entered all_reduce 1389`)
}

func TestAnalyzeDumpsAsJSON(t *testing.T) {
	status, r := analyzeJSON(t, writeDumps(t, 2))
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, r.Problems)
	assert.Equal(t, 4, r.Input.Files)
	require.Len(t, r.Findings, 1)
	assert.Equal(t, model.ClassNotScheduled, r.Findings[0][semconv.FindingClass])
	assert.InDelta(t, 2, r.Findings[0][semconv.FindingRank], 0)

	_, stdout, _ := call("analyze", "--json", writeDumps(t, 2))
	var out struct {
		Verdict string       `json:"verdict"`
		Hangs   []hangOutput `json:"hangs"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	assert.Equal(t, "findings", out.Verdict)
	require.Len(t, out.Hangs, 1)
	h := out.Hangs[0]
	assert.Equal(t, []any{"llama", 4, 4, int64(39)}, []any{h.Job, h.Ranks, h.Files, h.Entries})
	require.Len(t, h.Roots, 1)
	assert.Equal(t, int64(10), h.Roots[0].Op.Seq)
	require.NotEmpty(t, h.Groups)
	assert.Equal(t, int64(9), *h.Groups[0].Enqueued[0])
	assert.Equal(t, int64(10), *h.Groups[0].Enqueued[1])
	assert.Equal(t, []int64{2}, h.Groups[0].Absent)
}

// What lies beside dumps under a name like theirs is a damaged dump, not a stranger.
func TestAnalyzeDamagedDumps(t *testing.T) {
	dir := writeDumps(t, 2)
	path := filepath.Join(dir, "nccl_trace_rank_3")
	require.NoError(t, os.Truncate(path, 0))
	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Problems, 1)
	assert.Equal(t, path, r.Problems[0].File)
	assert.Contains(t, r.Problems[0].What, "dump is empty")
	assert.Equal(t, int64(3), *r.Problems[0].Rank)

	t.Run("all of them", func(t *testing.T) {
		dir := writeDumps(t)
		for r := range 4 {
			require.NoError(t, os.Truncate(filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)), 40))
		}
		status, r := analyzeJSON(t, dir)
		assert.Equal(t, exitUnusable, status)
		assert.NotEmpty(t, r.Problems)
	})
}

func TestAnalyzeDumpsWithAPattern(t *testing.T) {
	dir := writeDumps(t, 2)
	for r := range 4 {
		from := filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r))
		require.NoError(t, os.Rename(from, filepath.Join(dir, "r"+strconv.Itoa(r)+"_of_4")))
	}
	status, r := analyzeJSON(t, "--rank-pattern", `r(\d+)_of`, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	assert.InDelta(t, 2, r.Findings[0][semconv.FindingRank], 0)
}

// Traces and dumps in one call: each is told.
func TestAnalyzeTracesAndDumps(t *testing.T) {
	status, r := analyzeJSON(t, testdata.Recording(t, "slow"), writeDumps(t, 2))
	assert.Equal(t, exitFindings, status)
	kinds := map[any]bool{}
	for _, f := range r.Findings {
		kinds[f[semconv.FindingKind]] = true
	}
	assert.Equal(t, map[any]bool{model.FindingStraggler: true, model.FindingDesync: true}, kinds)
}

// Where nothing can be read, each file is named, and what is wrong with it.
func TestAnalyzeDamagedDumpsAlone(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"nccl_trace_rank_0": "", "nccl_trace_rank_1": "hello", "_dump_2": "\x80\x02}q\x00", "7": "\x80\x02cos\nsystem\n"}
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, stdout, "Cannot tell: no dump could be read.")
	assert.Contains(t, stdout, "absent        unreadable: 0-2, 7\n", "and nobody in between, of whom nothing is known")
	flat := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{"nccl_trace_rank_0: dump is empty", "nccl_trace_rank_1: read dump: offset 0: got no PROTO", "_dump_2: read dump: got a dict without version and entries", "7: read dump: offset"} {
		assert.Contains(t, flat, want)
	}
	_, r := analyzeJSON(t, dir)
	assert.Len(t, r.Problems, 4)

	t.Run("many", func(t *testing.T) {
		dir := t.TempDir()
		for r := range 300 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)), nil, 0o600))
		}
		_, stdout, _ := call("analyze", dir)
		assert.Contains(t, stdout, "- and 280 more\n")
	})
	t.Run("beside traces", func(t *testing.T) {
		_, r := analyzeJSON(t, testdata.Recording(t, "slow"), filepath.Join(dir, "nccl_trace_rank_0"), dir)
		var named []string
		for _, p := range r.Problems {
			named = append(named, filepath.Base(p.File))
		}
		assert.Equal(t, []string{"nccl_trace_rank_0", "nccl_trace_rank_1"}, named)
	})
	t.Run("not what is none", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "events.1700000000.host.0"), []byte("hello"), 0o600))
		status, stdout, stderr := call("analyze", dir)
		assert.Equal(t, exitUnusable, status)
		assert.Empty(t, stdout)
		assert.Contains(t, strings.Join(strings.Fields(stderr), " "), "read directory: got no trace")
	})
}

// Who recorded nothing is not said to be healthy.
func TestAnalyzeDumpsWithoutOperations(t *testing.T) {
	dir := writeDumps(t)
	for r := range 4 {
		d := frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}}, Status: []frwrite.Status{{Enqueued: -1, Started: -1, Completed: -1}}}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)), frwrite.Pickle(&d), 0o600))
	}
	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, stdout, "Cannot tell: the dumps recorded no operation.")

	for enqueued, want := range map[int64]int{9: exitNothing, 10: exitUnusable} {
		for r := range 4 {
			d := frwrite.Dump{Groups: []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1, 2, 3}}}, Status: []frwrite.Status{{Enqueued: enqueued, Started: -1, Completed: 9}}}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "nccl_trace_rank_"+strconv.Itoa(r)), frwrite.Pickle(&d), 0o600))
		}
		status, r := analyzeJSON(t, dir)
		assert.Equal(t, want, status, "%d of 9 completed", enqueued)
		assert.Empty(t, r.Findings)
	}
}

// A directory may be named by a link to it.
func TestAnalyzeALinkToADirectory(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(writeDumps(t, 2), link))
	status, stdout, _ := call("analyze", link)
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, stdout, "rank 2")
}

func TestASizeThatNoJobHas(t *testing.T) {
	dir := writeDumps(t, 2)
	for _, size := range []string{"-1", "131073", "999999999999"} {
		status, stdout, stderr := call("analyze", "--world-size", size, dir)
		assert.Equal(t, exitUnusable, status)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "check --world-size: got "+size+"; want 1 to 131072, or 0")
	}
}
