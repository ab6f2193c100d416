// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// call runs the command and returns what it printed.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(args, &out, &errs)
	return status, out.String(), errs.String()
}

// result is --json as its users decode it.
type result struct {
	Findings []map[string]any `json:"findings"`
	Ranks    []map[string]any `json:"ranks"`
	Jobs     []map[string]any `json:"jobs"`
	Problems []struct {
		File   string `json:"file"`
		Offset int64  `json:"offset"`
		What   string `json:"what"`
		Rank   *int64 `json:"rank"`
	} `json:"problems"`
	Input struct {
		Files   int   `json:"files"`
		Skipped int   `json:"files_skipped"`
		Ops     int64 `json:"operations"`
	} `json:"input"`
}

// analyzeJSON runs analyze --json and checks that it prints one object and
// nothing else.
func analyzeJSON(t *testing.T, args ...string) (int, result) {
	t.Helper()
	status, stdout, stderr := call(append([]string{"analyze", "--json"}, args...)...)
	assert.Empty(t, stderr)
	d := json.NewDecoder(strings.NewReader(stdout))
	var r result
	require.NoError(t, d.Decode(&r), stdout)
	assert.False(t, d.More(), "more than one object")
	assert.NotNil(t, r.Findings, "findings must be an array")
	assert.NotNil(t, r.Ranks, "ranks must be an array")
	assert.NotNil(t, r.Problems, "problems must be an array")
	return status, r
}

func TestAnalyzeNamesTheSlowRank(t *testing.T) {
	status, r := analyzeJSON(t, slowJob.write(t))
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	assert.EqualValues(t, 2, f[semconv.FindingRank])
	assert.Equal(t, "straggler", f[semconv.FindingKind])
	assert.Equal(t, "compute", f[semconv.FindingClass])
	assert.Equal(t, "gemm", f[semconv.FindingOp])
	assert.InDelta(t, 3*8e-3, f[semconv.FindingWaitCaused], 1e-3, "three peers wait 8 ms each")
	assert.InDelta(t, 8e-3, f[semconv.FindingCostSeconds], 1e-3, "the step is 8 ms longer for it")
	require.Len(t, r.Ranks, 4)
	assert.EqualValues(t, 8, r.Ranks[2]["last_arrivals"])
	assert.InDelta(t, 8*(10e-3+8e-3), r.Ranks[2][semconv.SummaryCompute], 1e-3)
	assert.Empty(t, r.Problems)
	assert.EqualValues(t, 4*8*3, r.Input.Ops)
}

func TestAnalyzeHealthyJob(t *testing.T) {
	path := healthyJob.write(t)
	status, r := analyzeJSON(t, path)
	assert.Equal(t, exitNothing, status)
	assert.Empty(t, r.Findings)

	status, stdout, stderr := call("analyze", path)
	assert.Equal(t, exitNothing, status)
	assert.Contains(t, stdout, "No straggler found.")
	assert.Contains(t, stdout, "8 steps and 8 collectives")
	assert.Empty(t, stderr, "no progress bar off a terminal")
}

func TestAnalyzeTextSaysWhoAndWhatItCosts(t *testing.T) {
	status, stdout, stderr := call("analyze", slowJob.write(t))
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, stderr)
	said := strings.Join(strings.Fields(stdout), " ")
	assert.Contains(t, said, "rank 2 on node0 makes the others wait (class compute")
	assert.Contains(t, said, `"gemm"`)
	assert.Contains(t, said, "last in 8 of 8 collectives")
	assert.NotContains(t, stdout, "\x1b[", "no colour off a terminal")
	for _, line := range strings.Split(stdout, "\n") {
		assert.LessOrEqual(t, len([]rune(line)), 120, line)
	}
}

func TestAnalyzeRaisedGateAbstains(t *testing.T) {
	// The slow rank costs some 8 ms of 19 ms.
	status, r := analyzeJSON(t, "--min-cost-share", "0.9", slowJob.write(t))
	assert.Equal(t, exitNothing, status)
	assert.Empty(t, r.Findings)
	require.Len(t, r.Jobs, 1)
	require.NotNil(t, r.Jobs[0]["strongest_candidate"])
	assert.EqualValues(t, 2, r.Jobs[0]["strongest_candidate"].(map[string]any)["lockstep.rank"])
	assert.Equal(t, false, r.Jobs[0]["strongest_candidate"].(map[string]any)["link"])
}

