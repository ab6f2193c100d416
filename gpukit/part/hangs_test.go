// SPDX-License-Identifier: Apache-2.0

package part

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// dumpJob is a rank that did two operations and is in a third, and the entries of its
// dump.
func dumpJob() (*dumpTruth, []map[string]any) {
	op := func(name, dtype string, count, at int64) dumpOp {
		return dumpOp{Name: name, DType: dtype, In: [][]int64{{count}}, Before: at, After: at + 5_000_000}
	}
	doomed := op("all_reduce", "Float", 7777, 1_030_000_000)
	t := &dumpTruth{
		Rank: 1, World: 2, Backend: "nccl", NCCL: "2.28.9", Missing: 0, Doomed: &doomed, Dumped: 9_000_000_000,
		Ops: []dumpOp{op("all_reduce", "Float", 1024, 1_000_000_000), op("all_gather", "Long", 64, 1_010_000_000)},
	}
	entry := func(id int, name string, o *dumpOp, state string) map[string]any {
		e := map[string]any{
			"record_id": id, "pg_id": 0, "process_group": []string{"0", "default_pg"}, "collective_seq_id": id + 1, "p2p_seq_id": 0, "op_id": id + 1,
			"profiling_name": name, "time_created_ns": o.Before + 1_000_000, "input_sizes": o.In, "input_dtypes": []string{o.DType}, "output_sizes": o.In,
			"output_dtypes": []string{o.DType}, "state": state, "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0, "retired": state == "completed",
			"timeout_ms": 5000, "is_p2p": false,
		}
		if state == "completed" {
			e["duration_ms"] = 2.5
			e["time_discovered_completed_ns"] = o.After
		}
		return e
	}
	return t, []map[string]any{
		entry(0, "nccl:all_reduce", &t.Ops[0], "completed"),
		entry(1, "nccl:_all_gather_base", &t.Ops[1], "completed"),
		entry(2, "nccl:all_reduce", &doomed, "started"),
	}
}

func decodeDump(t *testing.T, version, lib string, entries []map[string]any) *flightrecorder.Dump {
	t.Helper()
	text, err := json.Marshal(map[string]any{"version": version, "comm_lib_version": lib, "entries": entries})
	require.NoError(t, err)
	d, err := flightrecorder.Decode(text, flightrecorder.DefaultOptions())
	require.NoError(t, err)
	return d
}

func TestCompareDump_RightDump_NoProblem(t *testing.T) {
	truth, entries := dumpJob()
	seen, problems := compareDump(decodeDump(t, "2.10", "2.28.9", entries), truth, true)
	assert.Empty(t, problems)
	assert.Equal(t, dumpSeen{Completed: 2, Started: 1, Timed: 2}, seen)
}

func TestCompareDump_WrongDump_Problem(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(entries []map[string]any) []map[string]any
		want  string
	}{
		"one is missing": {func(e []map[string]any) []map[string]any { return e[:2] }, "got 2 operations in the dump; want 3"},
		"one too many":   {func(e []map[string]any) []map[string]any { return append(e, e[2]) }, "got 4 operations in the dump; want 3"},
		"another name":   {set(0, "profiling_name", "nccl:broadcast"), "got nccl:broadcast"},
		"another size":   {set(1, "input_sizes", [][]int64{{65}}), "got [[65]] Long"},
		"another type":   {set(1, "input_dtypes", []string{"Int"}), "got [[64]] Int"},
		"too early":      {set(0, "time_created_ns", 999_000_000), "got its call at -1.000 ms"},
		"not over":       {set(0, "state", "scheduled", "retired", false), "got it over: false; want true"},
		"over":           {set(2, "state", "completed"), "got it over: true; want false"},
		"too long":       {set(0, "duration_ms", 6.0), "got 6.000 ms; want at most the call's 5.000"},
		"end after dump": {set(0, "time_discovered_completed_ns", 9_000_000_001), "got its end seen"},
	} {
		t.Run(name, func(t *testing.T) {
			truth, entries := dumpJob()
			_, problems := compareDump(decodeDump(t, "2.10", "2.28.9", c.spoil(entries)), truth, true)
			assert.Contains(t, strings.Join(problems, "\n"), c.want)
		})
	}
	truth, entries := dumpJob()
	_, problems := compareDump(decodeDump(t, "1.4", "2.27.3", entries), truth, true)
	assert.Contains(t, strings.Join(problems, "\n"), "got version 1.4")
	assert.Contains(t, strings.Join(problems, "\n"), `got NCCL "2.27.3" in the dump`)
}

