// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter/internal/metadatatest"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/kafka"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

func newTelemetry(t *testing.T) (*componenttest.Telemetry, exporter.Settings) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return tel, metadatatest.NewSettings(tel)
}

func startTraces(t *testing.T, c *Config) (exporter.Traces, *componenttest.Telemetry) {
	t.Helper()
	tel, set := newTelemetry(t)
	e, err := newTraces(t.Context(), set, c)
	return begin(t, e, err), tel
}

func TestTraces_ByRendezvous_PartsOfACollectiveMeet(t *testing.T) {
	t.Parallel()
	const partitions, ranks, collectives = 8, 16, 64
	brokers := fakeBrokers(t, kfake.SeedTopics(partitions, defaultTraceTopic))
	e, tel := startTraces(t, configFor(brokers.ListenAddrs()))
	want := map[string]int{}
	td := stepOf("j", ranks, collectives)
	spanIDs(want, td)
	require.NoError(t, e.ConsumeTraces(t.Context(), td))

	got, members := map[string]int{}, map[int64]map[int32]int{}
	for _, r := range written(t, brokers.ListenAddrs(), defaultTraceTopic, partitions) {
		assert.Nil(t, r.Key, "a record has many rendezvous")
		assert.Equal(t, "traces", header(r, "otelcol.signal"))
		assert.Equal(t, "otlp_proto", header(r, "lockstep.encoding"))
		assert.Equal(t, "rendezvous", header(r, "lockstep.partition_by"))
		assert.Equal(t, strconv.Itoa(partitions), header(r, "lockstep.partitions"))
		one := tracesOf(t, r)
		spanIDs(got, one)
		operations, problems := otelmap.TracesToOps(one)
		assert.Empty(t, problems)
		for i := range operations {
			for _, op := range operations[i].Ops {
				if op.Kind.IsComm() {
					if members[op.Collective.Seq.V] == nil {
						members[op.Collective.Seq.V] = map[int32]int{}
					}
					members[op.Collective.Seq.V][r.Partition]++
				}
			}
		}
	}
	assert.Equal(t, want, got)
	require.Len(t, members, collectives)
	used := map[int32]bool{}
	for seq, of := range members {
		require.Len(t, of, 1, "collective %d is in one partition", seq)
		for p, n := range of {
			assert.Equal(t, ranks, n)
			used[p] = true
		}
	}
	assert.Len(t, used, partitions)
	assert.EqualValues(t, 2*ranks*collectives, counted(t, tel, "items", "acknowledged"))
	assert.EqualValues(t, partitions, counted(t, tel, "records", "acknowledged"))
	assert.Positive(t, counted(t, tel, "record_bytes", ""))
	assert.EqualValues(t, 1, counted(t, tel, "producers", ""))
}

// The partition of a job is the one that Kafka's default partitioner chooses for its key.
func TestTraces_ByJob_PartitionIsThatOfTheKey(t *testing.T) {
	t.Parallel()
	const partitions = 7
	brokers := fakeBrokers(t, kfake.SeedTopics(partitions, defaultTraceTopic))
	c := configFor(brokers.ListenAddrs())
	c.Traces.PartitionBy = byJob
	e, _ := startTraces(t, c)
	td := ptrace.NewTraces()
	const jobs = 20
	for j := range jobs {
		stepOf("job-"+strconv.Itoa(j), 2, 3).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	require.NoError(t, e.ConsumeTraces(t.Context(), td))
	kafkas := kgo.StickyKeyPartitioner(nil).ForTopic(defaultTraceTopic)
	seen := map[string]bool{}
	for _, r := range written(t, brokers.ListenAddrs(), defaultTraceTopic, jobs) {
		assert.EqualValues(t, kafkas.Partition(r, partitions), r.Partition)
		seen[string(r.Key)] = true
		assert.Equal(t, 12, tracesOf(t, r).SpanCount())
	}
	assert.Len(t, seen, jobs)
}

func TestLogs_ByJob_WithoutAJobHaveNoKey(t *testing.T) {
	brokers := fakeBrokers(t, kfake.SeedTopics(3, defaultLogTopic))
	tel, set := newTelemetry(t)
	e, err := newLogs(t.Context(), set, configFor(brokers.ListenAddrs()))
	logs := begin(t, e, err)
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOfJob("a", 3)))
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOfJob("", 2)))
	var keys []string
	for _, r := range written(t, brokers.ListenAddrs(), defaultLogTopic, 2) {
		keys = append(keys, string(r.Key))
		assert.Equal(t, "logs", header(r, "otelcol.signal"))
	}
	assert.ElementsMatch(t, []string{"a", ""}, keys)
	assert.EqualValues(t, 5, counted(t, tel, "items", "acknowledged"))
}