// KAIR cannot name one of four ranks by three standard deviations, and the report
// says what was asked.
func TestAnalyzeByKAIR(t *testing.T) {
	path := slowJob.write(t)
	status, _ := analyzeJSON(t, "--method", "kair", path)
	assert.Equal(t, exitNothing, status)
	status, _ = analyzeJSON(t, "--method", "lockstep", path)
	assert.Equal(t, exitFindings, status)
	_, stdout, _ := call("analyze", "--method", "kair", path)
	assert.Contains(t, words(stdout), "method kair, the published statistics")
	_, stdout, _ = call("analyze", path)
	assert.NotContains(t, stdout, "method")
}

// The ranks' rhythms of operations are drawn, and in the JSON, where they are asked for.
func TestAnalyzeRhythms(t *testing.T) {
	path := slowJob.write(t)
	_, r := analyzeJSON(t, path)
	assert.NotContains(t, r.Jobs[0], "heatmap")
	assert.NotContains(t, r.Jobs[0], "frequency")
	for _, rank := range r.Ranks {
		assert.Contains(t, rank, semconv.MetricStragglerDivergence)
	}
	_, r = analyzeJSON(t, "--heatmap", "--frequency", path)
	heatmap := r.Jobs[0]["heatmap"].(map[string]any)
	require.Len(t, heatmap["rows"], 4)
	assert.Len(t, heatmap["rows"].([]any)[0].(map[string]any)["ahead"], int(heatmap["windows"].(float64)))
	frequency := r.Jobs[0]["frequency"].(map[string]any)
	assert.EqualValues(t, 8, frequency["steps"])
	assert.EqualValues(t, 4, frequency["workers"])
	count := map[any]float64{}
	for _, op := range frequency["ops"].([]any) {
		op := op.(map[string]any)
		assert.Len(t, op["share"], int(frequency["windows"].(float64)))
		for _, n := range op["counts"].([]any) {
			count[op["op"]] += n.(float64)
		}
	}
	assert.Equal(t, map[any]float64{"gemm": 4, "all_reduce": 4}, count, "per step, over all ranks")

	_, stdout, _ := call("analyze", "--heatmap", "--frequency", path)
	assert.Contains(t, stdout, "rhythm of operations over the latest step")
	assert.Contains(t, stdout, "how often operations occur over a step")
	assert.Contains(t, stdout, "Finding 1")
}

func TestACandidateThatIsALinkSaysSo(t *testing.T) {
	out := newJobOutput(&straggler.JobReport{Abstained: &straggler.Abstention{Rank: 2, Link: true, Gate: "cost_share"}})
	b, err := json.Marshal(out.Abstained)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"lockstep.rank":2,"link":true,"gate":"cost_share"`)

	out = newJobOutput(&straggler.JobReport{Abstained: &straggler.Abstention{Rank: -1, Class: "jitter", Gate: "cost_share"}})
	b, err = json.Marshal(out.Abstained)
	require.NoError(t, err)
	assert.Contains(t, string(b), `{"lockstep.finding.class":"jitter","link":false,"gate":"cost_share"`)
}

func TestAnalyzeMissingRankIsStated(t *testing.T) {
	job := slowJob
	job.skip = 1
	path := job.write(t)
	status, r := analyzeJSON(t, path)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Ranks, 3)
	require.Len(t, r.Jobs, 1)
	assert.Equal(t, []any{1.0}, r.Jobs[0]["missing_ranks"])
	require.NotEmpty(t, r.Findings)
	assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
	assert.Contains(t, r.Findings[0][semconv.FindingEvidence], `"missing_ranks":[1]`)
	assert.Less(t, r.Findings[0][semconv.FindingConfidence], 0.9, "a gap lowers the confidence")

	_, stdout, _ := call("analyze", path)
	assert.Contains(t, stdout, "3 of 4; missing: rank 1")
	assert.Contains(t, stdout, "rank 1 not seen")
}

func TestAnalyzeUsageErrors(t *testing.T) {
	file := healthyJob.write(t)
	for name, args := range map[string][]string{
		"no command":      {},
		"unknown command": {"analyse"},
		"no path":         {"analyze"},
		"unknown flag":    {"analyze", "--bogus", file},
		"bad number":      {"analyze", "--min-cost-share", "much", file},
		"unknown method":  {"analyze", "--method", "median", file},
		"share above 1":   {"analyze", "--max-false-alarm", "2", file},
		"rank pattern":    {"analyze", "--rank-pattern", "(", file},
		"step pattern":    {"analyze", "--step-pattern", "(", file},
		"run: no config":  {"run"},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call(args...)
			assert.Equal(t, exitUnusable, status)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "--help`\n")
		})
	}
}

