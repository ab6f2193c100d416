// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/timeline"
	"github.com/lockstep-otel/lockstep/receiver/jobkafkareceiver/internal/metadatatest"
)

// timelineExtension is a timeline that collectors share.
type timelineExtension struct {
	component.StartFunc
	component.ShutdownFunc
	timeline *timeline.Timeline
}

func (e *timelineExtension) Timeline() *timeline.Timeline { return e.timeline }

func newTimeline() *timelineExtension {
	return &timelineExtension{timeline: timeline.New(timeline.Options{Shared: true})}
}

var timelineID = component.MustNewID("timeline")

// startLogs starts a receiver of log records alone.
func startLogs(t *testing.T, cfg *Config, a *analysis, ext component.Component) (*rig, *observer.ObservedLogs) {
	t.Helper()
	r := &rig{analysis: a, t: t, tel: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.InfoLevel)
	set := metadatatest.NewSettings(r.tel)
	set.Logger = zap.New(core)
	var err error
	r.logs, err = NewFactory().CreateLogs(t.Context(), set, cfg, a)
	require.NoError(t, err)
	r.traces = r.logs // is shut down once more
	require.NoError(t, r.logs.Start(t.Context(), host{timelineID: ext}))
	t.Cleanup(r.stop)
	return r, logs
}

func configForAll(c *kfake.Cluster) *Config {
	cfg := configFor(c)
	cfg.Read, cfg.TimelineID = readAll, &timelineID
	return cfg
}

func oneLog(t *testing.T) []byte {
	t.Helper()
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("lockstep.clock.edge")
	b, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(t, err)
	return b
}

func (a *analysis) logRecords() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.records
}

// isReady reports whether a timeline has everything that was there at the start.
func isReady(e *timelineExtension) bool {
	select {
	case <-e.timeline.Ready():
		return true
	default:
		return false
	}
}

// Every collector reads all partitions from the first record on, and again after a restart. Nothing is committed.
func TestReadAll_EveryCollector_ReadsEverything(t *testing.T) {
	t.Parallel()
	c := brokers(t, 3)
	w := newWriter(t, c)
	for p := range int32(3) {
		w.write(defaultLogTopic, p, oneLog(t))
	}
	w.write(defaultLogTopic, 0, []byte("\xffno protobuf"))
	w.write(defaultLogTopic, 1, nil) // a tombstone
	for range 2 {
		ext := newTimeline()
		r, _ := startLogs(t, configForAll(c), &analysis{}, ext)
		eventually(t, "all is read", func() bool { return isReady(ext) })
		assert.Equal(t, 3, r.logRecords())
		assert.EqualValues(t, 1, r.counted("records_skipped", "damaged"))
		assert.Zero(t, r.counted("records_skipped", "deleted"), "a compacted topic has gaps")
	}
	w.write(defaultLogTopic, 2, oneLog(t))
	ext := newTimeline()
	r, _ := startLogs(t, configForAll(c), &analysis{}, ext)
	eventually(t, "what comes later", func() bool { return r.logRecords() == 4 && isReady(ext) })
	groups, err := kadm.NewClient(w.cl).ListGroups(t.Context())
	require.NoError(t, err)
	assert.Empty(t, groups.Groups(), "there is no group")
}

// A topic that is missing is named, and read once it is there.
func TestReadAll_TopicMissing_IsReadOnceItIsThere(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	cfg := configForAll(c)
	cfg.Logs.Topic = "lockstep-clocks"
	ext := newTimeline()
	r, logs := startLogs(t, cfg, &analysis{}, ext)
	eventually(t, "the log names it", func() bool { return logs.FilterMessage("Kafka cannot be read, and is tried again.").Len() > 0 })
	assert.Contains(t, logs.All()[0].ContextMap()["error"], `find topic "lockstep-clocks"`)
	assert.False(t, isReady(ext), "nothing is known of what others know")
	w := newWriter(t, c)
	_, err := kadm.NewClient(w.cl).CreateTopic(t.Context(), 2, 1, nil, cfg.Logs.Topic)
	require.NoError(t, err)
	w.write(cfg.Logs.Topic, 1, oneLog(t))
	eventually(t, "the record", func() bool { return r.logRecords() == 1 && isReady(ext) })
}

