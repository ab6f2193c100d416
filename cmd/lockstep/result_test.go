// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// verdicts decodes what --json says of the verdict and of each job.
func verdicts(t *testing.T, args ...string) (status int, verdict string, jobs []jobVerdict) {
	t.Helper()
	status, stdout, _ := call(append([]string{"analyze", "--json"}, args...)...)
	var out struct {
		Verdict string
		Jobs    []jobVerdict
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	return status, out.Verdict, out.Jobs
}

type jobVerdict struct {
	ID         string `json:"lockstep.job.id"`
	Verdict    string
	Meetings   int     `json:"collectives"`
	Attributed int     `json:"collectives_attributed"`
	Apart      []int64 `json:"apart_ranks"`
}

func TestOneRankCannotTell(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile(filepath.Join(testdata.Recording(t, "slow"), "rank3.json.gz"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank3.json.gz"), b, 0o600))

	status, verdict, jobs := verdicts(t, dir)
	assert.Equal(t, exitUnusable, status)
	assert.Equal(t, "cannot_tell", verdict)
	require.Len(t, jobs, 1)
	assert.Zero(t, jobs[0].Attributed)

	status, stdout, _ := call("analyze", dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, words(stdout), "Cannot tell: 1 of 8 ranks seen, and 24 collectives, but of none more than one member.")
	assert.NotContains(t, stdout, "No straggler")
}

func TestVerdictInJSON(t *testing.T) {
	for want, job := range map[string]synthetic{"findings": slowJob, "none": healthyJob} {
		_, verdict, jobs := verdicts(t, job.write(t))
		assert.Equal(t, want, verdict)
		require.Len(t, jobs, 1)
		assert.Equal(t, want, jobs[0].Verdict)
		assert.Equal(t, 8, jobs[0].Meetings)
		assert.Equal(t, 8, jobs[0].Attributed)
		assert.Empty(t, jobs[0].Apart)
	}
	_, verdict, _ := verdicts(t, t.TempDir())
	assert.Equal(t, "cannot_tell", verdict)
}

func TestNoFindingAmongThoseSeen(t *testing.T) {
	job := slowJob
	job.skip = 1
	args := []string{"--min-cost-share", "0.9", job.write(t)}
	status, verdict, _ := verdicts(t, args...)
	assert.Equal(t, exitNothing, status)
	assert.Equal(t, "none", verdict)
	_, stdout, _ := call(append([]string{"analyze"}, args...)...)
	assert.Contains(t, stdout, "No straggler found among the 3 of 4 ranks that were seen.")
}

// writeChanged stores the healthy job with its operations changed.
func writeChanged(t *testing.T, change func(rank int64, meet *model.Op)) (path string) {
	t.Helper()
	var lines []byte
	for step := range healthyJob.steps {
		for rank := range healthyJob.ranks {
			ops := healthyJob.ops(rank, step)
			change(rank, &ops[1])
			r := healthyJob.rank(rank)
			b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&r, ops))
			require.NoError(t, err)
			lines = append(append(lines, b...), '\n')
		}
	}
	path = filepath.Join(t.TempDir(), "spans.jsonl")
	require.NoError(t, os.WriteFile(path, lines, 0o600))
	return path
}

func TestRankApartIsAProblem(t *testing.T) {
	// Rank 3 names its process group otherwise than ranks 0 to 2.
	path := writeChanged(t, func(rank int64, meet *model.Op) {
		meet.Comm.Size = model.Some(int64(3))
		if rank == 3 {
			meet.Comm.ID = "other"
		}
	})
	_, r := analyzeJSON(t, path)
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "rank 3 shares no collective with the others: "+
		"other step numbers, other process-group names, or another job?", r.Problems[0].What)
	_, stdout, _ := call("analyze", path)
	assert.Contains(t, words(stdout), "apart rank 3 shares no collective with the others")
}

// What docs/analyze.md says of attributes that collectives need to join.
func TestCollectivesThatJoinNothingCannotTell(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(rank int64, meet *model.Op)
		lacks  string
	}{
		"no scope":          {func(_ int64, meet *model.Op) { meet.Collective.SeqScope = "" }, "lockstep.collective.seq.scope that says"},
		"scope of nobody":   {func(_ int64, meet *model.Op) { meet.Collective.SeqScope = model.ScopeProcess }, "lockstep.collective.seq.scope that says"},
		"no number":         {func(_ int64, meet *model.Op) { meet.Collective.Seq.OK = false }, "lockstep.collective.seq (32 operations"},
		"no name":           {func(_ int64, meet *model.Op) { meet.Collective.Name = "" }, "collectives in which all wait for all"},
		"groups of oneself": {func(rank int64, meet *model.Op) { meet.Comm.ID = strings.Repeat("g", int(rank)+1) }, "operations of other ranks that agree"},
		"small groups":      {func(_ int64, meet *model.Op) { meet.Comm.Size = model.Some[int64](2) }, "lockstep.comm.size that is true: more ranks take part (32 operations"},
		"unlike":            {func(rank int64, meet *model.Op) { meet.Collective.Bytes = model.Some(rank + 1) }, "lockstep.collective.name and lockstep.collective.bytes (32 operations"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, _ := call("analyze", writeChanged(t, tc.change))
			assert.Equal(t, exitUnusable, status)
			assert.Contains(t, stdout, "Cannot tell: 4 ranks seen, and 8 collectives")
			assert.Contains(t, words(stdout), tc.lacks)
		})
	}
}