func TestAnalyzeNothingUsable(t *testing.T) {
	empty := t.TempDir()
	foreign := filepath.Join(t.TempDir(), "foreign.json")
	require.NoError(t, os.WriteFile(foreign, []byte(`{"hello": "world"}`), 0o600))
	zero := filepath.Join(t.TempDir(), "zero.json")
	require.NoError(t, os.WriteFile(zero, nil, 0o600))
	noSpans := filepath.Join(t.TempDir(), "nospans.json")
	require.NoError(t, os.WriteFile(noSpans, []byte(`{"resourceSpans": []}`), 0o600))
	for name, tc := range map[string]struct{ path, what string }{
		"empty directory": {empty, "got no trace"},
		"absent":          {filepath.Join(empty, "absent"), "no such file"},
		"no match":        {filepath.Join(empty, "*.json"), "got no match"},
		"foreign JSON":    {foreign, "neither a PyTorch trace"},
		"empty file":      {zero, "got an empty file"},
		"no spans":        {noSpans, "got none"},
	} {
		t.Run(name, func(t *testing.T) {
			status, r := analyzeJSON(t, tc.path)
			assert.Equal(t, exitUnusable, status)
			require.Len(t, r.Problems, 1)
			assert.Equal(t, tc.path, r.Problems[0].File)
			assert.Contains(t, r.Problems[0].What, tc.what)

			status, stdout, stderr := call("analyze", tc.path)
			assert.Equal(t, exitUnusable, status)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "nothing could be analysed")
			assert.Contains(t, strings.Join(strings.Fields(stderr), " "), tc.what)
		})
	}
}

func TestAnalyzePartlyBadInput(t *testing.T) {
	lines := slowJob.lines(t)
	dir := t.TempDir()
	// A batch of rank 3 in the last step is cut short; its neighbour is whole.
	broken := len(lines) - 1
	cutAt := len(bytes.Join(lines[:broken], nil))
	content := append(bytes.Join(lines[:broken], nil), lines[broken][:200]...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spans.jsonl"), content, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte("notes"), 0o600))

	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Problems, 1)
	assert.Equal(t, filepath.Join(dir, "spans.jsonl"), r.Problems[0].File)
	assert.EqualValues(t, cutAt, r.Problems[0].Offset)
	assert.Contains(t, r.Problems[0].What, "ends within it")
	assert.Equal(t, 1, r.Input.Skipped)
	require.NotEmpty(t, r.Findings)
	assert.EqualValues(t, 2, r.Findings[0][semconv.FindingRank])
}

func TestAnalyzeTruncatedGzip(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(bytes.Join(slowJob.lines(t), nil))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	dir := t.TempDir()
	whole, cut := filepath.Join(dir, "a.jsonl.gz"), filepath.Join(dir, "b.jsonl.gz")
	require.NoError(t, os.WriteFile(whole, z.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(cut, z.Bytes()[:z.Len()*2/3], 0o600))

	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status, "the whole file decides; the same operations twice change nothing")
	require.NotEmpty(t, r.Problems)
	assert.Equal(t, cut, r.Problems[0].File)
	assert.Contains(t, r.Problems[0].What, "unexpected EOF")
	require.Len(t, r.Ranks, 4)
	assert.EqualValues(t, 8, r.Ranks[0]["collectives"])
}