// A batch beyond the limit of a record is divided, whether the limit is ours or only the topic's.
func TestTraces_BatchAboveTheLimit_IsDelivered(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]struct{ ours, topics int }{
		"ours": {100_000, 1_000_000}, "the topic's": {1_000_000, 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := fakeBrokers(t)
			require.NoError(t, brokers.CreateTopic(defaultTraceTopic, 1, map[string]string{"max.message.bytes": strconv.Itoa(limits.topics)}))
			c := configFor(brokers.ListenAddrs())
			c.Producer.MaxMessageBytes, c.Producer.Compression = limits.ours, "none"
			e, tel := startTraces(t, c)
			td := stepOf("j", 8, 200)
			require.Greater(t, (&ptrace.ProtoMarshaler{}).TracesSize(td), 500_000)
			want, got := map[string]int{}, map[string]int{}
			spanIDs(want, td)
			require.NoError(t, e.ConsumeTraces(t.Context(), td))
			n := counted(t, tel, "records", "acknowledged")
			require.Greater(t, n, int64(5))
			for _, r := range written(t, brokers.ListenAddrs(), defaultTraceTopic, int(n)) {
				assert.LessOrEqual(t, len(r.Value), min(limits.ours, limits.topics))
				spanIDs(got, tracesOf(t, r))
			}
			assert.Equal(t, want, got)
			assert.Zero(t, counted(t, tel, "items", "refused"))
		})
	}
}

// A span that is larger than a record may be is dropped and counted, and nothing beside it.
func TestTraces_SpanAboveTheLimit_IsDroppedAlone(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]struct{ ours, topics int }{
		"ours": {100_000, 1_000_000}, "the topic's": {1_000_000, 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := fakeBrokers(t)
			require.NoError(t, brokers.CreateTopic(defaultTraceTopic, 1, map[string]string{"max.message.bytes": strconv.Itoa(limits.topics)}))
			c := configFor(brokers.ListenAddrs())
			c.Producer.MaxMessageBytes, c.Producer.Compression = limits.ours, "none"
			e, tel := startTraces(t, c)
			td := stepOf("j", 2, 10)
			want, got := map[string]int{}, map[string]int{}
			spanIDs(want, td)
			bigSpan(150_000).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			require.NoError(t, e.ConsumeTraces(t.Context(), td))
			for _, r := range written(t, brokers.ListenAddrs(), defaultTraceTopic, int(counted(t, tel, "records", "acknowledged"))) {
				spanIDs(got, tracesOf(t, r))
			}
			assert.Equal(t, want, got)
			assert.EqualValues(t, 1, counted(t, tel, "items", "refused"))
		})
	}
}

