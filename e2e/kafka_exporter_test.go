// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

const (
	operationsTopic = "lockstep-operations"
	eventsTopic     = "lockstep-events"
	jobsTopic       = "lockstep-jobs"
	jobEventsTopic  = "lockstep-job-events"
)

// kafkaAgent is an agent that writes to Kafka.
type kafkaAgent struct {
	*killable
	state string // its directory
	url   string // of spans over HTTP
}

// newKafkaAgent returns an agent of agent-kafka.yaml with additions to it, which is not started.
func newKafkaAgent(t *testing.T, broker string, overlays ...string) *kafkaAgent {
	t.Helper()
	ports := freePorts(t, 4)
	dir := t.TempDir()
	var args []string
	for _, overlay := range overlays {
		args = append(args, "--config", "yaml:"+overlay)
	}
	k := newKillable(t, "otelcol-lockstep-agent", "agent-kafka.yaml", ports[0], ports[1], map[string]string{
		"LOCKSTEP_OTLP_GRPC_ENDPOINT": ports[2], "LOCKSTEP_OTLP_HTTP_ENDPOINT": ports[3], "LOCKSTEP_KAFKA_BROKERS": broker,
		"LOCKSTEP_DIR": ringDirectory(t), "LOCKSTEP_TRACES": t.TempDir(), "LOCKSTEP_DUMPS": t.TempDir(), "LOCKSTEP_STATE": dir,
	}, args...)
	return &kafkaAgent{killable: k, state: dir, url: "http://" + ports[3] + "/v1/traces"}
}

// spansIn returns how often each span of the load is in a topic, by number.
func spansIn(t *testing.T, k *kafka, topic string) map[int]int {
	t.Helper()
	spans := map[int]int{}
	for _, m := range k.records(t, topic) {
		for _, span := range spansOfRecord(t, m) {
			id := span.SpanID()
			n, err := strconv.ParseInt(id.String(), 16, 64)
			require.NoError(t, err)
			spans[int(n-1)]++
		}
	}
	return spans
}

func spansOfRecord(t *testing.T, m *sarama.ConsumerMessage) (spans []ptrace.Span) {
	t.Helper()
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(m.Value)
	require.NoError(t, err)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				spans = append(spans, s)
			}
		}
	}
	return spans
}

// missingIn returns how many of n spans of the load a topic lacks, and how often one is there again.
func missingOf(n int, spans map[int]int) (missing, twice int) {
	for i := range n {
		if spans[i] == 0 {
			missing++
		}
	}
	for _, times := range spans {
		twice += times - 1
	}
	return missing, twice
}

// drained waits until all spans of the load that were acknowledged are in the topic.
func drained(t *testing.T, k *kafka, topic string, l *spanLoad, needs ...*process) (twice int) {
	t.Helper()
	eventually(t, 2*readyLimit, func() error {
		missing, again := missingOf(l.acknowledged(), spansIn(t, k, topic))
		if twice = again; missing > 0 {
			return fmt.Errorf("find the spans of the load in Kafka: %d of %d are missing", missing, l.acknowledged())
		}
		return nil
	}, needs...)
	return twice
}

