// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// busyRig returns a rig of which another sender uses the engine for a time, and waits until it does.
func busyRig(t *testing.T, busy time.Duration, change func(*rig)) *rig {
	t.Helper()
	r := newRig(t)
	r.size, r.InboxBytes = 1000, 3*(1000+waitingBytes)
	if change != nil {
		change(r)
	}
	r.start()
	r.takes.Store(int64(busy))
	go func() { _ = r.send(context.Background(), "busy") }()
	synctest.Wait()
	r.takes.Store(int64(0))
	return r
}

// end waits until the engine is free, and stops the instances.
func (r *rig) end() {
	r.tb.Helper()
	time.Sleep(10 * time.Hour)
	synctest.Wait()
	r.stop()
}

func TestConsume_EngineIsBusy_BatchesWaitInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := busyRig(t, time.Hour, nil), time.Now()
		r.mustSend("1", "2", "3")
		assert.Zero(t, time.Since(began), "no sender waits")
		assert.Empty(t, r.noted())
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1", "2", "3"}, r.noted())
		r.end()
	})
}

// What concludes from time, or ends an output, uses first what came before.
func TestTickAndFlush_BatchesWait_AreUsedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, tickEvery+time.Second, func(r *rig) {
			r.Tick = func(time.Time) Output { r.note("tick"); return Output{} }
			r.Flush = func(time.Time) Output { r.note("flush"); return Output{} }
		})
		r.mustSend("1")
		time.Sleep(tickEvery + 2*time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1", "tick"}, r.noted())
		r.takes.Store(int64(time.Second))
		go func() { _ = r.send(context.Background(), "busy") }()
		synctest.Wait()
		r.mustSend("2")
		require.NoError(t, r.instances[0].Shutdown(t.Context()))
		assert.Equal(t, []string{"busy", "2", "flush"}, r.noted())
		r.end()
	})
}

func TestConsume_InboxIsFull_RefusedAfterPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, nil)
		r.mustSend("1", "2", "3")
		began := time.Now()
		err := r.send(t.Context(), "refused")
		require.ErrorIs(t, err, ErrBusy)
		assert.False(t, consumererror.IsPermanent(err))
		assert.Equal(t, deliver.Patience, time.Since(began))
		assert.Equal(t, int64(1), r.counts.InboxRefused.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1", "2", "3"}, r.noted(), "nothing of it was used")
		r.mustSend("4")
		assert.Equal(t, int64(1), r.counts.InboxRefused.Load())
		r.end()
	})
}

func TestConsume_InboxIsFullAndSenderLeaves_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, nil)
		r.mustSend("1", "2", "3")
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/2)
		defer cancel()
		err := r.send(ctx, "refused")
		require.ErrorIs(t, err, ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, int64(1), r.counts.InboxRefused.Load())
		r.end()
	})
}

// A sender waits no longer than until there is room.
func TestConsume_RoomComesEarlier_IsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, deliver.Patience/2, nil)
		r.mustSend("1", "2", "3")
		began := time.Now()
		r.mustSend("4")
		assert.Equal(t, deliver.Patience/2, time.Since(began))
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1", "2", "3", "4"}, r.noted())
		assert.Zero(t, r.counts.InboxRefused.Load())
		r.end()
	})
}

func TestConsume_LargerThanInbox_FitsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, func(r *rig) { r.InboxBytes = 10 })
		r.mustSend("large")
		require.ErrorIs(t, r.send(t.Context(), "second"), ErrBusy)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "large"}, r.noted())
		r.end()
	})
}

// Batches of no bytes take room, too.
func TestConsume_EmptyBatches_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, func(r *rig) { r.size, r.InboxBytes = 0, 10*waitingBytes })
		for i := range 10 {
			r.mustSend(strconv.Itoa(i))
		}
		require.ErrorIs(t, r.send(t.Context(), "refused"), ErrBusy)
		r.end()
	})
}

// What a use of the engine has freed is room for others, also while it goes on with the rest.
func TestConsume_EngineWorksOff_EachBatchFreesItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Second, nil)
		r.mustSend("1", "2", "3")
		r.takes.Store(int64(time.Hour))
		time.Sleep(time.Second)
		synctest.Wait() // the engine uses 1
		r.mustSend("4")
		require.ErrorIs(t, r.send(t.Context(), "refused"), ErrBusy)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1", "2", "3", "4"}, r.noted())
		r.end()
	})
}

