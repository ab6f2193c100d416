// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter/internal/metadatatest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
)

// Each clock event goes to a record of its key, with the host that it is of. Several of one key share a record, the last
// one at its end. What is no clock event is refused: a compacted topic would have no key for it.
func TestLogs_ByClock_OneRecordForEachKey(t *testing.T) {
	c := fakeBrokers(t, kfake.SeedTopics(3, "lockstep-clocks"))
	cfg := configFor(c.ListenAddrs())
	cfg.Logs = TopicConfig{Topic: "lockstep-clocks", PartitionBy: byClock}
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	logs, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), cfg)
	logs = begin(t, logs, err)

	ld := plog.NewLogs()
	for _, host := range []string{"a", "b"} {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("host.id", host)
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		for at := range int64(2) {
			e := model.ClockEdge{Src: "host:" + host + "/1/raw", Dst: "host:x/1/raw", Source: model.EdgeProbe, Stamps: model.StampKernel, At: at, Lower: -1, Upper: 1}
			clockmap.EdgeToLog(&e, records.AppendEmpty())
		}
		clockmap.ModelToLog(&model.ClockModel{Clock: "host:" + host + "/1/raw", Timeline: "timeline:x"}, records.AppendEmpty())
		records.AppendEmpty().SetEventName("lockstep.finding")
	}
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))

	ats := map[string][]int64{}
	for _, r := range written(t, c.ListenAddrs(), "lockstep-clocks", 4) {
		assert.Equal(t, model.Partition(r.Key, 3), r.Partition)
		assert.Equal(t, "clock", header(r, headerPartitionBy))
		got, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(r.Value)
		require.NoError(t, err)
		for _, rl := range got.ResourceLogs().All() {
			host, _ := rl.Resource().Attributes().Get("host.id")
			lr := rl.ScopeLogs().At(0).LogRecords().At(0)
			assert.Equal(t, string(r.Key), clockmap.Key(lr))
			assert.Contains(t, string(r.Key), "host:"+host.AsString()+"/1/raw")
			if e, ok, _ := clockmap.LogToEdge(lr); ok {
				ats[host.AsString()] = append(ats[host.AsString()], e.At)
			}
		}
	}
	assert.Equal(t, map[string][]int64{"a": {0, 1}, "b": {0, 1}}, ats)
	assert.EqualValues(t, 6, counted(t, tel, "items", "acknowledged"))
	assert.EqualValues(t, 2, counted(t, tel, "items", "refused"))
}