func TestLimitThatWasMetIsAProblem(t *testing.T) {
	// A rank of a step has two operations besides the step itself.
	_, r := analyzeJSON(t, "--max-ops", "10", slowJob.write(t))
	assert.Empty(t, r.Problems, "one step of four ranks is held at a time")

	_, r = analyzeJSON(t, "--max-ops", "7", slowJob.write(t))
	require.Len(t, r.Problems, 1)
	assert.Contains(t, r.Problems[0].What, "keep to limits: steps judged whole that alone held more operations: 8; want at most 7")

	// Rank by rank, all eight steps are held.
	lines := slowJob.lines(t)
	var byRank []byte
	for rank := range 4 {
		for step := range 8 {
			byRank = append(byRank, lines[step*4+rank]...)
		}
	}
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	require.NoError(t, os.WriteFile(path, byRank, 0o600))
	_, r = analyzeJSON(t, "--max-ops", "10", path)
	require.NotEmpty(t, r.Problems)
	assert.Contains(t, r.Problems[0].What, "want at most 10 operations held (--max-ops raises it)")
	status, r := analyzeJSON(t, path)
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, r.Problems)

	status, _, stderr := call("analyze", "--max-ops", "0", path)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, stderr, "got 0; want at least 1")
}

func TestLimitsMetNameTheirValue(t *testing.T) {
	c := engineConfig()
	assert.Empty(t, limitsMet(&c, straggler.Stats{}))
	got := strings.Join(limitsMet(&c, straggler.Stats{
		OpsDropped: 1, StepsEvicted: 2, StepsForgotten: 3, JobsEvicted: 4, RanksRefused: 5, WorldsCapped: 6,
	}), "\n")
	for _, want := range []string{"operations left out: 1;", "1048576", "had been read: 2;", "67108864", "judgement: 3;", "8388608", "given up: 4;", "64 jobs", "further ranks left out: 5;", "larger world: 6;", "32768"} {
		assert.Contains(t, got, want)
	}
}

func TestJobsCostliestFirst(t *testing.T) {
	dir := t.TempDir()
	healthy := bytes.ReplaceAll(bytes.Join(healthyJob.lines(t), nil), []byte(`"synthetic"`), []byte(`"a-healthy"`))
	slow := bytes.ReplaceAll(bytes.Join(slowJob.lines(t), nil), []byte(`"synthetic"`), []byte(`"b-slow"`))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spans.jsonl"), append(healthy, slow...), 0o600))
	_, verdict, jobs := verdicts(t, dir)
	assert.Equal(t, "findings", verdict)
	require.Len(t, jobs, 2)
	assert.Equal(t, "b-slow", jobs[0].ID)
	_, stdout, _ := call("analyze", dir)
	assert.Less(t, strings.Index(stdout, "job b-slow"), strings.Index(stdout, "job a-healthy"))
	assert.Equal(t, 1, strings.Count(stdout, "1 file,"), "input is stated once")
}

// A large batch comes in parts, its steps last, and nothing of it is lost.
func TestPartsOfABatch(t *testing.T) {
	td := ptrace.NewTraces()
	for rank := range int64(3) {
		r := slowJob.rank(rank)
		for step := range int64(4) {
			otelmap.OpsToTraces(&r, slowJob.ops(rank, step)).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		}
	}
	total, steps := 0, 0
	ranks := map[int64]int{}
	for part := range parts(td, 5) {
		assert.LessOrEqual(t, part.SpanCount(), 5)
		for _, rs := range part.ResourceSpans().All() {
			rank, ok := rs.Resource().Attributes().Get(semconv.Rank)
			require.True(t, ok)
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				total++
				ranks[rank.Int()]++
				if isStep(s) {
					steps++
				} else {
					assert.Zero(t, steps, "an operation after a step")
				}
			}
		}
	}
	assert.Equal(t, 3*4*3, total)
	assert.Equal(t, 3*4, steps)
	assert.Equal(t, map[int64]int{0: 12, 1: 12, 2: 12}, ranks)

	for range parts(td, 5) {
		break // who has enough may stop
	}
}

func TestWidth(t *testing.T) {
	env := func(columns string) func(string) string {
		return func(name string) string {
			if name == "COLUMNS" {
				return columns
			}
			return ""
		}
	}
	var b bytes.Buffer
	assert.Equal(t, 97, terminal.StyleOf(&b, env("97")).Width)
	for _, bad := range []string{"", "wide", "-1", "0"} {
		assert.Zero(t, terminal.StyleOf(&b, env(bad)).Width, bad)
	}
}

func TestVersionFlag(t *testing.T) {
	status, flag, _ := call("--version")
	assert.Equal(t, exitNothing, status)
	_, command, _ := call("version")
	assert.Equal(t, command, flag)
	assert.Contains(t, flag, "lockstep ")
}