// Tests that leave the broker alone share one, and have topics of their own.
func TestKafka_OneBroker(t *testing.T) {
	t.Parallel()
	k := startKafka(t, true, nil)
	k.topic(t, eventsTopic, 2, nil)
	for name, test := range map[string]func(*testing.T, *kafka){
		"BatchAboveTheBrokersLimit_IsDeliveredWhole": testBatchAboveTheLimit,
		"Faults_AreNamedAndEnd":                      testFaults,
		"Passwords_AreTaken":                         testPasswords,
		"PartitionsAreAdded_NothingIsLost":           testPartitionsAreAdded,
		"Gateways_FindingsAreEqualByID":              testGateways,
		"MembersChange_NoStepIsConcludedTwice":       testMembersChange,
		"PoisonedRecords_CountedAndPassed":           testPoisonedRecords,
		"TopicsCreatedAnew_NamedAndReadOn":           testTopicsCreatedAnew,
		"DiskFull_NamedAndNothingIsLost":             testDiskFull,
		"QueueDamaged_SetAsideAndNamed":              testQueueDamaged,
		"ConcluderDiskFull_NamedAndReadsOn":          testConcluderDiskFull,
		"Clocks_AllGatewaysAgree":                    testClocks,
		"Clocks_NodesThatProbe_WriteEdges":           testNodesThatProbe,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// A request of 5 MB goes through a topic that takes records of 1 MB, in pieces, whole.
func testBatchAboveTheLimit(t *testing.T, k *kafka) {
	t.Helper()
	const topic = "batch"
	k.topic(t, topic, 2, map[string]string{"max.message.bytes": "1000000"})
	// Without batches of ours, the exporter gets the request as it is. Without compression, a record has its size.
	agent := newKafkaAgent(t, k.plain, `{
receivers: {otlp: {protocols: {http: {max_request_body_size: 30000000}}}},
exporters: {partitioned_kafka: {producer: {compression: none}, sending_queue: {batch: {min_size: 0, max_size: 0}}}}}`)
	agent.env["LOCKSTEP_KAFKA_OPERATIONS"] = topic
	agent.start(t)
	agent.ready(t)
	const spans, text = 5000, 1000
	body := spansWithText(spans, text)
	require.True(t, accepted(t.Context(), http.DefaultClient, agent.url, body))
	eventually(t, readyLimit, func() error {
		missing, twice := missingOf(spans, spansIn(t, k, topic))
		if missing > 0 || twice > 0 {
			return fmt.Errorf("find %d spans: %d are missing, %d are there twice", spans, missing, twice)
		}
		return nil
	}, agent.process, k.process)
	total := 0
	for _, m := range k.records(t, topic) {
		assert.LessOrEqual(t, len(m.Value), 1_000_000)
		total += len(m.Value)
	}
	assert.Greater(t, total, 5_000_000)
	assert.Zero(t, agent.end(t))
}

// spansWithText returns a request of numbered spans of one trace, each with a text.
func spansWithText(n, text int) []byte { return spansWithNumbers(0, n, text) }

// spansWithNumbers returns such a request whose spans have the numbers from one on.
func spansWithNumbers(first, n, text int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"resourceSpans":[{"scopeSpans":[{"spans":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"traceId":"%032x","spanId":"%016x","name":"s","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[{"key":"t","value":{"stringValue":%q}}]}`,
			(first+i)/50+1, first+i+1, strings.Repeat("x", text))
	}
	b.WriteString(`]}]}]}`)
	return b.Bytes()
}

// While the broker is away the agent's memory stays flat, and its queue on disk below its limit. What finds no room is
// refused and counted, and all else is delivered afterwards. Collectors that start meanwhile name the brokers in their
// health, and read once the broker is back. LOCKSTEP_OUTAGE sets for how many seconds it is away, 300 in the full tier,
// LOCKSTEP_RATE how many spans a second there are.
func TestKafka_BrokerGone_QueueHoldsAndMemoryIsFlat(t *testing.T) {
	t.Parallel()
	outage := time.Duration(environmentNumber(t, "LOCKSTEP_OUTAGE", tier.N(t, 10, 300))) * time.Second
	rate := environmentNumber(t, "LOCKSTEP_RATE", loadRate)
	k := startKafka(t, false, nil)
	k.topics(t, 8)
	agent := newKafkaAgent(t, k.plain)
	agent.start(t)
	agent.ready(t)
	load := startLoadAt(t, agent.url, rate)
	eventually(t, readyLimit, func() error { return atLeast(len(spansIn(t, k, operationsTopic)), 100) }, agent.process, k.process)
	k.kill(t)
	began := time.Now()
	late := startWithoutBroker(t, k)
	var early, last, resident, disk, queued int64
	for ; time.Since(began) < outage; time.Sleep(250 * time.Millisecond) {
		own := ownBytes(t, agent.cmd.Process.Pid)
		if time.Since(began) < outage/2 {
			early = max(early, own)
		} else {
			last = max(last, own)
		}
		resident = max(resident, residentBytes(t, agent.cmd.Process.Pid))
		disk, queued = max(disk, bytesBelow(t, agent.state)), max(queued, agent.meter.total("otelcol_exporter_queue_size"))
	}
	k.start(t)
	k.ready(t)
	for _, c := range late {
		c.ready(t)
		eventually(t, readyLimit, func() error { return atLeast(int(c.meter.total("otelcol_receiver_job_kafka_records")), 1) }, c.process)
		assert.Zero(t, c.end(t))
	}
	load.stop()
	twice := drained(t, k, operationsTopic, load, agent.process, k.process)
	agent.meter.read()
	refused := load.refused.Load()
	t.Logf("outage %v at %d spans/s: %d spans acknowledged, all delivered, %d twice; %d refused; memory %d MB in the first half, %d MB in the second, RSS with pages of the queue's file %d MB; queue %d kB, on disk %d MB",
		outage, rate, load.acknowledged(), twice, refused, early>>20, last>>20, resident>>20, queued>>10, disk>>20)
	assert.LessOrEqual(t, float64(last), 1.1*float64(early)+16<<20, "memory grows")
	assert.LessOrEqual(t, queued, int64(128<<20), "sending_queue::queue_size")
	assert.LessOrEqual(t, disk, int64(512<<20), "file_storage::max_size")
	assert.Equal(t, refused, agent.meter.total("otelcol_receiver_refused_spans")+agent.meter.total("otelcol_receiver_failed_spans"), "what senders were told")
	if rate == loadRate {
		assert.Zero(t, refused)
		assert.Zero(t, agent.meter.total("otelcol_exporter_enqueue_failed_spans"))
	}
	assert.Zero(t, agent.end(t))
}

// startWithoutBroker starts a gateway and a concluder while the broker is away. Both start, and name it in their health.
func startWithoutBroker(t *testing.T, k *kafka) []*killable {
	t.Helper()
	w := &stageWorld{kafka: k, sink: newSpanSink(t)}
	all := []*killable{w.newGateway(t), w.newConcluder(t, 0)}
	for _, c := range all {
		c.start(t)
	}
	for _, c := range all {
		healthHas(t, c, k.plain)
		assert.Contains(t, c.output.String(), "Kafka cannot be read, and is tried again.")
	}
	return all
}

func atLeast(got, want int) error {
	if got < want {
		return fmt.Errorf("count: got %d; want %d at least", got, want)
	}
	return nil
}

// residentBytes returns the memory that a process has.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// ownBytes returns the memory that a process has without pages of files, which the kernel takes back. The queue's file
// is mapped, so that its pages are resident.
func ownBytes(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	require.FailNow(t, "read memory", "got no RssAnon of process %d", pid)
	return 0
}

func bytesBelow(t *testing.T, dir string) (n int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	}))
	return n
}

// An agent and the broker are killed at random moments under constant load. What the agent has acknowledged is
// in Kafka. LOCKSTEP_KILLS sets how often, LOCKSTEP_SEED repeats the moments.
func TestKafka_AgentAndBrokerKilled_NothingIsLost(t *testing.T) {
	if !tier.Full(t) {
		t.Skip("TestKafka_StagesKilled_NothingIsLost kills both, too: the full tier runs this as well")
	}
	t.Parallel()
	kills := environmentNumber(t, "LOCKSTEP_KILLS", 30)
	seed := environmentNumber(t, "LOCKSTEP_SEED", int(time.Now().UnixNano()))
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	k := startKafka(t, false, nil)
	k.topic(t, operationsTopic, 8, nil)
	k.topic(t, eventsTopic, 2, nil)
	agent := newKafkaAgent(t, k.plain)
	agent.start(t)
	agent.ready(t)
	load := startLoad(t, agent.url)
	brokerKills := 0
	for i := range kills {
		time.Sleep(time.Duration(random.Int64N(int64(4 * time.Second))))
		if i%2 == 0 {
			k.kill(t)
			brokerKills++
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
			k.start(t)
			k.ready(t)
			continue
		}
		agent.kill(t)
		agent.start(t)
	}
	agent.ready(t)
	load.stop()
	twice := drained(t, k, operationsTopic, load, agent.process, k.process)
	t.Logf("seed %d; SIGKILLs: agent %d, broker %d; spans: produced %d, delivered all, duplicated %d, reported lost %d, silently lost 0; records returned to the queue %d, producers %d",
		seed, agent.kills, brokerKills, load.acknowledged(), twice, agent.meter.total("otelcol_exporter_send_failed_spans"),
		agent.meter.total("otelcol_exporter_partitioned_kafka_records"), agent.meter.total("otelcol_exporter_partitioned_kafka_producers"))
	assert.Zero(t, agent.meter.total("otelcol_extension_queue_storage_requests_lost"))
	assert.Zero(t, agent.end(t))
}

// send sends one span until the agent takes it.
func sendOne(t *testing.T, agent *kafkaAgent, first int) {
	t.Helper()
	eventually(t, readyLimit, func() error {
		if !accepted(context.Background(), http.DefaultClient, agent.url, spansFrom(first)) {
			return fmt.Errorf("send spans to %s: refused", agent.url)
		}
		return nil
	}, agent.process)
}
