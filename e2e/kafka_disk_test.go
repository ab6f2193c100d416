// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// smallDisk returns a directory on a disk of its own of some MiB. It needs the right to mount.
func smallDisk(t *testing.T, mib int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skipf("mount a disk of %d MiB: %v; root may, in a container with CAP_SYS_ADMIN", mib, err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(dir, 2)) }) // MNT_DETACH: a process may still have a file open
	return dir
}

// fill writes a file of so many bytes at most, less where the disk is full.
func fill(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	for block := make([]byte, 4096); size > 0; size -= len(block) {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
	}
	require.NoError(t, f.Close())
}

// healthHas waits until a collector's health is an error with a text.
func healthHas(t *testing.T, c *killable, text string) {
	t.Helper()
	eventually(t, readyLimit, func() error {
		status, body, err := answerOf("http://" + c.health + "/?verbose")
		if err == nil && (status == http.StatusOK || !strings.Contains(body, text)) {
			err = fmt.Errorf("ask for health: got %d, %s; want 500 with %q", status, body, text)
		}
		return err
	}, c.process)
}

// healthLacks waits until a collector's health does not name a cause.
func healthLacks(t *testing.T, c *killable, text string) {
	t.Helper()
	eventually(t, readyLimit, func() error {
		_, body, err := answerOf("http://" + c.health + "/?verbose")
		if err == nil && strings.Contains(body, text) {
			err = fmt.Errorf("ask for health: got %s; want it without %q", body, text)
		}
		return err
	}, c.process)
}

// numbered sends requests of spans whose numbers no other request has, and notes what was acknowledged.
type numbered struct {
	agent   *kafkaAgent
	next    int
	taken   map[int]bool // numbers of spans
	refused int          // spans
}

// send sends one request of 60 kB, once.
func (n *numbered) send(t *testing.T) bool {
	t.Helper()
	body := spansWithNumbers(n.next, loadSpans, 1000)
	ok := accepted(t.Context(), http.DefaultClient, n.agent.url, body)
	if ok {
		for i := range loadSpans {
			n.taken[n.next+i] = true
		}
	} else {
		n.refused += loadSpans
	}
	n.next += loadSpans
	return ok
}

// arrived waits until all that was acknowledged is in a topic, and checks that nothing else is.
func (n *numbered) arrived(t *testing.T, k *kafka, topic string) {
	t.Helper()
	var there map[int]int
	eventually(t, readyLimit, func() error {
		there = spansIn(t, k, topic)
		missing := 0
		for number := range n.taken {
			if there[number] == 0 {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("find the spans that were acknowledged: %d of %d are missing", missing, len(n.taken))
		}
		return nil
	}, n.agent.process, k.process)
	assert.Len(t, there, len(n.taken), "what was refused did not arrive")
}

// The state directory of an agent is full while it cannot write to Kafka. What is refused is counted and no more, what
// was acknowledged arrives, and health names the disk until it has room: once a file is removed, or once the queue has
// drained.
func testDiskFull(t *testing.T, k *kafka) {
	t.Helper()
	for _, roomFirst := range []bool{true, false} {
		name := map[bool]string{true: "room comes first", false: "Kafka comes first"}[roomFirst]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := smallDisk(t, 8)
			topic := fmt.Sprintf("disk-%t", roomFirst)
			agent := newKafkaAgent(t, k.plain, quickRetries)
			agent.env["LOCKSTEP_KAFKA_OPERATIONS"], agent.env["LOCKSTEP_STATE"] = topic, dir
			filler := filepath.Join(dir, "filler")
			fill(t, filler, 4<<20)
			agent.start(t)
			agent.ready(t)
			n := &numbered{agent: agent, taken: map[int]bool{}}
			for n.refused < 40*loadSpans {
				n.send(t)
			}
			healthHas(t, agent.killable, "no space left on device: the disk of "+dir+" has ")
			require.NotEmpty(t, n.taken)
			took, refused := len(n.taken), n.refused
			eventually(t, readyLimit, func() error {
				if got := agent.meter.total("otelcol_exporter_enqueue_failed_spans"); got != int64(refused) {
					return fmt.Errorf("read what was refused: got %d spans; want %d", got, refused)
				}
				return nil
			}, agent.process)
			if roomFirst {
				require.NoError(t, os.Remove(filler))
				healthLacks(t, agent.killable, "no space left")
				require.True(t, n.send(t), "there is room")
				k.topic(t, topic, 2, nil)
				n.arrived(t, k, topic)
			} else {
				k.topic(t, topic, 2, nil)
				n.arrived(t, k, topic)
				for until := time.Now().Add(readyLimit); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
					if _, err := get("http://" + agent.health + "/"); err == nil {
						break
					}
					n.send(t)
				}
				n.arrived(t, k, topic)
			}
			agent.ready(t)
			t.Logf("%d spans taken before the disk was full, %d refused; RSS %d MB", took, refused, residentBytes(t, agent.cmd.Process.Pid)>>20)
			assert.Less(t, residentBytes(t, agent.cmd.Process.Pid), int64(512<<20), "memory_limiter's limit")
			assert.Zero(t, agent.end(t))
		})
	}
}

