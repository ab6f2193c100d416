// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// oneStep is a trace of one step, which does not say whose it is.
const oneStep = `{"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 100, "dur": 50},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 110, "dur": 5, "args": {"stream": 7, "correlation": 1}}
]}`

// The rules themselves are tested in internal/intake; these follow from them.
func TestAnalyzeTracesThatDoNotSayWhoseTheyAre(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	for name, tc := range map[string]struct {
		files    []string
		ranks    []int64
		missing  []any
		problems int
	}{
		"the only file":      {[]string{"trace.json"}, []int64{0}, []any{}, 0},
		"one of two":         {[]string{"a.json", "b.json"}, nil, nil, 2},
		"names, with a gap":  {[]string{"rank10.json", "rank8.json", "rank9.json"}, []int64{8, 9, 10}, []any{0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}, 0},
		"a name and another": {[]string{"rank0.json", "x.json"}, []int64{0}, []any{1.0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tc.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(oneStep), 0o600))
			}
			_, r := analyzeJSON(t, dir)
			assert.Len(t, r.Problems, tc.problems)
			require.Len(t, r.Ranks, len(tc.ranks))
			for i, rank := range tc.ranks {
				assert.EqualValues(t, rank, r.Ranks[i][semconv.Rank])
			}
			if tc.missing != nil {
				require.Len(t, r.Jobs, 1)
				assert.Equal(t, tc.missing, r.Jobs[0]["missing_ranks"])
			}
		})
	}
}

func TestAnalyzeNamesThePlaceOfDamage(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank0.json"), []byte(oneStep), 0o600))
	cut := filepath.Join(dir, "rank1.json")
	require.NoError(t, os.WriteFile(cut, []byte(oneStep[:len(oneStep)-2]), 0o600))
	_, r := analyzeJSON(t, dir)
	require.Len(t, r.Problems, 1)
	p := r.Problems[0]
	assert.Equal(t, cut, p.File)
	assert.EqualValues(t, len(oneStep)-2, p.Offset)
	assert.Equal(t, "parse trace: unexpected end of file; the file is left out", p.What)
	require.NotNil(t, p.Rank)
	assert.EqualValues(t, 1, *p.Rank)
	assert.Equal(t, []any{1.0}, r.Jobs[0]["missing_ranks"])
}