// set returns a function that sets fields of an entry.
func set(at int, pairs ...any) func([]map[string]any) []map[string]any {
	return func(entries []map[string]any) []map[string]any {
		for i := 0; i+1 < len(pairs); i += 2 {
			entries[at][pairs[i].(string)] = pairs[i+1]
		}
		return entries
	}
}

func TestMissingProblems(t *testing.T) {
	const right = `{"hangs":[{"verdict":"hang","roots":[{"finding":{"body":"rank 0: hang","lockstep.finding.class":"not_scheduled",` +
		`"lockstep.finding.op":"all_reduce 3","lockstep.finding.rank":0,"lockstep.finding.waiting":[1]}}]}]}`
	truth, _ := dumpJob()
	for _, c := range []struct{ name, from, to, want string }{
		{"right", "", "", ""},
		{"another rank", `"lockstep.finding.rank":0`, `"lockstep.finding.rank":1`, "want rank 0, class not_scheduled"},
		{"no rank", `"lockstep.finding.rank":0,`, "", "want rank 0, class not_scheduled"},
		{"another class", "not_scheduled", "stalled_op", "want rank 0, class not_scheduled"},
		{"another operation", "all_reduce 3", "broadcast 3", `got operation "broadcast 3"; want all_reduce`},
		{"undecided", `"verdict":"hang"`, `"verdict":"undecided","may_run":"it may run"`, "got verdict undecided; want hang: it may run"},
		{"no rank waits", "[1]", "[]", "got ranks [] waiting; want 1"},
		{"no root", `"roots":[`, `"roots":[],"other":[`, "got 1 incidents with 0 roots"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := right
			if c.from != "" {
				require.Contains(t, right, c.from)
				text = strings.Replace(right, c.from, c.to, 1)
			}
			a, err := parseHang(text)
			require.NoError(t, err)
			_, problems := missingProblems(a, truth, 2)
			if c.want == "" {
				assert.Empty(t, problems)
			} else {
				assert.Contains(t, strings.Join(problems, "\n"), c.want)
			}
		})
	}
	_, err := parseHang("lockstep: no dumps")
	assert.ErrorContains(t, err, "read analysis")
}

// refused is a rank of a job that NCCL refused.
func refused(rank int) *dumpTruth {
	return &dumpTruth{Rank: rank, World: 2, Error: "DistBackendError: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0"}
}

func TestRefusal_NCCLsOwnWordsAlone(t *testing.T) {
	const words = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0"
	came, _ := dumpJob()
	for name, c := range map[string]struct {
		job hangJob
		why string
	}{
		"a rank wrote NCCL's words":        {hangJob{truths: []*dumpTruth{refused(0)}}, words},
		"NCCL warned":                      {hangJob{log: "vm:1:1 [0] init.cc:842 NCCL WARN " + words + "\n"}, words},
		"a rank came, there is no dump":    {hangJob{truths: []*dumpTruth{refused(0), came}}, ""},
		"another reason":                   {hangJob{truths: []*dumpTruth{{Error: noModule}}}, ""},
		"no rank wrote anything":           {hangJob{err: errors.New("exit status 139")}, ""},
		"a rank ended early without words": {hangJob{truths: []*dumpTruth{{}}}, ""},
	} {
		assert.Equal(t, c.why, c.job.refusal(), name)
	}
}

const noModule = "ModuleNotFoundError: No module named 'numpy'"

// rankFails returns a kit on a GPU whose ranks write an error in their truth, and end.
func rankFails(t *testing.T, words string) *kit.Kit {
	t.Helper()
	k := testKit(t)
	k.GPU, k.Torch, k.Python = &kit.GPU{}, &kit.Torch{}, filepath.Join(k.Dir, "python3")
	text, err := json.Marshal(map[string]string{"error": words})
	require.NoError(t, err)
	script := "#!/bin/sh\nwhile [ \"$1\" != --folder ]; do shift; done\necho '" + strings.ReplaceAll(string(text), "'", `'\''`) + "' >\"$2/truth-$RANK.json\"\nexit 1\n"
	require.NoError(t, os.WriteFile(k.Python, []byte(script), 0o700))
	return k
}

