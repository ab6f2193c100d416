// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// statusHost keeps what a component reports.
type statusHost struct {
	mu     sync.Mutex
	events []*componentstatus.Event
}

func (h *statusHost) GetExtensions() map[component.ID]component.Component { return nil }

func (h *statusHost) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// faults returns the errors that were reported.
func (h *statusHost) faults() (errs []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Err() != nil {
			errs = append(errs, e.Err())
		}
	}
	return errs
}

// hold has brokers leave requests of a key unanswered until release is closed. Each that arrives shows in arrived.
func hold(brokers *kfake.Cluster, key kmsg.Key) (arrived chan struct{}, release chan struct{}) {
	arrived, release = make(chan struct{}, 100), make(chan struct{})
	brokers.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		brokers.KeepControl()
		brokers.SleepControl(func() {
			arrived <- struct{}{}
			<-release
		})
		return nil, nil, false
	})
	return arrived, release
}

// A caller that gives up, as at a rebalance of those that read, says nothing of the brokers: health stays as it was,
// wherever the connection is at that time, and whatever the caller's reason.
func TestTraces_CallerGivesUp_IsNoFault(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]kmsg.Key{"metadata": kmsg.Metadata, "id": kmsg.InitProducerID, "records": kmsg.Produce} {
		for _, reason := range []error{context.Canceled, errors.New("another has the partition")} {
			t.Run(name+", "+reason.Error(), func(t *testing.T) {
				brokers := fakeBrokers(t, kfake.SeedTopics(1, defaultTraceTopic))
				arrived, release := hold(brokers, key)
				host := &statusHost{}
				_, set := newTelemetry(t)
				e, err := newTraces(t.Context(), set, configFor(brokers.ListenAddrs()))
				require.NoError(t, err)
				require.NoError(t, e.Start(t.Context(), host))
				defer func() { assert.NoError(t, e.Shutdown(context.Background())) }()
				ctx, cancel := context.WithCancelCause(t.Context())
				gaveUp := make(chan error)
				go func() { gaveUp <- e.ConsumeTraces(ctx, stepOf("j", 1, 1)) }()
				<-arrived
				cancel(reason)
				err = <-gaveUp
				require.ErrorIs(t, err, reason)
				assert.Equal(t, 2, failedSpans(t, err))
				assert.Empty(t, host.faults())
				close(release)
				require.NoError(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 1)))
				assert.Empty(t, host.faults())
			})
		}
	}
}

func failedSpans(t *testing.T, err error) int {
	t.Helper()
	var failed consumererror.Traces
	require.ErrorAs(t, err, &failed)
	return failed.Data().SpanCount()
}

// Brokers that do not answer in time are a fault.
func TestTraces_TimeIsOver_IsAFault(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(1, defaultTraceTopic))
	_, release := hold(brokers, kmsg.Produce)
	defer close(release)
	host := &statusHost{}
	_, set := newTelemetry(t)
	c := configFor(brokers.ListenAddrs())
	c.Timeout.Timeout = 300 * time.Millisecond
	e, err := newTraces(t.Context(), set, c)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		assert.NoError(t, e.Shutdown(ctx))
	}()
	require.ErrorIs(t, e.ConsumeTraces(t.Context(), stepOf("j", 1, 1)), context.DeadlineExceeded)
	assert.Len(t, host.faults(), 1)
}

// Where one caller gives up, what others have under way is answered, and goes through the same producer.
func TestTraces_OneCallerGivesUp_OthersAreAnswered(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(2, defaultTraceTopic))
	require.NoError(t, brokers.MoveTopicPartition(defaultTraceTopic, 0, 0))
	require.NoError(t, brokers.MoveTopicPartition(defaultTraceTopic, 1, 1))
	arrived, release := hold(brokers, kmsg.Produce)
	c := configFor(brokers.ListenAddrs())
	c.Traces.PartitionBy = byJob
	e, tel := startTraces(t, c)
	good, bad := make(chan error), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { good <- e.ConsumeTraces(context.Background(), stepOf(jobIn(0), 1, 1)) }()
	<-arrived
	go func() { bad <- e.ConsumeTraces(ctx, stepOf(jobIn(1), 1, 1)) }()
	<-arrived
	cancel()
	require.ErrorIs(t, <-bad, context.Canceled)
	close(release)
	require.NoError(t, <-good)
	require.NoError(t, e.ConsumeTraces(t.Context(), stepOf(jobIn(1), 1, 1)))
	assert.EqualValues(t, 1, counted(t, tel, "producers", ""))
	assert.Len(t, written(t, brokers.ListenAddrs(), defaultTraceTopic, 3), 3, "what was left is written, too")
}

// What callers that gave up have left counts until it is answered: beyond the bound a caller waits.
func TestSend_CallersGiveUp_IsBounded(t *testing.T) {
	t.Parallel()
	brokers := fakeBrokers(t, kfake.SeedTopics(1, defaultTraceTopic))
	_, release := hold(brokers, kmsg.Produce)
	c := configFor(brokers.ListenAddrs())
	var meters kafka.Meters
	l, err := newLink(t.Context(), c, defaultTraceTopic, c.Producer.MaxMessageBytes, &meters)
	require.NoError(t, err)
	defer func() {
		l.close()
		l.end(t.Context())
	}()
	send := func(ctx context.Context) error {
		return l.send(ctx, []*sarama.ProducerMessage{{Topic: defaultTraceTopic, Value: sarama.ByteEncoder(make([]byte, 1_000_000))}})[0]
	}
	left := func() (bytes, messages int) {
		l.load.mu.Lock()
		defer l.load.mu.Unlock()
		return l.load.left, l.load.under
	}
	const fit = 17 // the one that comes to the bound is the last
	for n := range fit {
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() { gaveUp <- send(ctx) }()
		require.Eventually(t, func() bool { _, messages := left(); return messages == n+1 }, 10*time.Second, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, send(ctx), context.DeadlineExceeded)
	bytes, messages := left()
	assert.Equal(t, fit*1_000_000, bytes)
	assert.Equal(t, fit, messages, "the last caller waits")
	close(release)
	require.NoError(t, send(t.Context()))
	bytes, messages = left()
	assert.Zero(t, bytes)
	assert.Zero(t, messages)
}

// A link is given up where no broker answers anything, and not where one caller's part takes long.
func TestLoad_Silent_CountsFromTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l load
		time.Sleep(time.Hour)
		assert.False(t, l.silent(), "nothing was sent")
		l.sent()
		l.sent()
		time.Sleep(kafka.RequestTimeout - 1)
		assert.False(t, l.silent())
		l.answered(0)
		time.Sleep(kafka.RequestTimeout - 1)
		assert.False(t, l.silent())
		time.Sleep(time.Nanosecond)
		assert.True(t, l.silent())
		l.answered(0)
		assert.False(t, l.silent())
	})
}