// A topic that is created anew, with more records than were read before, is read from its beginning.
func TestReadAll_TopicIsCreatedAnew_IsReadWhole(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	const before, after = 2, 5
	for range before {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	cfg := configForAll(c)
	cfg.Metadata.RefreshInterval = time.Second
	r, logs := startLogs(t, cfg, &analysis{}, newTimeline())
	eventually(t, "all is read", func() bool { return r.logRecords() == before })
	require.NoError(t, c.DeleteTopic(defaultLogTopic))
	require.NoError(t, c.CreateTopic(defaultLogTopic, 1, nil))
	w = newWriter(t, c)
	for range after {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	eventually(t, "it is noticed", func() bool { return logs.FilterMessageSnippet("A topic was deleted and created anew.").Len() > 0 })
	// Some of the new records may have been read by the former numbers before: they are read again.
	eventually(t, "all of the new topic", func() bool { return r.logRecords() >= before+after && r.counted("lag", "") == 0 })
}

// A topic of jobs that is compacted loses most of them.
func TestReadGroup_TopicIsCompacted_IsReported(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"compact,delete", "delete"} {
		c := brokers(t, 1)
		w := newWriter(t, c)
		_, err := kadm.NewClient(w.cl).CreateTopic(t.Context(), 1, 1, map[string]*string{"cleanup.policy": &policy}, "jobs")
		require.NoError(t, err)
		cfg := configFor(c)
		cfg.Logs.Topic = "jobs"
		r, logs := startLogs(t, cfg, &analysis{}, newTimeline())
		eventually(t, "it reads", func() bool { return r.counted("partitions", "") == 1 })
		assert.Equal(t, policy != "delete", logs.FilterMessageSnippet("The topic is compacted").Len() > 0, policy)
	}
}

// A topic that is deleted while it is read shows in health.
func TestReadAll_TopicIsDeleted_ShowsInHealth(t *testing.T) {
	t.Parallel()
	for _, read := range []string{readAll, readGroup} {
		c := brokers(t, 1)
		cfg := configFor(c)
		cfg.Read, cfg.Metadata.RefreshInterval = read, time.Second
		tel, h := componenttest.NewTelemetry(), &reporting{}
		r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), cfg, &analysis{})
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), h))
		eventually(t, "it reads", func() bool { return (&rig{t: t, tel: tel}).counted("partitions", "") == 1 })
		require.NoError(t, c.DeleteTopic(defaultLogTopic))
		eventually(t, "health names it", func() bool { return strings.Contains(h.fault(), "find topic \""+defaultLogTopic+"\"") })
		require.NoError(t, c.CreateTopic(defaultLogTopic, 1, nil))
		eventually(t, "it is over", func() bool { return h.fault() == "" })
		require.NoError(t, r.Shutdown(t.Context()))
		require.NoError(t, tel.Shutdown(t.Context()))
	}
}

// A topic that is not compacted is reported.
func TestReadAll_TopicIsNotCompacted_IsReported(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	compact, both := "compact", "compact,delete"
	for topic, policy := range map[string]*string{"a": nil, "b": &compact, "c": &both} {
		settings := map[string]*string{}
		if policy != nil {
			settings["cleanup.policy"] = policy
		}
		_, err := kadm.NewClient(w.cl).CreateTopic(t.Context(), 1, 1, settings, topic)
		require.NoError(t, err)
		cfg := configForAll(c)
		cfg.Logs.Topic = topic
		ext := newTimeline()
		_, logs := startLogs(t, cfg, &analysis{}, ext)
		eventually(t, "all is read", func() bool { return isReady(ext) })
		warned := logs.FilterMessageSnippet("The topic is not compacted").Len()
		assert.Equal(t, policy == nil, warned == 1, "%s: %d", topic, warned)
	}
}

// Of the members of a group, the one that has partition 0 solves for the clocks.
func TestReadGroup_PartitionZero_Leads(t *testing.T) {
	t.Parallel()
	c := brokers(t, 2)
	start := func() (*timelineExtension, *rig) {
		ext := newTimeline()
		ext.timeline.CaughtUp()
		cfg := configFor(c)
		cfg.TimelineID, cfg.Hold = &timelineID, HoldConfig{}
		r, _ := startLogs(t, cfg, &analysis{}, ext)
		return ext, r
	}
	leads := func(e *timelineExtension) bool {
		e.timeline.Advance(time.Now().Add(time.Minute)) // once edges were gathered
		return e.timeline.Leads()
	}
	first, r := start()
	eventually(t, "one leads", func() bool { return leads(first) })
	second, s := start()
	eventually(t, "both have a partition", func() bool { return r.counted("partitions", "") == 1 && s.counted("partitions", "") == 1 })
	eventually(t, "one of two leads", func() bool { return leads(first) != leads(second) })
	r.stop()
	assert.False(t, leads(first), "a collector that stops does not")
	eventually(t, "the other leads", func() bool { return leads(second) })
}

// Spans wait until what others know of clocks was read.
func TestReadGroup_TimelineIsNotReady_NothingIsReadYet(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	newWriter(t, c).write(defaultLogTopic, 0, oneLog(t))
	ext := newTimeline()
	cfg := configFor(c)
	cfg.TimelineID = &timelineID
	r, _ := startLogs(t, cfg, &analysis{}, ext)
	time.Sleep(300 * time.Millisecond)
	assert.Zero(t, r.logRecords())
	ext.timeline.CaughtUp()
	eventually(t, "the record", func() bool { return r.logRecords() == 1 })
}

func TestStart_TimelineThatCannotBeUsed_IsNamed(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	for want, h := range map[string]host{
		`find extension timeline: got none; want it in service::extensions`:                                    {},
		`find extension timeline: got an extension of another type; want timeline`:                             {timelineID: &jobsExtension{}},
		`find timeline: got extension "timeline", which is this collector's alone; want one with shared: true`: {timelineID: &timelineExtension{timeline: timeline.New(timeline.Options{})}},
	} {
		tel := componenttest.NewTelemetry()
		r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), configForAll(c), &analysis{})
		require.NoError(t, err)
		require.EqualError(t, r.Start(t.Context(), h), want)
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	}
}