func TestMissing_RanksFail_NotShownOnlyWhereNCCLRefused(t *testing.T) {
	for words, want := range map[string]report.Status{refused(0).Error: report.NotShown, noModule: report.Failed} {
		p := report.NewPart("hangs", "", 0)
		h := &hangChecks{k: rankFails(t, words), p: p, good: report.Shown}
		h.missing(t.Context())
		require.Len(t, p.Checks, 1, words)
		assert.Equal(t, want, p.Checks[0].Status, p.Checks[0].Text)
		_, reason, _ := strings.Cut(words, ": ")
		assert.Contains(t, p.Checks[0].Text, reason)
	}
}

func TestJudgeMissing_NoRankCame_Failed(t *testing.T) {
	over := fmt.Errorf("run dumps.py: %w", kit.ErrNoTime)
	for name, c := range map[string]struct {
		job  hangJob
		want report.Status
		text string
	}{
		"the first rank failed early": {hangJob{truths: []*dumpTruth{refused(0)}}, report.Failed, "Duplicate GPU"},
		"no rank wrote anything":      {hangJob{err: errors.New("exit status 139")}, report.Failed, "exit status 139"},
		"the part's time was over":    {hangJob{err: over}, report.NotShown, "the time that was left ran out"},
	} {
		t.Run(name, func(t *testing.T) {
			p := report.NewPart("hangs", "", 0)
			h := &hangChecks{k: testKit(t), p: p, good: report.Shown}
			h.judgeMissing(t.Context(), &c.job, 2)
			require.Len(t, p.Checks, 1)
			assert.Equal(t, c.want, p.Checks[0].Status)
			assert.Contains(t, p.Checks[0].Text, c.text)
		})
	}
}

// TestJudgeMissing_FirstRankFailedEarly_IsNoPanic has the rank that came second in the list.
func TestJudgeMissing_FirstRankFailedEarly_IsNoPanic(t *testing.T) {
	came, _ := dumpJob()
	p := report.NewPart("hangs", "", 0)
	h := &hangChecks{k: testKit(t), p: p, good: report.Shown}
	answer := `{"hangs":[{"verdict":"hang","roots":[{"finding":{"lockstep.finding.class":"not_scheduled","lockstep.finding.op":"all_reduce 3",` +
		`"lockstep.finding.rank":0,"lockstep.finding.waiting":[1]}}]}]}`
	require.NoError(t, os.MkdirAll(filepath.Dir(h.k.Lockstep()), 0o700))
	require.NoError(t, os.WriteFile(h.k.Lockstep(), []byte("#!/bin/sh\necho '"+answer+"'\n"), 0o700))
	h.judgeMissing(t.Context(), &hangJob{dir: t.TempDir(), truths: []*dumpTruth{refused(0), came}}, 2)
	require.Len(t, p.Checks, 2)
	assert.Equal(t, report.Failed, p.Checks[0].Status)
	assert.Contains(t, p.Checks[0].Text, "Duplicate GPU")
	assert.Equal(t, report.Shown, p.Checks[1].Status, p.Checks[1].Text)
}

func TestDumpTruth_Problems(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *dumpTruth)
		want  string
	}{
		"no operation":    {func(t *dumpTruth) { t.Ops = nil }, "rank 1: did no operation"},
		"an error":        {func(t *dumpTruth) { t.Error = "not all dumps came in time" }, "rank 1: not all dumps came in time"},
		"never came":      {func(t *dumpTruth) { t.Doomed = nil }, "rank 1: did not come to the operation that hangs"},
		"ended too early": {func(t *dumpTruth) { t.Dumped = 0 }, "rank 1: ended before it saw the dumps"},
	} {
		t.Run(name, func(t *testing.T) {
			truth, _ := dumpJob()
			assert.Empty(t, truth.problems(true))
			c.spoil(truth)
			assert.Contains(t, truth.problems(true)[0], c.want)
		})
	}
}
