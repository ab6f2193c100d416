// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
)

const clocksTopic = "lockstep-clocks"

// clocksSettings are those of the topic of clocks in docs/kafka.md.
var clocksSettings = map[string]string{
	"cleanup.policy": "compact,delete", "segment.ms": "600000", "retention.ms": "3600000", "message.timestamp.type": "LogAppendTime",
}

// clockWorld is hosts of which the clocks are known, an agent that writes edges of them, and gateways.
type clockWorld struct {
	kafka    *kafka
	env      map[string]string
	agent    *kafkaAgent
	gateways []*clockGateway
	spans    uint64
	began    time.Time
}

// clockGateway is a gateway that writes to a topic of its own.
type clockGateway struct {
	*killable
	jobs string
}

// gauge returns the sum of a metric at this moment.
func (g *clockGateway) gauge(name string) (int64, error) {
	m := &meter{url: g.meter.url, done: map[string]int64{}}
	if m.read(); m.life == nil {
		return 0, fmt.Errorf("read metrics from %s: got none", m.url)
	}
	return m.total(name), nil
}

// clockSkews are by how much the real-time clocks of the hosts are ahead: their median is right.
var clockSkews = []time.Duration{0, 3 * time.Millisecond, -2 * time.Millisecond}

func rawClock(host int) string      { return fmt.Sprintf("host:clocks-%d/b/raw", host) }
func realtimeClock(host int) string { return fmt.Sprintf("host:clocks-%d/b/realtime", host) }

// realtimeOf is what the real-time clock of a host reads: each is slewed, too.
func (w *clockWorld) realtimeOf(host int, at time.Time) time.Time {
	slewed := at.Sub(w.began).Nanoseconds() * []int64{15, -40, 60}[host] / 1_000_000
	return at.Add(clockSkews[host] + time.Duration(slewed))
}

// rawOf is what the raw clock of a host reads.
func rawOf(host int, at time.Time) int64 { return at.UnixNano() - int64(host+1)*1e15 }

// edgesAt are what a window of a second that ends now says of all clocks.
func (w *clockWorld) edgesAt(now time.Time, random *rand.Rand) plog.Logs {
	const window = int64(time.Second)
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	add := func(src, dst, source string, at, offset, half int64, drift float64) {
		noise := random.Int64N(half) - half/2
		e := model.ClockEdge{
			Src: src, Dst: dst, Source: source, Stamps: model.StampKernel, At: at, Span: window, Samples: 100,
			Lower: offset - half + noise, Upper: offset + half + noise, Offset: offset + noise, Sigma: float64(half) / 4,
			Drift: drift, DriftBound: 1e-6,
		}
		clockmap.EdgeToLog(&e, records.AppendEmpty())
	}
	mid := now.Add(-time.Duration(window / 2))
	for i := range clockSkews {
		at := rawOf(i, mid)
		rate := float64(w.realtimeOf(i, now).Sub(w.realtimeOf(i, mid)))/float64(now.Sub(mid)) - 1
		add(rawClock(i), realtimeClock(i), model.EdgePair, at, w.realtimeOf(i, mid).UnixNano()-at, 500, rate)
		for j := range i {
			add(rawClock(j), rawClock(i), model.EdgeProbe, rawOf(j, mid), at-rawOf(j, mid), 5_000, 0)
		}
	}
	return ld
}

// measure sends edges of all clocks to the agent, until the test ends.
func (w *clockWorld) measure(t *testing.T) {
	t.Helper()
	url := strings.TrimSuffix(w.agent.url, "traces") + "logs"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(1, 2))
		for ticker := time.NewTicker(500 * time.Millisecond); ctx.Err() == nil; {
			body, _ := (&plog.JSONMarshaler{}).MarshalLogs(w.edgesAt(time.Now(), random))
			_ = accepted(ctx, http.DefaultClient, url, body)
			select {
			case <-ctx.Done():
				ticker.Stop()
			case <-ticker.C:
			}
		}
	}()
}