// What a broker does not take is returned, and what the others have taken is not.
func TestTraces_OnePartitionFails_ItsSpansAloneAreReturned(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(4, defaultTraceTopic))
	brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: defaultTraceTopic, Partitions: []int32{2}, Err: kerr.PolicyViolation, Count: -1})
	e, tel := startTraces(t, configFor(brokers.ListenAddrs()))
	td := stepOf("j", 4, 40)
	want, got := map[string]int{}, map[string]int{}
	spanIDs(want, td)
	err := e.ConsumeTraces(t.Context(), td)
	var failed consumererror.Traces
	require.ErrorAs(t, err, &failed)
	assert.ErrorContains(t, err, `write to topic "lockstep-operations"`)
	spanIDs(got, failed.Data())
	returned := len(got)
	assert.EqualValues(t, returned, counted(t, tel, "items", "returned"))
	// One error ends the epoch of the producer's id, and what is under way with it may be returned, too.
	acknowledged := counted(t, tel, "records", "acknowledged")
	require.Positive(t, acknowledged)
	for _, r := range written(t, brokers.ListenAddrs(), defaultTraceTopic, int(acknowledged)) {
		assert.NotEqualValues(t, 2, r.Partition)
		spanIDs(got, tracesOf(t, r))
	}
	assert.Equal(t, want, got, "each span is returned or written, and not both")
	assert.Positive(t, returned)
}

func TestTraces_NoBroker_ReturnsAllAndConnectsLater(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	e, tel := startTraces(t, configFor([]string{l.Addr().String()}))
	td := stepOf("j", 2, 2)
	err = e.ConsumeTraces(t.Context(), td)
	require.ErrorContains(t, err, "connect to the brokers ["+l.Addr().String()+"]")
	var failed consumererror.Traces
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 8, failed.Data().SpanCount())
	assert.False(t, consumererror.IsPermanent(err))

	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(2, defaultTraceTopic))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, e.ConsumeTraces(t.Context(), failed.Data()))
	assert.EqualValues(t, 8, counted(t, tel, "items", "acknowledged"))
}

func TestTraces_MissingTopic_IsNamed(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t)
	e, _ := startTraces(t, configFor(brokers.ListenAddrs()))
	err := e.ConsumeTraces(t.Context(), stepOf("j", 1, 1))
	assert.ErrorContains(t, err, `find topic "lockstep-operations"`)
	assert.ErrorContains(t, err, "create it with its partitions")
	require.NoError(t, brokers.CreateTopic(defaultTraceTopic, 2, nil))
	assert.NoError(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 1)), "without a restart")
}

func TestTraces_Passwords(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			brokers := fakeBrokers(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "lockstep", "right"), kfake.SeedTopics(1, defaultTraceTopic))
			c := configFor(brokers.ListenAddrs())
			c.Auth.SASL = configoptional.Some(kafka.SASLConfig{Mechanism: mechanism, Username: "lockstep", Password: "right"})
			e, _ := startTraces(t, c)
			require.NoError(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 1)))
			c.Auth.SASL.Get().Password = "wrong"
			e, _ = startTraces(t, c)
			err := e.ConsumeTraces(t.Context(), stepOf("j", 1, 1))
			// A real broker answers why, which e2e shows. This one ends the connection.
			assert.ErrorContains(t, err, "and the user and the password")
			assert.NotContains(t, err.Error(), "wrong")
		})
	}
}

// More partitions are used once the view of the cluster is read again.
func TestTraces_PartitionsAreAdded_AreUsed(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(2, defaultTraceTopic))
	c := configFor(brokers.ListenAddrs())
	c.Metadata.RefreshInterval = time.Second
	e, tel := startTraces(t, c)
	require.NoError(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 50)))
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers.ListenAddrs()...))
	require.NoError(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreatePartitions(t.Context(), 3, defaultTraceTopic)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		require.NoError(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 50)))
		m, err := tel.GetMetric("otelcol_exporter_partitioned_kafka_partitions")
		require.NoError(t, err)
		return gaugeOf(m) == 5
	}, 10*time.Second, 100*time.Millisecond)
}

