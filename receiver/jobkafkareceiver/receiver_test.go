// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/offsets"
)

// After the end of a process, the next reads again all of the last steps, and nothing of those before.
func TestReceiver_NextProcess_ReadsOpenStepsAgainWhole(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	const ranks, steps = 4, 20
	for s := range int64(steps) {
		for r := range int64(ranks) {
			// One rank is a step behind, so that records of two steps alternate.
			w.step(0, "j", r, max(0, s-r%2))
		}
	}
	for r := int64(1); r < ranks; r += 2 {
		w.step(0, "j", r, steps-1)
	}
	first := start(t, configFor(c), &analysis{})
	eventually(t, "all steps", func() bool { return whole(first.stepsOf("j"), 1, steps-1, ranks) })
	eventually(t, "the last three steps are held", func() bool {
		at, marks := committed(t, w, 0)
		return at > 0 && marks.By != "" && heldFrom(marks, steps-3)
	})
	first.stop()
	assert.True(t, first.suspended, "open steps are read again: they are not concluded at the end")

	w.step(0, "j", 0, steps)
	second := start(t, configFor(c), &analysis{})
	eventually(t, "the new step", func() bool { return second.stepsOf("j")[steps] == 1 })
	got := second.stepsOf("j")
	assert.True(t, whole(got, steps-3, steps-1, ranks), "%v", got)
	assert.Equal(t, []int64{steps - 3, steps - 2, steps - 1, steps}, slices.Sorted(maps.Keys(got)))
	assert.Positive(t, second.counted("concluded_spans", ""), "records of two steps alternate")
}

// heldFrom reports whether marks hold job j from a step on.
func heldFrom(m offsets.Marks, step int64) bool {
	at := func(s int64) offsets.Step {
		return offsets.Step{Job: offsets.Job{ID: "j", Incarnation: "inc"}, Step: s}
	}
	return m.Concluded(at(step-1), 0) && !m.Concluded(at(step), 0)
}

// committed returns what the group has committed for a partition of spans.
func committed(t *testing.T, w *writer, partition int32) (at int64, marks offsets.Marks) {
	t.Helper()
	all, err := kadm.NewClient(w.cl).FetchOffsets(t.Context(), defaultGroup)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return -1, marks // nothing was committed
	}
	require.NoError(t, err)
	o, ok := all.Lookup(defaultTraceTopic, partition)
	if !ok {
		return -1, marks
	}
	marks, err = offsets.ParseMarks(o.Metadata)
	require.NoError(t, err)
	return o.At, marks
}

// A record that is damaged, or written by a newer version, is counted and costs nothing else.
func TestReceiver_BadRecords_AreLeftOutAndCounted(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 1)
	w.write(defaultTraceTopic, 0, []byte("\xffno protobuf"))
	w.write(defaultTraceTopic, 0, []byte("{}"), kgo.RecordHeader{Key: "lockstep.encoding", Value: []byte("columns_v9")})
	w.write(defaultTraceTopic, 0, nil)
	w.write(defaultLogTopic, 0, []byte("\xffno protobuf"))
	w.step(0, "j", 0, 2)
	r := start(t, configFor(c), &analysis{})
	eventually(t, "both steps", func() bool { return whole(r.stepsOf("j"), 1, 2, 1) })
	eventually(t, "counts", func() bool { return r.counted("records_skipped", "damaged") == 2 })
	assert.EqualValues(t, 1, r.counted("records_skipped", "encoding"))
}

// What is refused for now is given again, and nothing after it before it is taken.
func TestReceiver_RefusedForNow_IsGivenAgain(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for s := range int64(5) {
		w.step(0, "j", 0, s)
	}
	left := 7
	r := start(t, configFor(c), &analysis{refuse: func() error {
		if left--; left > 0 {
			return errors.New("no memory")
		}
		return nil
	}})
	eventually(t, "all steps", func() bool { return whole(r.stepsOf("j"), 0, 4, 1) })
	assert.Zero(t, r.counted("items_dropped", ""))
	assert.EqualValues(t, 5, r.counted("records", ""))
}

func TestReceiver_RefusedForGood_IsCounted(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 0)
	once := true
	r := start(t, configFor(c), &analysis{refuse: func() error {
		if once {
			once = false
			return consumererror.NewPermanent(errors.New("no"))
		}
		return nil
	}})
	eventually(t, "the refusal", func() bool { return r.counted("items_dropped", "") == 2 })
	assert.EqualValues(t, 1, r.counted("records_skipped", "refused"))
	w.step(0, "j", 0, 1)
	eventually(t, "the next step", func() bool { return r.stepsOf("j")[1] == 1 })
}

