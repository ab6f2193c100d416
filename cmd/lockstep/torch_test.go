// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// TestAnalyzeDLRM holds the command to what is known of a public recording of
// eight V100: rank 7 arrives last in 5 of 8 collectives, late from before the
// recording began, while ranks 2 and 6 are only 505 µs earlier in the
// collective that decides.
func TestAnalyzeDLRM(t *testing.T) {
	dir := testdata.Shared(t, "dlrm-8xV100")
	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	assert.Len(t, r.Ranks, 8)
	assert.Empty(t, r.Problems)
	require.NotEmpty(t, r.Findings)
	f := r.Findings[0]
	assert.EqualValues(t, 7, f[semconv.FindingRank])
	assert.Equal(t, "host", f[semconv.FindingClass])
	assert.InDelta(t, 0.76, f[semconv.FindingWaitCausedShare], 0.02)
	assert.LessOrEqual(t, f[semconv.FindingCostSeconds], 1.4e-3)
	assert.Greater(t, f[semconv.FindingCostSeconds], 0.0)
	assert.Equal(t, true, f[semconv.FindingBeforeWindow])
	ev, ok := evidence.As[evidence.Straggler](evidence.Text(f[semconv.FindingEvidence].(string)))
	require.True(t, ok)
	assert.Equal(t, []int64{2, 6}, ev.NextRanks)
	assert.Equal(t, 5, ev.LastArrivals)
	assert.Equal(t, 8, ev.Meetings)
	assert.InDelta(t, 505e-6, ev.Decisive.Gap, 10e-6)
	assert.NotEmpty(t, ev.LoweredBy)

	_, stdout, _ := call("analyze", dir)
	said := words(stdout)
	assert.Contains(t, said, "rank 7 makes the others wait (class host")
	assert.Contains(t, said, "last in 5 of 8 collectives")
	assert.Contains(t, said, "in that collective ranks 2 and 6 would be last once it is mended")
	assert.Contains(t, said, "the cause precedes the recording")
	assert.Contains(t, said, "is all that mending this rank alone would save")
}

// words joins what wrapping parted.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestAnalyzeSlowRecording(t *testing.T) {
	status, r := analyzeJSON(t, testdata.Recording(t, "slow"))
	assert.Equal(t, exitFindings, status)
	assert.Empty(t, r.Problems)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	assert.EqualValues(t, 5, f[semconv.FindingRank])
	assert.Equal(t, "host", f[semconv.FindingClass])
	assert.Contains(t, f[semconv.FindingOp], "DataLoader", "the loader's own scope within the slow place, data")
	assert.Len(t, r.Ranks, 8)
}

func TestAnalyzeHealthyRecording(t *testing.T) {
	status, r := analyzeJSON(t, testdata.Recording(t, "healthy"))
	assert.Equal(t, exitNothing, status)
	assert.Empty(t, r.Findings)
	assert.Empty(t, r.Problems)
	assert.Len(t, r.Ranks, 8)
}

// copyRecording copies the slow recording, so that a test can damage it.
func copyRecording(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.CopyFS(dir, os.DirFS(testdata.Recording(t, "slow"))))
	return dir
}

func TestAnalyzeDamagedTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(t *testing.T, dir string) (file string)
		what   string
		ranks  int // that are seen all the same
	}{
		"truncated gzip": {func(t *testing.T, dir string) string {
			t.Helper()
			file := filepath.Join(dir, "rank3.json.gz")
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, b[:len(b)/2], 0o600))
			return file
		}, "unexpected end of file; the file is left out", 7},
		"header of a gzip only": {func(t *testing.T, dir string) string {
			t.Helper()
			file := filepath.Join(dir, "rank3.json.gz")
			require.NoError(t, os.Truncate(file, 5))
			return file
		}, "unexpected EOF", 7},
		"two files of one rank": {func(t *testing.T, dir string) string {
			t.Helper()
			b, err := os.ReadFile(filepath.Join(dir, "rank3.json.gz"))
			require.NoError(t, err)
			file := filepath.Join(dir, "rank3_again.json.gz")
			require.NoError(t, os.WriteFile(file, b, 0o600))
			return file
		}, "claim rank 3: got it from", 8},
		"invalid JSON": {func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(dir, "rank3.json.gz")))
			file := filepath.Join(dir, "rank3.json")
			require.NoError(t, os.WriteFile(file, []byte(`{"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [}`), 0o600))
			return file
		}, "", 7},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyRecording(t)
			file := tc.damage(t, dir)
			status, r := analyzeJSON(t, dir)
			want := exitUnusable // a part of the input was refused
			if len(r.Findings) > 0 {
				want = exitFindings
			}
			assert.Equal(t, want, status)
			require.NotEmpty(t, r.Problems)
			assert.Equal(t, file, r.Problems[0].File)
			assert.Contains(t, r.Problems[0].What, tc.what)
			assert.NotContains(t, r.Problems[0].What, "offset", "the offset has a field of its own")
			assert.Len(t, r.Ranks, tc.ranks)
			assert.EqualValues(t, 5, r.suspect(t))
		})
	}
}

// suspect returns the rank that is named, or was nearest to it: with a rank
// missing the evidence may not suffice to name one.
func (r *result) suspect(t *testing.T) any {
	t.Helper()
	if len(r.Findings) > 0 {
		return r.Findings[0][semconv.FindingRank]
	}
	require.Len(t, r.Jobs, 1)
	candidate, ok := r.Jobs[0]["strongest_candidate"].(map[string]any)
	require.True(t, ok, "neither a finding nor a candidate")
	return candidate[semconv.Rank]
}

func TestAnalyzeMissingTrace(t *testing.T) {
	dir := copyRecording(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "rank2.json.gz")))
	status, r := analyzeJSON(t, dir)
	assert.Contains(t, []int{exitNothing, exitFindings}, status)
	assert.Len(t, r.Ranks, 7)
	assert.Equal(t, []any{2.0}, r.Jobs[0]["missing_ranks"])
	assert.EqualValues(t, 5, r.suspect(t))
	_, stdout, _ := call("analyze", dir)
	assert.Contains(t, stdout, "7 of 8; missing: rank 2")
}
