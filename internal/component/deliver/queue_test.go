// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// queued is a queue, and what came of what was put.
type queued struct {
	*deliver.Queue
	logs  *observer.ObservedLogs
	given []int
	lost  int
}

func newQueued() *queued {
	core, logs := observer.New(zapcore.InfoLevel)
	return &queued{Queue: deliver.NewQueue(zap.New(core)), logs: logs}
}

// put puts a call with a number of items, which takes some time and ends with an error.
func (q *queued) put(items int, takes time.Duration, err error) *deliver.Delivery {
	return q.Put(items, func(ctx context.Context) error {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
		q.given = append(q.given, items)
		return err
	}, func() { q.lost += items })
}

func TestQueue_NextReturns_WaitReturnsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued()
		assert.True(t, q.Idle())
		first, second := q.put(1, 0, nil), q.put(2, 0, assert.AnError)
		assert.False(t, q.Idle())
		require.NoError(t, q.Wait(t.Context(), first))
		require.ErrorIs(t, q.Wait(t.Context(), second), assert.AnError)
		synctest.Wait()
		assert.True(t, q.Idle())
		assert.Equal(t, []int{1, 2}, q.given, "in order")
		assert.Equal(t, 2, q.lost)
	})
}

// A slow next component slows the producer down, and loses nothing.
func TestQueue_NextIsSlow_WaitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(), time.Now()
		for range 3 {
			q.put(1, deliver.Patience*9/10, nil)
		}
		d := q.put(1, 0, assert.AnError)
		require.ErrorIs(t, q.Wait(t.Context(), d), assert.AnError)
		assert.Equal(t, 3*deliver.Patience*9/10, time.Since(began))
		assert.Zero(t, q.logs.Len())
	})
}

// What a next component refused is over when that is counted: the next value may be put.
func TestQueue_LastDeliveryIsOver_IsIdle(t *testing.T) {
	q, idle := newQueued(), false
	d := q.Put(1, func(context.Context) error { return assert.AnError }, func() { idle = q.Idle() })
	require.ErrorIs(t, q.Wait(t.Context(), d), assert.AnError)
	assert.True(t, idle)
}

// What was delivered is not kept.
func TestQueue_Delivered_IsFreed(t *testing.T) {
	q := newQueued()
	t.Cleanup(func() { q.Stop(t.Context()) })
	hold, freed := make(chan struct{}), make(chan struct{}, 100)
	q.Put(1, func(context.Context) error { <-hold; return nil }, func() {})
	for range cap(freed) {
		data := new([1 << 10]byte)
		runtime.AddCleanup(data, func(c chan struct{}) { c <- struct{}{} }, freed)
		q.Put(1, func(context.Context) error { data[0] = 1; return nil }, func() {})
	}
	close(hold)
	q.Drain(t.Context())
	require.Eventually(t, func() bool { runtime.GC(); return len(freed) == cap(freed) }, 10*time.Second, time.Millisecond)
}

// No producer waits longer than the patience, what waits is taken back, and nothing else is put.
func TestQueue_NextIsStuck_ProducersGetAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(), time.Now()
		first, second := q.put(1, time.Hour, nil), q.put(2, 0, nil)
		require.ErrorIs(t, q.Wait(t.Context(), second), deliver.ErrStuck)
		require.ErrorIs(t, q.Wait(t.Context(), first), deliver.ErrStuck)
		require.ErrorIs(t, q.Wait(t.Context(), q.put(4, 0, nil)), deliver.ErrStuck)
		assert.Equal(t, deliver.Patience, time.Since(began), "once")
		assert.Equal(t, 1, q.logs.Len(), "once")
		assert.Equal(t, 2+4, q.lost, "the call under way may still succeed")
		q.Drain(t.Context())
		assert.Equal(t, []int{1}, q.given)
		assert.Equal(t, 2+4, q.lost)
		require.NoError(t, q.Wait(t.Context(), q.put(8, 0, nil)), "it works again")
	})
}

// A producer that leaves takes its delivery along.
func TestQueue_ProducerLeaves_DeliveryIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued()
		q.put(1, deliver.Patience/2, nil)
		d := q.put(2, 0, nil)
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/10)
		defer cancel()
		require.ErrorIs(t, q.Wait(ctx, d), context.DeadlineExceeded)
		q.Drain(t.Context())
		assert.Equal(t, []int{1}, q.given)
		assert.Equal(t, 2, q.lost)
	})
}

func TestQueue_Stopped_CallsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued()
		ctx, cancel := context.WithCancel(t.Context())
		q.put(1, time.Hour, nil)
		d := q.put(2, time.Hour, nil)
		q.Stop(ctx)
		cancel()
		require.Error(t, q.Wait(t.Context(), d))
		q.Drain(t.Context())
		synctest.Wait()
		assert.Empty(t, q.given)
		assert.Equal(t, 3, q.lost)
	})
}

// What was put before is delivered.
func TestQueue_Closed_WhatIsPutIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued()
		q.put(1, time.Second, nil)
		q.Close()
		require.ErrorIs(t, q.Wait(t.Context(), q.put(2, 0, nil)), deliver.ErrClosed)
		q.Drain(t.Context())
		assert.Equal(t, []int{1}, q.given)
		assert.Equal(t, 2, q.lost)
	})
}

func TestQueue_DrainIsCutShort_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(), time.Now()
		q.put(1, time.Hour, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.Drain(ctx)
		assert.Equal(t, time.Second, time.Since(began))
		q.Drain(t.Context())
		assert.Equal(t, time.Hour, time.Since(began))
	})
}

// A queue with a limit holds that much for a next component that does not return, and no producer waits.
func TestLimitedQueue_NextIsStuck_HoldsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(), time.Now()
		q.Queue = deliver.NewLimitedQueue(zap.NewNop(), 10)
		for range 5 {
			q.put(4, time.Hour, nil)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, 5*time.Minute, time.Since(began))
		assert.Equal(t, 3*4, q.lost)
		q.Drain(t.Context())
		assert.Equal(t, []int{4, 4}, q.given)
		q.put(11, 0, nil)
		q.Drain(t.Context())
		assert.Equal(t, []int{4, 4, 11}, q.given, "what is larger than the limit fits alone")
	})
}