func TestConsumeWait_EngineIsBusy_SenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := busyRig(t, time.Hour, func(r *rig) { r.Wait = true }), time.Now()
		r.mustSend("1")
		assert.Equal(t, time.Hour, time.Since(began))
		assert.Equal(t, []string{"busy", "1"}, r.noted())
		r.end()
	})
}

// A sender that gives up takes its batch along: it sends it again.
func TestConsumeWait_SenderLeaves_BatchIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, func(r *rig) { r.Wait = true })
		go func() { assert.NoError(t, r.send(context.Background(), "1")) }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.send(ctx, "left")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.False(t, consumererror.IsPermanent(err))
		assert.Equal(t, int64(1), r.counts.InboxRefused.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"busy", "1"}, r.noted())
		r.end()
	})
}

// A batch that is taken back makes room for one that waits for it.
func TestConsumeWait_SenderLeaves_RoomIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Hour, func(r *rig) { r.Wait, r.InboxBytes = true, 1 })
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/2)
		defer cancel()
		go func() { assert.Error(t, r.send(ctx, "left")) }()
		synctest.Wait()
		r.mustSend("1")
		assert.Equal(t, []string{"busy", "1"}, r.noted())
		r.end()
	})
}

// A sender that gives up while the engine uses its batch waits for that: the same again would be duplicates.
func TestConsumeWait_SenderLeavesDuringUse_BatchIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := busyRig(t, time.Second, func(r *rig) { r.Wait = true })
		r.takes.Store(int64(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, r.send(ctx, "1"))
		assert.Equal(t, []string{"busy", "1"}, r.noted())
		r.end()
	})
}

// The first sender works for those that came before its turn was over, and not for those that come then.
func TestConsumeWait_OthersSendOnAndOn_SenderReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := busyRig(t, time.Second, func(r *rig) { r.Wait = true }), time.Now()
		r.takes.Store(int64(time.Second))
		first := make(chan time.Duration, 1)
		go func() {
			assert.NoError(t, r.send(context.Background(), "first"))
			first <- time.Since(began)
		}()
		synctest.Wait()
		var senders sync.WaitGroup
		for range 3 { // more than the engine can use
			senders.Go(func() {
				for range 20 {
					_ = r.send(context.Background(), "other")
				}
			})
		}
		assert.LessOrEqual(t, <-first, 5*time.Second)
		senders.Wait()
		r.end()
	})
}

// An instance without senders that wait leaves its batches to a goroutine: no sender works for others on and on.
func TestConsume_SenderHasTheTurn_LeavesWhatComesThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		r.takes.Store(int64(time.Second))
		began := time.Now()
		go func() {
			for range 10 {
				time.Sleep(time.Second / 10)
				assert.NoError(t, r.send(context.Background(), "other"))
			}
		}()
		r.mustSend("first")
		assert.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Minute)
		assert.Len(t, r.noted(), 11)
		r.end()
	})
}

// Each batch is used once or refused, whatever the scheduler does.
func TestConsume_ManyGoroutines_NothingIsLost(t *testing.T) {
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("wait ", wait), func(t *testing.T) {
			r := newRig(t)
			r.Wait, r.Interval, r.size, r.InboxBytes = wait, time.Millisecond, 100, 10_000
			r.conclude = findings
			r.start()
			const senders, each = 8, 500
			var all sync.WaitGroup
			var refused atomic.Int64
			for s := range senders {
				all.Go(func() {
					for range each {
						if r.send(context.Background(), fmt.Sprint(string(rune('a'+s)), "1")) != nil {
							refused.Add(1)
						}
					}
				})
			}
			all.Wait()
			r.stop()
			assert.Equal(t, senders*each, len(r.noted())+int(refused.Load()))
			assert.Equal(t, refused.Load(), r.counts.InboxRefused.Load())
			assert.Equal(t, senders*each-int(refused.Load()), r.logs.Logs.LogRecordCount())
			assert.Zero(t, r.counts.EventsLost.Load())
		})
	}
}
