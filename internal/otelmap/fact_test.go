// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestFactRoundTrip(t *testing.T) {
	for _, network := range []bool{false, true} {
		want := model.Fact{
			Rank: model.Rank{JobID: "j", Incarnation: "i", Rank: 3}, Source: "nccl_ras", Kind: model.FactNCCLAsyncError,
			What: "remote process error", Network: network, Time: 9,
		}
		ld := plog.NewLogs()
		AppendFact(ld, &want)
		res, lr := record(t, ld)
		var p Problems
		got, ok := LogToFact(res, lr, &p)
		require.True(t, ok)
		assert.Equal(t, want, got)
		assert.Empty(t, p.List())
		assert.Equal(t, "lockstep.host.fact", lr.EventName())
		assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber())
		assert.Equal(t, "nccl_async_error", lr.Attributes().AsRaw()["lockstep.fact.kind"])
		_, ok = LogToFact(pcommon.NewResource(), lr, &p)
		assert.False(t, ok)
		assert.Equal(t, int64(1), p.Count())
	}
	_, ok := LogToFact(pcommon.NewResource(), plog.NewLogRecord(), nil)
	assert.False(t, ok)
}