func newClockWorld(t *testing.T, k *kafka) *clockWorld {
	t.Helper()
	w := &clockWorld{kafka: k, began: time.Now(), env: map[string]string{
		"LOCKSTEP_KAFKA_BROKERS": k.plain, "LOCKSTEP_KAFKA_OPERATIONS": "clocks-operations", "LOCKSTEP_KAFKA_EVENTS": "clocks-events",
		"LOCKSTEP_KAFKA_JOB_EVENTS": "clocks-job-events", "LOCKSTEP_KAFKA_CLOCKS": "clocks-of-all",
	}}
	for _, topic := range []string{"clocks-operations", "clocks-events", "clocks-job-events", "clocks-jobs-0", "clocks-jobs-1"} {
		k.topic(t, topic, 2, nil)
	}
	w.agent = newKafkaAgent(t, k.plain, "{service: {pipelines: {logs/clocks: {receivers: [otlp], processors: [memory_limiter], exporters: [partitioned_kafka/clocks]}}}}")
	maps.Copy(w.agent.env, w.env)
	for i := range 2 {
		ports := freePorts(t, 3)
		env := maps.Clone(w.env)
		g := &clockGateway{jobs: fmt.Sprintf("clocks-jobs-%d", i)}
		env["LOCKSTEP_KAFKA_JOBS"], env["LOCKSTEP_TIMELINE_ENDPOINT"] = g.jobs, ports[2]
		g.killable = newKillable(t, "otelcol-lockstep", "gateway-kafka.yaml", ports[0], ports[1], env,
			"--config", "yaml:{receivers: {job_kafka: {session_timeout: 6s, group_id: clocks-gateways}}, extensions: {timeline: {solve_interval: 500ms}}, connectors: {clocks: {solve_interval: 500ms}}}")
		w.gateways = append(w.gateways, g)
	}
	return w
}

// spread waits until each gateway has a partition of both topics, and knows the clocks.
func (w *clockWorld) spread(t *testing.T, each int64) {
	t.Helper()
	for _, g := range w.gateways {
		if g.process == nil || !g.running() {
			continue
		}
		eventually(t, readyLimit, func() error {
			partitions, err := g.gauge("otelcol_receiver_job_kafka_partitions")
			if err != nil {
				return err
			}
			clocks, err := g.gauge("otelcol_extension_timeline_clocks")
			// The partitions of the topic of clocks are every gateway's.
			if err == nil && (partitions != each+2 || clocks != int64(2*len(clockSkews))) {
				err = fmt.Errorf("look at a gateway: got %d partitions and %d clocks; want %d and %d", partitions, clocks, each+2, 2*len(clockSkews))
			}
			return err
		}, g.process, w.kafka.process)
	}
}

// leader returns the gateway that solves.
func (w *clockWorld) leader(t *testing.T) (leads int) {
	t.Helper()
	eventually(t, readyLimit, func() error {
		var all []int
		for i, g := range w.gateways {
			if g.process != nil && g.running() {
				if leads, err := g.gauge("otelcol_extension_timeline_leads"); err == nil && leads == 1 {
					all = append(all, i)
				}
			}
		}
		if len(all) != 1 {
			return fmt.Errorf("find the gateway that solves: got %v; want one", all)
		}
		leads = all[0]
		return nil
	}, w.kafka.process)
	return leads
}

// write writes a record to a partition.
func (w *clockWorld) write(t *testing.T, topic string, partition int32, key string, value []byte) {
	t.Helper()
	c := w.kafka.config()
	c.Producer.Return.Successes, c.Producer.Partitioner = true, sarama.NewManualPartitioner
	p, err := sarama.NewSyncProducer([]string{w.kafka.plain}, c)
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	eventually(t, kafkaReadyLimit, func() error { // a partition has no leader just after it was made
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: partition, Key: sarama.StringEncoder(key), Value: sarama.ByteEncoder(value)})
		return err //nolint:wrapcheck // shown as it is
	}, w.kafka.process)
}

