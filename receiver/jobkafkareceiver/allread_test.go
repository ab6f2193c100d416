// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver/internal/metadatatest"
)

// refuseFetches has each fetch fail with an error, until release is called.
func refuseFetches(t *testing.T, c *kfake.Cluster, why *kerr.Error) (release func()) {
	t.Helper()
	over := make(chan struct{})
	var once sync.Once
	release = func() { once.Do(func() { close(over) }) }
	t.Cleanup(release)
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		select {
		case <-over:
			return nil, nil, false
		default:
		}
		asked := req.(*kmsg.FetchRequest)
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range asked.Topics {
			of := kmsg.NewFetchResponseTopic()
			of.Topic, of.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				one := kmsg.NewFetchResponseTopicPartition()
				one.Partition, one.ErrorCode = p.Partition, why.Code
				of.Partitions = append(of.Partitions, one)
			}
			answer.Topics = append(answer.Topics, of)
		}
		return answer, nil, true
	})
	return release
}

// reporting is a host that notes the status.
type reporting struct {
	host
	mu   sync.Mutex
	last *componentstatus.Event
}

func (h *reporting) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = e
}

func (h *reporting) fault() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil || h.last.Err() == nil {
		return ""
	}
	return h.last.Err().Error()
}

// Fetches fail for longer than the client waits, as while a partition has no leader, or the user may not read it: health
// names it, and nothing counts as read. Once they succeed, all is read.
func TestReadAll_FetchesFail_NothingIsCaughtUp(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]*kerr.Error{"no leader": kerr.NotLeaderForPartition, "no right": kerr.TopicAuthorizationFailed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := brokers(t, 1)
			w := newWriter(t, c)
			for range 5 {
				w.write(defaultLogTopic, 0, oneLog(t))
			}
			release := refuseFetches(t, c, why)
			ext, a, tel := newTimeline(), &analysis{}, componenttest.NewTelemetry()
			h := &reporting{host: host{timelineID: ext}}
			r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), configForAll(c), a)
			require.NoError(t, err)
			require.NoError(t, r.Start(t.Context(), h))
			eventually(t, "health names it", func() bool { return h.fault() != "" })
			assert.Contains(t, h.fault(), "read "+defaultLogTopic+"/0: ")
			time.Sleep(2 * quiet)
			assert.NotEmpty(t, h.fault())
			assert.False(t, isReady(ext), "nothing was read")
			release()
			eventually(t, "all is read", func() bool { return isReady(ext) })
			assert.Equal(t, 5, a.logRecords())
			eventually(t, "health is good", func() bool { return h.fault() == "" })
			require.NoError(t, r.Shutdown(t.Context()))
			require.NoError(t, tel.Shutdown(t.Context()))
		})
	}
}

// A broker answers the first fetches late.
func TestReadAll_FetchIsSlow_NothingIsCaughtUp(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for range 5 {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	until := time.Now().Add(2*quiet + time.Second)
	c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if wait := time.Until(until); wait > 0 {
			c.SleepControl(func() { time.Sleep(wait) })
		}
		return nil, nil, false
	})
	ext := newTimeline()
	r, _ := startLogs(t, configForAll(c), &analysis{}, ext)
	eventually(t, "it is ready", func() bool { return isReady(ext) })
	assert.Equal(t, 5, r.logRecords(), "what was there at the start was read when the timeline was ready")
}

// The records before the end were removed, as by compaction: the end is reached without them.
func TestReadAll_LastRecordsAreGone_IsCaughtUp(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for range 5 {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := req.(*kmsg.FetchRequest)
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range asked.Topics {
			of := kmsg.NewFetchResponseTopic()
			of.Topic, of.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				one := kmsg.NewFetchResponseTopicPartition()
				one.Partition, one.HighWatermark, one.LastStableOffset, one.RecordBatches = p.Partition, 5, 5, []byte{}
				of.Partitions = append(of.Partitions, one)
			}
			answer.Topics = append(answer.Topics, of)
		}
		time.Sleep(10 * time.Millisecond)
		return answer, nil, true
	})
	ext := newTimeline()
	startLogs(t, configForAll(c), &analysis{}, ext)
	eventually(t, "it is ready", func() bool { return isReady(ext) })
}

// A new leader has not heard of all records for some seconds, as after a failover: it answers fetches without any.
func TestReadAll_LeaderIsBehind_NothingIsCaughtUp(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for range 5 {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	until := time.Now().Add(3 * quiet)
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if time.Now().After(until) {
			return nil, nil, false
		}
		asked := req.(*kmsg.FetchRequest)
		answer := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range asked.Topics {
			of := kmsg.NewFetchResponseTopic()
			of.Topic, of.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				one := kmsg.NewFetchResponseTopicPartition()
				one.Partition, one.HighWatermark, one.LastStableOffset, one.RecordBatches = p.Partition, 0, 0, []byte{}
				of.Partitions = append(of.Partitions, one)
			}
			answer.Topics = append(answer.Topics, of)
		}
		time.Sleep(10 * time.Millisecond)
		return answer, nil, true
	})
	ext := newTimeline()
	r, _ := startLogs(t, configForAll(c), &analysis{}, ext)
	eventually(t, "it is ready", func() bool { return isReady(ext) })
	assert.Equal(t, 5, r.logRecords(), "what was there at the start was read when the timeline was ready")
}