// A second collector gets some of the jobs, with their spans and their log records. The first forgets these
// alone, and the second reads their open steps whole.
func TestReceiver_AnotherCollector_GetsJobsWhole(t *testing.T) {
	t.Parallel()
	const partitions, steps = 4, 10
	c := brokers(t, partitions)
	w := newWriter(t, c)
	write := func(s int64) {
		for p := range int32(partitions) {
			w.step(p, fmt.Sprint(p), 0, s)
			w.step(p, fmt.Sprint(p), 1, s)
			w.write(defaultLogTopic, p, oneRecord(t))
		}
	}
	for s := range int64(steps) {
		write(s)
	}
	first := start(t, configFor(c), &analysis{})
	for p := range partitions {
		eventually(t, "all steps", func() bool { return whole(first.stepsOf(fmt.Sprint(p)), 0, steps-1, 2) })
	}
	second := start(t, configFor(c), &analysis{})
	eventually(t, "the first loses two jobs", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return len(first.forgotten) == 2
	})
	write(steps)
	for p := range partitions {
		job := fmt.Sprint(p)
		eventually(t, "the newest step comes to one collector", func() bool {
			return first.stepsOf(job)[steps]+second.stepsOf(job)[steps] == 2
		})
		if slices.Contains(first.forgotten, job) {
			assert.True(t, whole(second.stepsOf(job), steps-2, steps, 2), "the open steps are whole: %v", second.stepsOf(job))
			assert.Empty(t, first.stepsOf(job))
			continue
		}
		assert.True(t, whole(first.stepsOf(job), 0, steps, 2), "a job that stays is not read again: %v", first.stepsOf(job))
		assert.Empty(t, second.stepsOf(job))
	}
	assert.EqualValues(t, 4, first.counted("partitions", ""), "two of each topic")
	assert.EqualValues(t, 4, second.counted("partitions", ""))
	assert.EqualValues(t, 4, first.counted("partitions_lost", ""))
}

func oneRecord(t *testing.T) []byte {
	t.Helper()
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("lockstep.op.open")
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return b
}

// Records that the topic deletes before they are read are lost, and counted exactly.
func TestReceiver_RetentionIsTooShort_CountsWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 0)
	cfg := configFor(c)
	cfg.Hold = HoldConfig{}
	first := start(t, cfg, &analysis{})
	eventually(t, "the offset is committed", func() bool { at, _ := committed(t, w, 0); return at == 1 })
	first.stop()
	for s := range int64(9) {
		w.step(0, "j", 0, s+1)
	}
	require.NoError(t, c.DeleteRecords(defaultTraceTopic, 0, 6))
	second := start(t, configFor(c), &analysis{})
	eventually(t, "the rest", func() bool { return whole(second.stepsOf("j"), 6, 9, 1) })
	assert.EqualValues(t, 5, second.counted("records_skipped", "deleted"))
}

// A broker that takes connections and does not answer does not hold up the end.
func TestReceiver_SilentBroker_StopsInTime(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	cfg := newDefaultConfig()
	cfg.Brokers = []string{l.Addr().String()}
	r := start(t, cfg, &analysis{})
	time.Sleep(50 * time.Millisecond) // so that it is likely to wait for the broker
	began := time.Now()
	r.stop()
	assert.Less(t, time.Since(began), deliver.ShutdownLimit)
}

// Where the topic has deleted what was committed, the rest is read, also by a group that begins at the end.
func TestReceiver_Latest_ReadsWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	cfg := configFor(c)
	cfg.Hold, cfg.InitialOffset = HoldConfig{}, latest
	first := start(t, cfg, &analysis{})
	eventually(t, "the offset is committed", func() bool {
		w.step(0, "j", 0, 0)
		at, _ := committed(t, w, 0)
		return at > 0
	})
	first.stop()
	at, _ := committed(t, w, 0)
	for s := range int64(9) {
		w.step(0, "j", 0, 100+s)
	}
	require.NoError(t, c.DeleteRecords(defaultTraceTopic, 0, at+3))
	cfg = configFor(c)
	cfg.InitialOffset = latest
	second := start(t, cfg, &analysis{})
	eventually(t, "the rest", func() bool { return second.stepsOf("j")[108] == 1 && second.stepsOf("j")[104] == 1 })
}

// A job that goes back to an earlier step after a restart is read: what was committed speaks of records that were read.
func TestReceiver_JobGoesBack_IsRead(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for s := range int64(20) {
		w.step(0, "j", 0, s)
	}
	first := start(t, configFor(c), &analysis{})
	eventually(t, "the last three steps are held", func() bool {
		_, marks := committed(t, w, 0)
		return heldFrom(marks, 17)
	})
	first.stop()
	w.step(0, "j", 0, 5)
	second := start(t, configFor(c), &analysis{})
	eventually(t, "the earlier step", func() bool { return second.stepsOf("j")[5] == 1 })
}

// A topic that is created anew under a collector is read from its beginning.
func TestReceiver_TopicIsCreatedAnew_IsRead(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for s := range int64(10) {
		w.step(0, "j", 0, s)
	}
	r := start(t, configFor(c), &analysis{})
	eventually(t, "all steps", func() bool { return whole(r.stepsOf("j"), 0, 9, 1) })
	require.NoError(t, c.DeleteTopic(defaultTraceTopic))
	require.NoError(t, c.CreateTopic(defaultTraceTopic, 1, nil))
	newWriter(t, c).step(0, "j", 0, 100)
	eventually(t, "a step of the new topic", func() bool { return r.stepsOf("j")[100] > 0 })
}

