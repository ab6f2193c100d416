// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/columns/spool"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// asParquet keeps the operations of an OTLP JSON file as the exporter does, and returns the folder.
func asParquet(t *testing.T, path string, r columns.Resolution) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ring")
	s, err := spool.Open(spool.Config{
		Directory: dir, MaxBytes: 1 << 30, MaxFileRows: 5000, MaxFileBytes: 1 << 24, MaxAge: time.Hour, MaxMemory: 1 << 27, Resolution: r,
	}, spool.Events{
		Written: func(int64, int64) {}, Deleted: func(string) {}, Cut: func(int64) {},
		Dropped: func(_ int64, reason string) { t.Errorf("dropped: %s", reason) },
	})
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for lines.Scan() {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(lines.Bytes())
		require.NoError(t, err)
		ranks, summaries := otelmap.ReadOpsAndSummaries(td, nil)
		for i := range ranks {
			require.NoError(t, s.Add([]columns.Batch{{RankOps: ranks[i], Summaries: summaries[i]}}, time.Now()))
		}
	}
	require.NoError(t, s.Close(time.Now()))
	return dir
}

// A job is judged alike from OTLP JSON and from the Parquet files of the same operations.
func TestAnalyze_Parquet_HasTheFindingsOfOTLP(t *testing.T) {
	job := func(family string, severity float64) string {
		j, err := training.New(training.Spec{
			Layout: training.Layout{DP: 8, Layers: 2, Coarse: true}, Steps: 20, Noise: training.DefaultNoise(),
			Faults: []training.Fault{{Family: family, Severity: severity}},
		}, 7)
		require.NoError(t, err)
		return simulatedFile(t, j)
	}
	for name, path := range map[string]string{
		"slow job":    slowJob.write(t),
		"healthy job": healthyJob.write(t),
		"slow device": job(training.GPUClock, 1.5),
		"slow loader": job(training.HostDataLoader, 0.05),
	} {
		t.Run(name, func(t *testing.T) {
			status, want := analyzeJSON(t, path)
			gotStatus, got := analyzeJSON(t, asParquet(t, path, columns.Exact))
			assert.Equal(t, status, gotStatus)
			assert.Equal(t, want.Findings, got.Findings)
			coarseStatus, coarse := analyzeJSON(t, asParquet(t, path, columns.HundredNanosecs))
			assert.Equal(t, status, coarseStatus)
			require.Len(t, coarse.Findings, len(want.Findings))
			for i := range want.Findings {
				assert.Equal(t, want.Findings[i]["lockstep.finding.id"], coarse.Findings[i]["lockstep.finding.id"])
			}
		})
	}
}

func TestAnalyze_ParquetThatCannotBeRead_IsNamed(t *testing.T) {
	dir := asParquet(t, slowJob.write(t), columns.Exact)
	whole, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.parquet"))
	require.NoError(t, err)
	content, err := os.ReadFile(whole[0])
	require.NoError(t, err)
	cut := filepath.Join(dir, "cut.parquet")
	require.NoError(t, os.WriteFile(cut, content[:len(content)-10], 0o600))
	none := filepath.Join(dir, "none.parquet")
	require.NoError(t, os.WriteFile(none, []byte{0, 1, 2, 3}, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "now.parquet.tmp"), content[:100], 0o600))

	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status, "what is whole is judged")
	require.Len(t, r.Problems, 2)
	byFile := map[string]string{}
	for _, p := range r.Problems {
		byFile[p.File] = p.What
	}
	assert.Equal(t, "read end of file: got no PAR1: the file is cut short, or is still being copied; want a whole file", byFile[cut])
	assert.Contains(t, byFile[none], "tell format: got content that begins with the bytes 00 01 02; want ")
}

// An operation that cannot be true is left out as one of OTLP is.
func TestAnalyze_ParquetOfWhatCannotBeTrue_IsLeftOut(t *testing.T) {
	var out bytes.Buffer
	w, err := columns.NewWriter(&out, columns.Meta{Resolution: columns.Exact})
	require.NoError(t, err)
	rank := model.Rank{JobID: "job", Rank: 0}
	require.NoError(t, w.Add(&rank, []model.Op{
		{Kind: model.KindCompute, Name: "early", Start: firstStep, End: firstStep - 1},
		{Kind: "other", Name: "other", Start: firstStep, End: firstStep},
		{Kind: model.KindCompute, Name: "gemm", Start: firstStep, End: firstStep + 1, Step: model.Some(int64(1))},
	}, nil))
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	_, r := analyzeJSON(t, path)
	var problems []string
	for _, p := range r.Problems {
		problems = append(problems, p.What)
	}
	assert.Contains(t, fmt.Sprint(problems), "want an end that is not before the start")
	assert.Contains(t, fmt.Sprint(problems), `attribute lockstep.op.kind: got Str "other"`)
}