// A broker that takes connections and does not answer holds up neither an attempt beyond its timeout nor the end.
func TestTraces_SilentBroker_EndsInTime(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	c := configFor([]string{l.Addr().String()})
	c.Timeout.Timeout = 200 * time.Millisecond
	e, _ := startTraces(t, c)
	err = e.ConsumeTraces(t.Context(), stepOf("j", 1, 1))
	var failed consumererror.Traces
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 2, failed.Data().SpanCount())

	c.Timeout.Timeout = time.Hour
	_, set := newTelemetry(t)
	slow, err := newTraces(t.Context(), set, c)
	require.NoError(t, err)
	require.NoError(t, slow.Start(t.Context(), componenttest.NewNopHost()))
	sent := make(chan error)
	go func() { sent <- slow.ConsumeTraces(t.Context(), stepOf("j", 1, 1)) }()
	time.Sleep(50 * time.Millisecond) // so that it is likely to wait for the broker
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	ended := make(chan error)
	go func() { ended <- slow.Shutdown(ctx) }()
	require.Error(t, <-sent)
	require.NoError(t, <-ended)
	assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
}

func TestTraces_ClocksApart_ReturnsThatReason(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(1, defaultTraceTopic))
	brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: defaultTraceTopic, Err: kerr.InvalidTimestamp, Count: -1})
	e, _ := startTraces(t, configFor(brokers.ListenAddrs()))
	err := e.ConsumeTraces(t.Context(), stepOf("j", 1, 1))
	assert.ErrorContains(t, err, "message.timestamp.type=LogAppendTime")
	assert.NotErrorIs(t, err, errEnded)
}

// A job whose id is longer than a record is written under the name that analyses know it by.
func TestLogs_LongJobID_IsCut(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(3, defaultLogTopic))
	tel, set := newTelemetry(t)
	e, err := newLogs(t.Context(), set, configFor(brokers.ListenAddrs()))
	logs := begin(t, e, err)
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOfJob(strings.Repeat("x", 600_000), 1)))
	assert.EqualValues(t, 1, counted(t, tel, "items", "acknowledged"))
	assert.LessOrEqual(t, len(written(t, brokers.ListenAddrs(), defaultLogTopic, 1)[0].Key), 1024)
}

// A span that the topic takes alone is written, also where it was refused together with others.
func TestTraces_SpanThatTheTopicTakes_IsWritten(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t)
	require.NoError(t, brokers.CreateTopic(defaultTraceTopic, 1, map[string]string{"max.message.bytes": "900000"}))
	c := configFor(brokers.ListenAddrs())
	c.Producer.Compression = "none"
	e, tel := startTraces(t, c)
	td := bigSpan(800_000)
	bigSpan(150_000).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	require.NoError(t, e.ConsumeTraces(t.Context(), td))
	require.NoError(t, e.ConsumeTraces(t.Context(), bigSpan(800_001)), "nor later")
	assert.EqualValues(t, 3, counted(t, tel, "items", "acknowledged"))
	assert.Zero(t, counted(t, tel, "items", "refused"))
}

// Where one call fails for good, what others have under way is answered, and not written twice.
func TestTraces_OneCallFails_OthersAreAnswered(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(2, defaultTraceTopic))
	require.NoError(t, brokers.MoveTopicPartition(defaultTraceTopic, 0, 0))
	require.NoError(t, brokers.MoveTopicPartition(defaultTraceTopic, 1, 1))
	brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: defaultTraceTopic, Partitions: []int32{1}, Err: kerr.InvalidTimestamp, Count: -1})
	arrived, release := make(chan struct{}), make(chan struct{})
	brokers.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		brokers.KeepControl()
		if brokers.CurrentNode() == 0 {
			brokers.SleepControl(func() {
				close(arrived)
				<-release
			})
		}
		return nil, nil, false
	})
	c := configFor(brokers.ListenAddrs())
	c.Traces.PartitionBy = byJob
	e, _ := startTraces(t, c)
	good := make(chan error)
	go func() { good <- e.ConsumeTraces(context.Background(), stepOf(jobIn(0), 1, 1)) }()
	<-arrived
	require.Error(t, e.ConsumeTraces(t.Context(), stepOf(jobIn(1), 1, 1)))
	close(release)
	require.NoError(t, <-good)
	assert.Len(t, written(t, brokers.ListenAddrs(), defaultTraceTopic, 1), 1)
}