// corrected is where a span was put.
type corrected struct {
	start    int64
	bound    float64 // s
	timeline string
}

// send writes one span of each host to both partitions, and returns where each gateway has put it.
func (w *clockWorld) send(t *testing.T, at time.Time) (placed []map[int]corrected) {
	t.Helper()
	first := w.spans
	td := ptrace.NewTraces()
	for host := range clockSkews {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "clocks")
		rs.Resource().Attributes().PutStr("host.id", fmt.Sprintf("clocks-%d", host))
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		w.spans++
		var id pcommon.SpanID
		binary.BigEndian.PutUint64(id[:], w.spans)
		span.SetSpanID(id)
		span.SetTraceID(pcommon.TraceID(bytes.Repeat(id[:], 2)))
		span.SetName("s")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(w.realtimeOf(host, at)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(w.realtimeOf(host, at).Add(time.Millisecond)))
	}
	value, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	for p := range int32(2) {
		w.write(t, "clocks-operations", p, "", value)
	}
	for _, g := range w.gateways {
		found := map[int]corrected{}
		eventually(t, readyLimit, func() error {
			for _, m := range w.kafka.records(t, g.jobs) {
				for _, s := range spansOfRecord(t, m) {
					id := s.SpanID()
					if n := binary.BigEndian.Uint64(id[:]); n > first && n <= w.spans {
						found[int(n-first-1)] = correctedOf(s)
					}
				}
			}
			return atLeast(len(found), len(clockSkews))
		}, g.process, w.kafka.process)
		placed = append(placed, found)
	}
	return placed
}

func correctedOf(s ptrace.Span) corrected {
	c := corrected{start: int64(s.StartTimestamp()), bound: -1}
	if b, ok := s.Attributes().Get("lockstep.clock.bound"); ok {
		c.bound = b.Double()
	}
	if name, ok := s.Attributes().Get("lockstep.clock.timeline"); ok {
		c.timeline = name.Str()
	}
	return c
}

// agree checks that spans which were stamped at one moment were put there by all gateways, each within what it states,
// and returns by how much they differ at most.
func agree(t *testing.T, at time.Time, all ...map[int]corrected) (most time.Duration) {
	t.Helper()
	one := all[0][0]
	for _, placed := range all {
		for host, c := range placed {
			require.Positive(t, c.bound, "host %d: %+v", host, c)
			assert.Less(t, c.bound, 0.01, "host %d: a bound that says something", host)
			assert.Equal(t, one.timeline, c.timeline, "host %d", host)
			away := time.Duration(c.start - one.start)
			assert.LessOrEqual(t, away.Abs().Seconds(), c.bound+one.bound, "host %d: %+v and %+v", host, c, one)
			// The median of the clocks is nearly right.
			assert.Less(t, time.Duration(c.start-at.UnixNano()).Abs(), 3*time.Millisecond, "host %d", host)
			most = max(most, away.Abs())
		}
	}
	return most
}

// probesOverlay are the lines that have a node probe others, in docs/kafka.md.
var probesOverlay = regexp.MustCompile("(?s)```yaml\n(receivers:\n  owd_probe:\n.*?)```")