// A job of which only log records came is forgotten when its partition goes to another collector.
func TestReceiver_JobsOfLogRecordsAlone_AreForgotten(t *testing.T) {
	t.Parallel()
	const partitions = 2
	c := brokers(t, partitions)
	w := newWriter(t, c)
	for p := range int32(partitions) {
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("lockstep.job.id", fmt.Sprint("hung-", p))
		rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("lockstep.op.open")
		b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(t, err)
		w.write(defaultLogTopic, p, b)
	}
	first := start(t, configFor(c), &analysis{})
	eventually(t, "both records", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return first.records == partitions
	})
	start(t, configFor(c), &analysis{})
	eventually(t, "one job is forgotten", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return len(first.forgotten) == 1
	})
}

// A topic that is created anew and has as many records at once as were read before is read whole: its numbers mean
// other records.
func TestReceiver_TopicIsCreatedAnewAndLonger_IsReadWhole(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int32{1, 2} { // of the new topic
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			c := brokers(t, 2)
			w := newWriter(t, c)
			const before, after = 10, 30
			for s := range int64(before) {
				w.step(0, "j", 0, s)
			}
			cfg := configFor(c)
			cfg.Metadata.RefreshInterval = time.Second
			r := start(t, cfg, &analysis{})
			eventually(t, "all steps", func() bool { return whole(r.stepsOf("j"), 0, before-1, 1) })
			eventually(t, "the offset is committed", func() bool { at, _ := committed(t, w, 0); return at > 0 })
			require.NoError(t, c.DeleteTopic(defaultTraceTopic))
			require.NoError(t, c.CreateTopic(defaultTraceTopic, partitions, nil))
			w = newWriter(t, c)
			var records []*kgo.Record
			for s := range int64(after) {
				records = append(records, &kgo.Record{Topic: defaultTraceTopic, Value: stepRecord(t, "j", 0, 100+s)})
			}
			require.NoError(t, w.cl.ProduceSync(t.Context(), records...).FirstErr())
			eventually(t, "all steps of the new topic", func() bool { return whole(r.stepsOf("j"), 100, 100+after-1, 1) })
			assert.Zero(t, r.counted("records_skipped", ""))
			r.mu.Lock()
			defer r.mu.Unlock()
			assert.Contains(t, r.forgotten, "j")
		})
	}
}

// forgetOffsets has a cluster answer that nothing is committed, as Kafka does for a topic that was deleted.
func forgetOffsets(c *kfake.Cluster) {
	c.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := req.(*kmsg.OffsetFetchRequest)
		answer := asked.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, topic := range asked.Topics {
			of := kmsg.NewOffsetFetchResponseTopic()
			of.Topic = topic.Topic
			for _, p := range topic.Partitions {
				one := kmsg.NewOffsetFetchResponseTopicPartition()
				one.Partition, one.Offset, one.LeaderEpoch = p, -1, -1
				of.Partitions = append(of.Partitions, one)
			}
			answer.Topics = append(answer.Topics, of)
		}
		for _, group := range asked.Groups {
			in := kmsg.NewOffsetFetchResponseGroup()
			in.Group = group.Group
			for _, topic := range group.Topics {
				of := kmsg.NewOffsetFetchResponseGroupTopic()
				of.Topic = topic.Topic
				for _, p := range topic.Partitions {
					one := kmsg.NewOffsetFetchResponseGroupTopicPartition()
					one.Partition, one.Offset, one.LeaderEpoch = p, -1, -1
					of.Partitions = append(of.Partitions, one)
				}
				in.Topics = append(in.Topics, of)
			}
			answer.Groups = append(answer.Groups, in)
		}
		return answer, nil, true
	})
}

// A group that begins at the end reads a topic that is created anew from its beginning, too, though nothing is committed
// for it.
func TestReceiver_LatestAndTopicIsCreatedAnew_IsReadWhole(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	cfg := configFor(c)
	cfg.InitialOffset, cfg.Metadata.RefreshInterval = latest, time.Second
	r := start(t, cfg, &analysis{})
	eventually(t, "the group reads", func() bool {
		w.step(0, "j", 0, 0)
		return r.stepsOf("j")[0] > 0
	})
	eventually(t, "the offset is committed", func() bool { at, _ := committed(t, w, 0); return at >= 0 })
	require.NoError(t, c.DeleteTopic(defaultTraceTopic))
	require.NoError(t, c.CreateTopic(defaultTraceTopic, 1, nil))
	// Kafka's coordinator removes what is committed for a deleted topic: answer as it would.
	forgetOffsets(c)
	w = newWriter(t, c)
	var records []*kgo.Record
	for s := range int64(30) {
		records = append(records, &kgo.Record{Topic: defaultTraceTopic, Value: stepRecord(t, "j", 0, 100+s)})
	}
	require.NoError(t, w.cl.ProduceSync(t.Context(), records...).FirstErr())
	eventually(t, "all steps of the new topic", func() bool { return whole(r.stepsOf("j"), 100, 129, 1) })
}
