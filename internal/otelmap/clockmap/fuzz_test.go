// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Whatever record comes, reading it fails nowhere, and what was read survives
// being written and read again.
func FuzzLogs(f *testing.F) {
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	EdgeToLog(&model.ClockEdge{Src: "a", Dst: "b", Lower: -10, Upper: 10, Offset: 1, Sigma: 2, Drift: 1e-6, DriftBound: 1e-7, Source: "probe"}, records.AppendEmpty())
	ModelToLog(&model.ClockModel{Clock: "a", Timeline: "t", From: 1, Until: 2, Bound: 3, Growth: 1e-7, Sigma: 1, Undated: true}, records.AppendEmpty())
	seed, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					rereadEdge(t, lr)
					rereadModel(t, lr)
					if key := Key(lr); key != "" {
						require.Truef(t, strings.HasPrefix(key, lr.EventName()+"\x00") && strings.HasSuffix(key, "\x00"), "%q", key)
					}
				}
			}
		}
	})
}

func rereadEdge(t *testing.T, lr plog.LogRecord) {
	t.Helper()
	want, ok, err := LogToEdge(lr)
	if !ok || err != nil {
		return
	}
	to := plog.NewLogRecord()
	EdgeToLog(&want, to)
	got, ok, err := LogToEdge(to)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{want.Src, want.Dst, want.At, want.Lower, want.Upper, want.Samples, want.Source, want.Stamps, want.Stepped},
		[]any{got.Src, got.Dst, got.At, got.Lower, got.Upper, got.Samples, got.Source, got.Stamps, got.Stepped})
}

func rereadModel(t *testing.T, lr plog.LogRecord) {
	t.Helper()
	want, ok, err := LogToModel(lr)
	if !ok || err != nil {
		return
	}
	to := plog.NewLogRecord()
	ModelToLog(&want, to)
	got, ok, err := LogToModel(to)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []any{want.Clock, want.Timeline, want.From, want.Until, want.At, want.Offset, want.Bound, want.Stepped, want.Untrusted, want.Undated},
		[]any{got.Clock, got.Timeline, got.From, got.Until, got.At, got.Offset, got.Bound, got.Stepped, got.Untrusted, got.Undated})
}
