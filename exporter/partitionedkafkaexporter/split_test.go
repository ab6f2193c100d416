// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Halves have all items, in order, each under its own resource and scope.
func TestHalve_EveryLayout_KeepsItemsAndOrder(t *testing.T) {
	for _, layout := range [][][]int{{{4}}, {{1, 1}, {1}}, {{0, 3}, {}, {2}}, {{1}, {1}, {1}}, {{5, 2}, {4, 1}}} {
		td, ld := ptrace.NewTraces(), plog.NewLogs()
		var want []string
		for i, scopes := range layout {
			rs, rl := td.ResourceSpans().AppendEmpty(), ld.ResourceLogs().AppendEmpty()
			rs.Resource().Attributes().PutInt("r", int64(i))
			rl.Resource().Attributes().PutInt("r", int64(i))
			for j, n := range scopes {
				ss, sl := rs.ScopeSpans().AppendEmpty(), rl.ScopeLogs().AppendEmpty()
				ss.Scope().SetName(strconv.Itoa(j))
				sl.Scope().SetName(strconv.Itoa(j))
				for k := range n {
					name := strconv.Itoa(i) + "/" + strconv.Itoa(j) + "/" + strconv.Itoa(k)
					want = append(want, name)
					ss.Spans().AppendEmpty().SetName(name)
					sl.LogRecords().AppendEmpty().SetEventName(name)
				}
			}
		}
		rest, restLogs := halveTraces(td), halveLogs(ld)
		assert.Equal(t, len(want)/2, td.SpanCount(), layout)
		assert.Equal(t, len(want)/2, ld.LogRecordCount(), layout)
		assert.Equal(t, want, append(namesOf(t, td), namesOf(t, rest)...), layout)
		assert.Equal(t, want, append(eventsOf(t, ld), eventsOf(t, restLogs)...), layout)
	}
}

func namesOf(t *testing.T, td ptrace.Traces) (names []string) {
	t.Helper()
	for _, rs := range td.ResourceSpans().All() {
		r, _ := rs.Resource().Attributes().Get("r")
		for _, ss := range rs.ScopeSpans().All() {
			require.Positive(t, ss.Spans().Len(), "no empty scope")
			for _, s := range ss.Spans().All() {
				assert.Regexp(t, "^"+r.AsString()+"/"+ss.Scope().Name()+"/", s.Name())
				names = append(names, s.Name())
			}
		}
	}
	return names
}

func eventsOf(t *testing.T, ld plog.Logs) (names []string) {
	t.Helper()
	for _, rl := range ld.ResourceLogs().All() {
		r, _ := rl.Resource().Attributes().Get("r")
		for _, sl := range rl.ScopeLogs().All() {
			require.Positive(t, sl.LogRecords().Len(), "no empty scope")
			for _, lr := range sl.LogRecords().All() {
				assert.Regexp(t, "^"+r.AsString()+"/"+sl.Scope().Name()+"/", lr.EventName())
				names = append(names, lr.EventName())
			}
		}
	}
	return names
}

func TestBalance_Skew_IsLargestOverMeanOfTheLastWindow(t *testing.T) {
	var b balance
	at := time.Unix(0, 0)
	assert.Zero(t, b.skew())
	assert.Zero(t, b.resize(4, at))
	b.add(0, 30, at)
	b.add(1, 10, at)
	assert.InDelta(t, 3, b.skew(), 1e-9, "30 over the mean of 30, 10, 0 and 0")
	b.add(1, 5, at.Add(balanceWindow))
	assert.InDelta(t, 3, b.skew(), 1e-9, "that of the window before")
	b.add(2, 5, at.Add(2*balanceWindow))
	assert.InDelta(t, 4, b.skew(), 1e-9, "one of four got all")
	assert.Equal(t, 4, b.resize(8, at))
	assert.Zero(t, b.skew())
	assert.Equal(t, 8, b.partitions())
}
