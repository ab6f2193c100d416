// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"runtime"
	"sync"
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

func newQueued(limit int) *queued {
	core, logs := observer.New(zapcore.InfoLevel)
	return &queued{Queue: deliver.NewQueue(zap.New(core), limit), logs: logs}
}

// put puts a call with data of a size, which takes some time and ends with an error.
func (q *queued) put(size int, takes time.Duration, err error) *deliver.Delivery {
	return q.Put(size, func(ctx context.Context) error {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
		q.given = append(q.given, size)
		return err
	}, func() { q.lost += size })
}

func TestQueue_NextReturns_WaitReturnsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(10)
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
		q, began := newQueued(100), time.Now()
		for range 3 {
			q.put(1, deliver.Patience*9/10, nil)
		}
		d := q.put(1, 0, assert.AnError)
		require.ErrorIs(t, q.Wait(t.Context(), d), assert.AnError)
		assert.Equal(t, 3*deliver.Patience*9/10, time.Since(began))
		assert.Zero(t, q.logs.Len())
	})
}

func TestQueue_NextIsSlow_MoreThanTheLimitAtOnce_LosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(10), time.Now()
		for range 100 {
			q.put(4, deliver.Patience/2, nil)
		}
		assert.Zero(t, time.Since(began), "who puts may hold a lock")
		q.Drain()
		assert.Len(t, q.given, 100)
		assert.Zero(t, q.lost)
		assert.Equal(t, 50*deliver.Patience, time.Since(began))
	})
}

// What a next component refused is over when that is counted: the next value may be put.
func TestQueue_LastDeliveryIsOver_IsIdle(t *testing.T) {
	q, idle := newQueued(10), false
	d := q.Put(1, func(context.Context) error { return assert.AnError }, func() { idle = q.Idle() })
	require.ErrorIs(t, q.Wait(t.Context(), d), assert.AnError)
	assert.True(t, idle)
}

// Producers that give up, as clients at their deadlines, leave no more than the limit.
func TestQueue_ProducersLeave_TheLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(10)
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/100)
			_ = q.Wait(ctx, q.put(2, deliver.Patience/3, nil)) // lost or left
			cancel()
		}
		began := time.Now()
		q.Drain()
		assert.LessOrEqual(t, time.Since(began), 6*deliver.Patience/3, "five wait, and one is under way")
		assert.Positive(t, q.lost)
	})
}

// What was delivered is not kept.
func TestQueue_Delivered_IsFreed(t *testing.T) {
	q := newQueued(1000)
	t.Cleanup(func() { q.Stop(t.Context()) })
	hold, freed := make(chan struct{}), make(chan struct{}, 100)
	q.Put(1, func(context.Context) error { <-hold; return nil }, func() {})
	for range cap(freed) {
		data := new([1 << 10]byte)
		runtime.AddCleanup(data, func(c chan struct{}) { c <- struct{}{} }, freed)
		q.Put(1, func(context.Context) error { data[0] = 1; return nil }, func() {})
	}
	close(hold)
	q.Drain()
	require.Eventually(t, func() bool { runtime.GC(); return len(freed) == cap(freed) }, 10*time.Second, time.Millisecond)
}

func TestQueue_NextIsStuck_NobodyWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(10), time.Now()
		require.NoError(t, q.Wait(t.Context(), q.put(4, time.Hour, nil)))
		assert.Equal(t, deliver.Patience, time.Since(began))
		require.NoError(t, q.Wait(t.Context(), q.put(6, 0, nil)))
		require.ErrorIs(t, q.Wait(t.Context(), q.put(1, 0, nil)), deliver.ErrFull)
		assert.Equal(t, deliver.Patience, time.Since(began), "once")
		assert.Equal(t, 1, q.logs.Len(), "once")
		assert.Equal(t, 1, q.lost)
		time.Sleep(time.Hour)
		q.Drain()
		assert.Equal(t, []int{4, 6}, q.given, "what waited is delivered")
	})
}

// When each call of the next component takes too long, the limit also holds between two calls.
func TestQueue_EachCallIsStuck_TheLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(10)
		const producers, puts, takes = 5, 20, 5 * deliver.Patience
		var all sync.WaitGroup
		for range producers {
			all.Go(func() {
				for range puts {
					_ = q.Wait(t.Context(), q.put(1, takes, nil)) // lost is counted
					time.Sleep(deliver.Patience)
				}
			})
		}
		all.Wait()
		began := time.Now()
		q.Drain()
		assert.LessOrEqual(t, time.Since(began), 10*takes, "of those that waited")
		assert.Equal(t, producers*puts, q.lost+len(q.given))
	})
}

func TestQueue_MoreThanTheLimitAlone_IsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(10)
		require.NoError(t, q.Wait(t.Context(), q.put(11, 0, nil)))
		q.Drain()
		assert.Equal(t, []int{11}, q.given)
	})
}

func TestQueue_CallerLeaves_DeliveryGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueued(10)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, q.Wait(ctx, q.put(1, time.Second/2, assert.AnError)))
		q.Drain()
		assert.Equal(t, []int{1}, q.given)
	})
}

func TestQueue_Stopped_CallsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueued(10), time.Now()
		q.put(1, time.Hour, nil)
		q.put(2, time.Hour, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		q.Stop(ctx)
		third := q.put(3, time.Hour, nil)
		_ = q.Wait(t.Context(), third) // it may be over already
		q.Drain()
		assert.Equal(t, time.Second/2, time.Since(began))
		assert.Empty(t, q.given)
		assert.Equal(t, 6, q.lost)
	})
}
