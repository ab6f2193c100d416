// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// spanRecord returns a record with one span of a number, which a test changes.
func spanRecord(t *testing.T, number int, change func(ptrace.ResourceSpans, ptrace.Span)) []byte {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	var id [8]byte
	for i := range id {
		id[i] = byte((number + 1) >> (8 * (7 - i)))
	}
	s.SetSpanID(id)
	s.SetTraceID([16]byte{15: 1})
	s.SetName("s")
	s.SetStartTimestamp(1)
	s.SetEndTimestamp(2)
	change(rs, s)
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return b
}

func plainSpan(ptrace.ResourceSpans, ptrace.Span) {}

// nested returns attributes in attributes, so many levels deep.
func nested(to pcommon.Map, levels int) {
	for range levels {
		to = to.PutEmptyMap("a")
	}
	to.PutBool("a", true)
}

// poison is a record that no writer of ours makes.
type poison struct {
	name    string
	value   func(t *testing.T, number int) []byte
	headers map[string]string
	arrives bool   // its span goes on
	reason  string // for which it is left out; "": it is not
}

// Those with attributes are below the 1,048,588 bytes that a broker takes.
var poisons = []poison{
	{name: "no protobuf", reason: "damaged", value: func(*testing.T, int) []byte { return []byte("\xffno protobuf") }},
	{name: "cut", reason: "damaged", value: func(t *testing.T, number int) []byte {
		t.Helper()
		b := spanRecord(t, number, plainSpan)
		return b[:len(b)-1]
	}},
	{name: "an encoding of a newer version", reason: "encoding", headers: map[string]string{"lockstep.encoding": "columns_v9"}, value: func(*testing.T, int) []byte { return []byte("{}") }},
	{name: "no value", value: func(*testing.T, int) []byte { return nil }},
	{name: "a newer schema", arrives: true, value: func(t *testing.T, number int) []byte {
		t.Helper()
		b := spanRecord(t, number, func(rs ptrace.ResourceSpans, s ptrace.Span) {
			rs.SetSchemaUrl("https://opentelemetry.io/schemas/9.99.0")
			rs.Resource().Attributes().PutStr("lockstep.not.known.yet", "x")
			s.Attributes().PutInt("lockstep.not.known.yet", 1)
		})
		return append(b, 0x98, 0x06, 0x01) // field 99 of the message
	}},
	{name: "many attributes", arrives: true, value: func(t *testing.T, number int) []byte {
		t.Helper()
		return spanRecord(t, number, func(_ ptrace.ResourceSpans, s ptrace.Span) {
			for i := range 20_000 {
				nested(s.Attributes().PutEmptyMap(strconv.Itoa(i)), 2)
			}
		})
	}},
	{name: "attributes too deep for the protocol's decoder", reason: "damaged", value: func(t *testing.T, number int) []byte {
		t.Helper()
		return spanRecord(t, number, func(_ ptrace.ResourceSpans, s ptrace.Span) { nested(s.Attributes(), 40_000) })
	}},
}

// Records that no writer of ours makes cost the records around them nothing: those that cannot be used are counted by
// their reason, the others go on, and the offset passes all of them.
func testPoisonedRecords(t *testing.T, k *kafka) {
	t.Helper()
	w := &stageWorld{kafka: k, prefix: "poison-"}
	for _, topic := range []string{operationsTopic, eventsTopic, jobsTopic, jobEventsTopic} {
		k.topic(t, w.prefix+topic, 1, nil)
	}
	k.topic(t, w.prefix+clocksTopic, 1, clocksSettings)
	good := func(number int) { k.put(t, w.prefix+operationsTopic, 0, spanRecord(t, number, plainSpan), nil) }
	good(0)
	want, skipped, number := 1, map[string]int{}, 1
	for _, p := range poisons {
		value := p.value(t, number)
		assert.Less(t, len(value), 1_000_000, p.name)
		k.put(t, w.prefix+operationsTopic, 0, value, p.headers)
		good(number + 1)
		want++
		if p.arrives {
			want++
		}
		if p.reason != "" {
			skipped[p.reason]++
		}
		number += 2
	}
	gateway := w.newGateway(t)
	gateway.start(t)
	gateway.ready(t)
	eventually(t, readyLimit, func() error { return atLeast(len(spansIn(t, k, w.prefix+jobsTopic)), want) }, gateway.process, k.process)
	assert.Len(t, spansIn(t, k, w.prefix+jobsTopic), want)
	end := int64(1 + 2*len(poisons))
	eventually(t, readyLimit, func() error { return k.committed(w.prefix+"gateways", w.prefix+operationsTopic, 0, end) }, gateway.process)
	text, err := get("http://" + gateway.env["LOCKSTEP_TELEMETRY_HOST"] + ":" + gateway.env["LOCKSTEP_TELEMETRY_PORT"] + "/metrics")
	require.NoError(t, err)
	for reason, n := range skipped {
		assert.Equal(t, n, skippedFor(text, reason), reason)
	}
	assert.Equal(t, 4, strings.Count(gateway.output.String(), "A record cannot be used, and is left out."))
	assert.Zero(t, gateway.end(t))
}