// An agent with the lines of the documentation writes what it measures: at first how both clocks of its host stand to
// each other.
func testNodesThatProbe(t *testing.T, k *kafka) {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(repoRoot(t), "docs", "kafka.md"))
	require.NoError(t, err)
	overlay := probesOverlay.FindSubmatch(document)
	require.NotNil(t, overlay, "lines for a node that probes")
	const topic, address = "clocks-of-nodes", "127.0.0.77"
	k.topic(t, topic, 2, clocksSettings)
	peers := filepath.Join(t.TempDir(), "peers")
	require.NoError(t, os.WriteFile(peers, []byte("n1 "+address+"\n"), 0o600))
	agent := newKafkaAgent(t, k.plain, string(overlay[1]))
	maps.Copy(agent.env, map[string]string{
		"LOCKSTEP_KAFKA_CLOCKS": topic, "LOCKSTEP_PEERS_FILE": peers, "LOCKSTEP_PROBE_ADDRESS": address, "LOCKSTEP_HOST_ID": "probes",
	})
	agent.start(t)
	agent.ready(t)
	eventually(t, readyLimit, func() error {
		keys := keysIn(t, k, topic)
		for key := range keys {
			if strings.HasPrefix(key, "lockstep.clock.edge host:probes/") && strings.HasSuffix(key, " pair ") {
				return nil
			}
		}
		return fmt.Errorf("find how the clocks of a host stand: got %v", keys)
	}, agent.process, k.process)
	assert.Zero(t, agent.end(t))
}

// keysIn returns how many records of each key a topic has, with spaces in the place of zero bytes.
func keysIn(t *testing.T, k *kafka, topic string) map[string]int {
	t.Helper()
	keys := map[string]int{}
	for _, m := range k.records(t, topic) {
		keys[strings.ReplaceAll(string(m.Key), "\x00", " ")]++
	}
	return keys
}

// What nodes measure of clocks goes through a compacted topic. A gateway that is there from the beginning, one that
// comes later, and one that was killed and has no state put spans at the same time, on one timeline; so does the one
// that solves after the first one was killed.
func testClocks(t *testing.T, k *kafka) {
	t.Helper()
	w := newClockWorld(t, k)
	w.gateways[0].start(t)
	eventually(t, readyLimit, func() error {
		status, body, err := answerOf("http://" + w.gateways[0].health + "/")
		if err == nil && (status == http.StatusOK || !strings.Contains(body, `find topic \"clocks-of-all\"`)) {
			err = fmt.Errorf("ask for health: got %d, %s; want 500 with the topic that is missing", status, body)
		}
		return err
	}, w.gateways[0].process)
	k.topic(t, "clocks-of-all", 2, clocksSettings)
	w.write(t, "clocks-of-all", 0, "lockstep.clock.model\x00poisoned\x00", []byte("\xffno protobuf"))
	w.agent.start(t)
	w.agent.ready(t)
	w.measure(t)
	w.gateways[0].ready(t)
	w.spread(t, 4)

	w.gateways[1].start(t)
	w.gateways[1].ready(t)
	w.spread(t, 2)
	before := time.Now()
	first := w.send(t, before)
	most := agree(t, before, first...)

	killed := w.leader(t)
	w.gateways[killed].kill(t)
	time.Sleep(time.Second) // the others notice nothing yet
	w.gateways[killed].start(t)
	w.gateways[killed].ready(t)
	w.spread(t, 2)
	w.leader(t)
	after := time.Now()
	most = max(most, agree(t, after, w.send(t, after)...))
	most = max(most, agree(t, before, slices.Concat(first, w.send(t, before))...))
	t.Logf("gateways differ by %v at most; bounds before the kill: %v, %v", most, first[0], first[1])

	names := keysIn(t, k, "clocks-of-all")
	assert.Equal(t, 1, names["lockstep.clock.model poisoned "])
	for i := range clockSkews {
		assert.Positive(t, names["lockstep.clock.model "+realtimeClock(i)+" "], "%v", names)
		assert.Positive(t, names["lockstep.clock.edge "+rawClock(i)+" "+realtimeClock(i)+" pair "], "%v", names)
	}
	for _, m := range k.records(t, "clocks-job-events") {
		assert.NotContains(t, string(m.Value), "lockstep.clock.model", "what gateways exchange is not for concluders")
	}
	for _, g := range w.gateways {
		assert.Contains(t, g.output.String(), "A record cannot be used, and is left out.")
		assert.Zero(t, g.end(t), g.name)
	}
	assert.Zero(t, w.agent.end(t))
}
