// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// fakeBrokers returns a cluster in this process, which has the rules of a real one for sizes, sequences, topics
// and passwords.
func fakeBrokers(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// configFor returns a configuration that returns errors to the caller: without a queue and retries.
func configFor(brokers []string) *Config {
	c := newDefaultConfig()
	c.Brokers, c.DialTimeout = brokers, time.Second
	c.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	c.Retry.Enabled = false
	return c
}

// written reads n records from the start of a topic, with another client than the one that wrote them.
func written(t *testing.T, brokers []string, topic string, n int) (records []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer cl.Close()
	for len(records) < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err0(), "after %d of %d records", len(records), n)
		records = append(records, fetches.Records()...)
	}
	return records
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

func tracesOf(t *testing.T, r *kgo.Record) ptrace.Traces {
	t.Helper()
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(r.Value)
	require.NoError(t, err)
	return td
}

// stepOf returns the operations of one step: of each rank a kernel before each of so many collectives.
func stepOf(job string, ranks, collectives int) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range int64(ranks) {
		r := model.Rank{JobID: job, Incarnation: "inc-" + job, Rank: rank, HostName: "n"}
		var ops []model.Op
		for seq := range int64(collectives) {
			start := 1_000_000 * seq
			ops = append(
				ops, model.Op{Kind: model.KindCompute, Name: "gemm", Seq: seq, Step: model.Some(int64(1)), Start: start, End: start + 400},
				model.Op{
					Kind: model.KindCollective, Name: "AllReduce", Seq: seq, Step: model.Some(int64(1)), Start: start + 400, End: start + 900,
					Comm: model.Comm{ID: "0xc0ffee"}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeComm},
				},
			)
		}
		otelmap.AppendOps(td, &r, ops)
	}
	return td
}

// spanIDs counts the spans of traces by id.
func spanIDs(ids map[string]int, td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				ids[s.TraceID().String()+s.SpanID().String()]++
			}
		}
	}
}

// bigSpan is one span with a text of so many bytes.
func bigSpan(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName("big")
	s.Attributes().PutStr("text", strings.Repeat("x", n))
	return td
}

func logsOfJob(job string, records int) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	if job != "" {
		rl.Resource().Attributes().PutStr("lockstep.job.id", job)
	}
	sl := rl.ScopeLogs().AppendEmpty()
	for range records {
		sl.LogRecords().AppendEmpty().SetEventName("lockstep.op.open")
	}
	return ld
}

// jobIn returns a job whose spans go to a partition of two.
func jobIn(partition int32) string {
	for i := 0; ; i++ {
		if id := strconv.Itoa(i); model.Partition([]byte(id), 2) == partition {
			return id
		}
	}
}

// counted returns a sum of the exporter, by outcome; without one, of all.
func counted(t *testing.T, tel *componenttest.Telemetry, name, outcome string) (n int64) {
	t.Helper()
	m, err := tel.GetMetric("otelcol_exporter_partitioned_kafka_" + name)
	if err != nil {
		return 0 // nothing was counted
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if v, _ := p.Attributes.Value(attribute.Key("outcome")); outcome == "" || v.AsString() == outcome {
			n += p.Value
		}
	}
	return n
}

// begin starts an exporter, and ends it with the test.
func begin[E component.Component](t *testing.T, e E, err error) E {
	t.Helper()
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, e.Shutdown(context.Background())) })
	return e
}

func gaugeOf(m metricdata.Metrics) int64 {
	return m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
}
