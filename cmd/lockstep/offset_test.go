// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

var timestamp = regexp.MustCompile(`"ts": (\d+)`)

// shiftTrace copies a compressed trace with all its stamps shifted by µs.
func shiftTrace(t *testing.T, from, to string, us int64) {
	t.Helper()
	f, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	text = timestamp.ReplaceAllFunc(text, func(m []byte) []byte {
		v, err := strconv.ParseInt(string(timestamp.FindSubmatch(m)[1]), 10, 64)
		require.NoError(t, err)
		return fmt.Appendf(nil, `"ts": %d`, v+us)
	})
	require.NoError(t, os.WriteFile(to, text, 0o600))
}

// TestAnalyzeRecoversClockOffsets shifts each rank's files by up to 10 ms, more
// than any rank waited, and expects the same finding.
func TestAnalyzeRecoversClockOffsets(t *testing.T) {
	offsets := []int64{0, 9_731, -8_642, 3_303, -10_000, 5_150, 777, -4_242} // µs
	src, dir := testdata.Shared(t, "dlrm-8xV100"), t.TempDir()
	for rank, us := range offsets {
		match, err := filepath.Glob(filepath.Join(src, fmt.Sprintf("worker%d_*", rank)))
		require.NoError(t, err)
		require.Len(t, match, 1)
		shiftTrace(t, match[0], filepath.Join(dir, fmt.Sprintf("rank%d.json", rank)), us)
	}

	status, r := analyzeJSON(t, dir)
	assert.Equal(t, exitFindings, status)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	assert.EqualValues(t, 7, f[semconv.FindingRank])
	assert.Equal(t, "host", f[semconv.FindingClass])
	assert.InDelta(t, 0.76, f[semconv.FindingWaitCausedShare], 0.02)
	assert.LessOrEqual(t, f[semconv.FindingCostSeconds], 1.4e-3)
	for rank, us := range offsets {
		clock := r.Ranks[rank]["clock"].(map[string]any)
		assert.InDelta(t, -float64(us)*1e-6, clock[semconv.ClockOffset], 10e-6, "rank %d", rank)
	}

	_, raw := analyzeJSON(t, "--no-clock", dir)
	for rank := range offsets {
		assert.Zero(t, raw.Ranks[rank]["clock"].(map[string]any)[semconv.ClockOffset], "nothing is corrected")
	}
	if len(raw.Findings) > 0 {
		assert.NotEqual(t, f[semconv.FindingWaitCaused], raw.Findings[0][semconv.FindingWaitCaused],
			"stamps as recorded tell another story")
	}
}
