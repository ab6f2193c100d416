// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Whatever spans come, reading them fails nowhere, and what was read survives
// being written and read again.
func FuzzTracesToOps(f *testing.F) {
	rank := randomRankForFuzz()
	seed, err := (&ptrace.JSONMarshaler{}).MarshalTraces(OpsToTraces(&rank, typicalOps(11)))
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"lockstep.rank","value":{"intValue":"1"}}]},` +
		`"scopeSpans":[{"spans":[{"name":"a","attributes":[{"key":"lockstep.op.kind","value":{"arrayValue":{}}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(data)
		if err != nil {
			return
		}
		got, _ := TracesToOps(td)
		for _, r := range got {
			again, problems := TracesToOps(OpsToTraces(&r.Rank, r.Ops))
			require.Empty(t, problems)
			require.Len(t, again, 1)
			require.Len(t, again[0].Ops, len(r.Ops))
		}
	})
}

func randomRankForFuzz() model.Rank {
	return model.Rank{JobID: "j", Incarnation: "i", Rank: 3, WorldSize: model.Some(int64(8)), HWID: "GPU-0"}
}

// Whatever record comes, reading it fails nowhere, and reading what was written
// from it gives the same finding.
func FuzzLogToFinding(f *testing.F) {
	finding := rank7()
	seed, err := (&plog.JSONMarshaler{}).MarshalLogs(FindingsToLogs([]model.Finding{finding}))
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
		if err != nil || ld.LogRecordCount() == 0 {
			return
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					rereadFinding(t, lr)
				}
			}
		}
	})
}

func rereadFinding(t *testing.T, lr plog.LogRecord) {
	t.Helper()
	got, ok := LogToFinding(lr, nil)
	if !ok {
		return
	}
	to := plog.NewLogRecord()
	FindingToLog(&got, to)
	FindingToSpan(&got, ptrace.NewSpan())
	again, ok := LogToFinding(to, nil)
	require.True(t, ok)
	require.Equal(t, got.ID, again.ID)
	require.Equal(t, got.Ranks, again.Ranks)
	require.Equal(t, got.Links, again.Links)
}
