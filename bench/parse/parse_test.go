// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func ours(t *testing.T, file string) counts {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, read(t.Context(), file, &out))
	var c counts
	require.NoError(t, json.Unmarshal(out.Bytes(), &c))
	return c
}

func python(t *testing.T, script string, args ...string) []byte {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("python3 is not here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("..", script)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

func theirs(t *testing.T, file string) counts {
	t.Helper()
	var c counts
	require.NoError(t, json.Unmarshal(python(t, "parse.py", file), &c))
	return c
}

// A comparison is fair only where both sides come to the same result.
func TestBothSidesAgree(t *testing.T) {
	const maxFiles = 3
	for name, source := range map[string]struct {
		find   func(testing.TB, string) string
		folder string
	}{
		"recording": {testdata.Recording, "slow"},
		"dlrm":      {testdata.Shared, "dlrm-8xV100"},
		"single":    {testdata.Shared, "kineto-single"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(source.find(t, source.folder), "*.json.gz"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			// Ranks of one job are alike; three show whatever all can.
			for _, file := range files[:min(len(files), maxFiles)] {
				c := ours(t, file)
				assert.Positive(t, c.Kept)
				c.Kept = 0
				assert.Equal(t, theirs(t, file), c, filepath.Base(file))
			}
		})
	}
}

func TestEnlargedTraceIsManyTimesTheWork(t *testing.T) {
	const times = 3
	source := filepath.Join(testdata.Recording(t, "slow"), "rank0.json.gz")
	target := filepath.Join(t.TempDir(), "rank0.json")
	python(t, "enlarge.py", source, target, "3")
	one, many := ours(t, source), ours(t, target)
	assert.Equal(t, times*one.Operations, many.Operations)
	assert.Equal(t, times*one.Launched, many.Launched)
	assert.Equal(t, times*one.Collectives, many.Collectives)
	assert.Equal(t, times*one.Steps, many.Steps)
}

func fake(kept int64, peak int64, walls ...time.Duration) *side {
	s := &side{name: "x"}
	for _, w := range walls {
		s.runs = append(s.runs, outcome{wall: w, peak: peak, counts: counts{Kept: kept}})
	}
	return s
}

func TestReportJudges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	slow := fake(0, 0, 50*time.Second, 10*time.Second, 20*time.Second) // median 20 s
	for _, tc := range []struct {
		name   string
		ours   *side
		missed bool
	}{
		{"met", fake(1<<20, 128<<20, 4*time.Second), false},
		{"too slow", fake(1<<20, 128<<20, 4001*time.Millisecond), true},
		{"too big", fake(1<<20, 128<<20+1, time.Second), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			err := report(&out, file, slow, tc.ours)
			assert.Equal(t, tc.missed, err != nil)
			assert.Equal(t, tc.missed, strings.Contains(out.String(), "MISSED"))
			assert.Contains(t, out.String(), "want at most 128.0 MiB")
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"read"}, {"write", "x"}, {"compare", "-runs", "0", "x"}} {
		assert.ErrorIs(t, run(t.Context(), args), errUsage, "%v", args)
	}
}
