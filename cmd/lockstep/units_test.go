// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// Stamps in another unit than nanoseconds are told with the file, what they are and what they
// should be.
func TestStampsInAnotherUnitAreTold(t *testing.T) {
	rank := slowJob.rank(0)
	for per, says := range map[int64]string{
		1:   "",
		1e3: "doubt span: start: got 1700000000000000, which is 1970-01-20, and in microseconds 2023-11-14; want nanoseconds since 1970, from ",
	} {
		var lines []byte
		for step := range slowJob.steps {
			for r := range slowJob.ranks {
				ops := slowJob.ops(r, step)
				for i := range ops {
					ops[i].Start, ops[i].End = ops[i].Start/per, ops[i].End/per
				}
				rank.Rank = r
				b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&rank, ops))
				require.NoError(t, err)
				lines = append(append(lines, b...), '\n')
			}
		}
		path := filepath.Join(t.TempDir(), "spans.jsonl")
		require.NoError(t, os.WriteFile(path, lines, 0o600))
		_, r := analyzeJSON(t, path)
		if says == "" {
			require.Len(t, r.Findings, 1)
			assert.Empty(t, r.Problems)
			continue
		}
		require.Len(t, r.Problems, int(slowJob.ranks), "of each rank once")
		for _, p := range r.Problems {
			assert.Equal(t, path, p.File)
			assert.True(t, strings.HasPrefix(p.What, says[:28]), p.What)
			assert.Contains(t, p.What, "(8 times)")
		}
		assert.Contains(t, r.Problems[0].What, says)
	}
}