// damage is a way in which a queue's file is damaged.
type damage struct {
	name  string
	spoil func(b []byte) []byte
}

var damages = []damage{
	{"first pages", func(b []byte) []byte { clear(b[:2*os.Getpagesize()]); return b }},
	{"pages in the middle", func(b []byte) []byte {
		page := os.Getpagesize()
		for at := 2 * page; at+page <= len(b); at += page {
			if binary.LittleEndian.Uint64(b[at:]) == uint64(at/page) { // its header, and no part of a request
				b[at] ^= 0xff
			}
		}
		return b
	}},
	{"half", func(b []byte) []byte {
		used := bytes.TrimRight(b, "\x00")
		return b[:len(used)/2]
	}},
	{"nothing left", func([]byte) []byte { return nil }},
}

// An agent is killed with a queue, whose file is damaged then. It starts, names the file, counts it, and goes on.
func testQueueDamaged(t *testing.T, k *kafka) {
	t.Helper()
	for i, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			topic := fmt.Sprintf("damaged-%d", i)
			agent := newKafkaAgent(t, k.plain, quickRetries)
			agent.env["LOCKSTEP_KAFKA_OPERATIONS"] = topic
			agent.start(t)
			agent.ready(t)
			n := &numbered{agent: agent, taken: map[int]bool{}}
			for range 20 {
				require.True(t, n.send(t))
			}
			agent.kill(t)
			path := filepath.Join(agent.state, "exporter_partitioned_kafka__traces")
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Greater(t, len(content), 1_000_000)
			require.NoError(t, os.WriteFile(path, d.spoil(content), 0o600))
			agent.start(t)
			lost := n.taken
			n.taken = map[int]bool{}
			eventually(t, readyLimit, func() error {
				if !n.send(t) {
					return fmt.Errorf("send spans to %s: refused", agent.url)
				}
				return nil
			}, agent.process)
			assert.Contains(t, agent.output.String(), "A file of the storage is damaged and was set aside")
			assert.Contains(t, agent.output.String(), path)
			backups, err := filepath.Glob(path + ".*.backup")
			require.NoError(t, err)
			assert.Len(t, backups, 1)
			k.topic(t, topic, 2, nil)
			n.arrived(t, k, topic)
			agent.ready(t)
			agent.meter.read()
			assert.EqualValues(t, 1, agent.meter.total("otelcol_extension_queue_storage_files_damaged"))
			t.Logf("%d spans were lost with the file", len(lost))
			assert.Zero(t, agent.end(t))
		})
	}
}

// The state directory of a concluder is full. It reads on and writes findings, health names what it cannot keep, and
// keeps it once there is room.
func testConcluderDiskFull(t *testing.T, k *kafka) {
	t.Helper()
	w := &stageWorld{kafka: k, prefix: "brim-", sink: newSpanSink(t)}
	for _, topic := range []string{jobsTopic, jobEventsTopic} {
		k.topic(t, w.prefix+topic, 2, nil)
	}
	dir := smallDisk(t, 4)
	c := w.newConcluder(t, 0)
	c.env["LOCKSTEP_STATE"] = dir
	c.start(t)
	c.ready(t)
	filler := filepath.Join(dir, "filler")
	fill(t, filler, 4<<20)
	const findings = 1000
	k.put(t, w.prefix+jobEventsTopic, 0, findingsRecord(t, findings), nil)
	healthHas(t, c, "no space left on device: the disk of "+dir+" has ")
	eventually(t, readyLimit, func() error { return atLeast(len(findingIDs(t, w.findings[0])), findings) }, c.process)
	require.NoError(t, os.Remove(filler))
	c.ready(t)
	assert.Zero(t, c.end(t))
}

// findingsRecord returns findings as gateways write them.
func findingsRecord(t *testing.T, n int) []byte {
	t.Helper()
	var all []model.Finding
	for i := range n {
		now := time.Now().UnixNano()
		all = append(all, model.Finding{
			ID: fmt.Sprintf("%032x", i+1), Revision: 1, Status: model.StatusOpen, Kind: model.FindingStraggler, Class: model.ClassHost,
			JobID: "job", Incarnation: "life", Start: now, Time: now, Rank: model.Some(int64(i)), Severity: model.SeverityWarn,
		})
	}
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(otelmap.FindingsToLogs(all))
	require.NoError(t, err)
	return b
}

// put writes one record to a partition.
func (k *kafka) put(t *testing.T, topic string, partition int32, value []byte, headers map[string]string) {
	t.Helper()
	c := k.config()
	c.Producer.Return.Successes, c.Producer.Partitioner = true, sarama.NewManualPartitioner
	c.Producer.MaxMessageBytes = 2 << 20
	p, err := sarama.NewSyncProducer([]string{k.plain}, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	m := &sarama.ProducerMessage{Topic: topic, Partition: partition}
	if value != nil {
		m.Value = sarama.ByteEncoder(value)
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(headers[name])})
	}
	eventually(t, kafkaReadyLimit, func() error { // a partition has no leader just after it was made
		_, _, err := p.SendMessage(m)
		return err //nolint:wrapcheck // shown as it is
	}, k.process)
}