// skippedFor returns how many records a collector's metrics count for a reason.
func skippedFor(metrics []byte, reason string) (n int) {
	for line := range bytes.Lines(metrics) {
		if bytes.HasPrefix(line, []byte("otelcol_receiver_job_kafka_records_skipped")) && bytes.Contains(line, fmt.Appendf(nil, "reason=%q", reason)) {
			fields := bytes.Fields(line)
			value, err := strconv.ParseFloat(string(fields[len(fields)-1]), 64)
			if err == nil {
				n += int(value)
			}
		}
	}
	return n
}

// committed returns an error unless a group has committed an offset.
func (k *kafka) committed(group, topic string, partition int32, want int64) error {
	admin, err := sarama.NewClusterAdmin([]string{k.plain}, k.config())
	if err != nil {
		return err //nolint:wrapcheck // shown as it is
	}
	defer func() { _ = admin.Close() }()
	answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {partition}})
	if err != nil {
		return err //nolint:wrapcheck // shown as it is
	}
	block := answer.GetBlock(topic, partition)
	if block == nil {
		return errors.New("read the committed offset: got none")
	}
	if block.Offset != want {
		return fmt.Errorf("read the committed offset of %s/%d: got %d; want %d", topic, partition, block.Offset, want)
	}
	return nil
}

// Topics are deleted under a gateway and a concluder, and created again with fewer partitions. Both name it, and what
// is written then arrives without a restart.
func testTopicsCreatedAnew(t *testing.T, k *kafka) {
	t.Helper()
	w := &stageWorld{kafka: k, prefix: "anew-", sink: newSpanSink(t)}
	all := []string{w.prefix + operationsTopic, w.prefix + eventsTopic, w.prefix + jobsTopic, w.prefix + jobEventsTopic}
	for _, topic := range all {
		k.topic(t, topic, 4, nil)
	}
	k.topic(t, w.prefix+clocksTopic, 1, clocksSettings)
	const quick = "yaml:{receivers: {job_kafka: {metadata: {refresh_interval: 1s}}}}"
	gateway, concluder := w.newGateway(t), w.newConcluder(t, 0)
	gateway.args = append(gateway.args, "--config", quick, "--config", "yaml:{exporters: {partitioned_kafka: {metadata: {refresh_interval: 1s}}}}")
	concluder.args = append(concluder.args, "--config", quick)
	for _, c := range []*killable{gateway, concluder} {
		c.start(t)
		c.ready(t)
	}
	written := 0
	write := func(n int, partitions int32) {
		for i := range n {
			k.put(t, all[0], int32(i)%partitions, loadRecord(t, written), nil)
			written++
		}
		eventually(t, readyLimit, func() error {
			if missing := w.sink.missing(written); missing > 0 {
				return fmt.Errorf("find %d spans: %d are missing", written, missing)
			}
			return nil
		}, gateway.process, concluder.process)
	}
	write(40, 4)
	eventually(t, readyLimit, func() error { return k.committed(w.prefix+"gateways", all[0], 0, 10) }, gateway.process)
	for _, topic := range all {
		require.NoError(t, k.admin(t).DeleteTopic(topic))
	}
	healthHas(t, gateway, "create it with its partitions first")
	healthHas(t, concluder, "create it with its partitions first")
	for _, topic := range all {
		k.anew(t, topic, 2)
	}
	write(6, 2)   // fewer than were read
	for range 2 { // at once, and with as many partitions
		for _, topic := range all {
			require.NoError(t, k.admin(t).DeleteTopic(topic))
			k.anew(t, topic, 2)
		}
		write(4, 2)
	}
	for _, c := range []*killable{gateway, concluder} {
		c.ready(t)
		assert.Zero(t, c.end(t))
	}
}

// loadRecord returns a record with one span of the load, as the sink counts it.
func loadRecord(t *testing.T, number int) []byte {
	t.Helper()
	return spanRecord(t, number, func(_ ptrace.ResourceSpans, s ptrace.Span) { s.SetName(loadName) })
}

// anew creates a topic that was deleted, once the broker has done so.
func (k *kafka) anew(t *testing.T, topic string, partitions int32) {
	t.Helper()
	admin := k.admin(t)
	eventually(t, kafkaReadyLimit, func() error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false)
	}, k.process)
}
