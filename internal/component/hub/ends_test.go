// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// A batch on which the engine panics is lost, its sender gets a permanent error, and the next is used.
func TestConsume_EnginePanics_BatchIsLost(t *testing.T) {
	for _, wait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, used := newRig(t), 0
			r.Wait, r.Used = wait, func(context.Context) { used++ }
			r.conclude = func(name string) Output {
				if name == "bad" {
					panic("a bug")
				}
				return findings(name)
			}
			r.logsToLogs(r.logs)
			r.begin()
			err := r.send(t.Context(), "bad")
			require.ErrorContains(t, err, "use a batch: the analysis panicked: a bug")
			assert.True(t, consumererror.IsPermanent(err))
			assert.Zero(t, used)
			r.mustSend("a1")
			synctest.Wait()
			assert.Equal(t, []string{"a1"}, delivered(r.logs))
			r.stop()
		})
	}
}

// The interval begins once all instances have started: their next components have, too.
func TestStart_NotAllInstances_NothingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Tick = func(time.Time) Output { return findings("a1") }
		r.logsToLogs(r.logs)
		r.logsToMetrics(r.metrics)
		require.NoError(t, r.instances[0].Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, delivered(r.logs))
		require.NoError(t, r.instances[1].Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.NotEmpty(t, delivered(r.logs))
		r.stop()
	})
}

func TestShutdown_WithoutStart_SendsNothing(t *testing.T) {
	r := newRig(t)
	r.Flush = func(time.Time) Output { return findings("a1") }
	r.logsToLogs(r.logs)
	require.NoError(t, r.instances[0].Shutdown(t.Context()))
	assert.Empty(t, delivered(r.logs))
}

// A tick that does not end keeps no Shutdown.
func TestShutdown_TickTakesLong_EndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Tick = func(time.Time) Output { time.Sleep(time.Hour); return Output{} }
		r.logsToLogs(r.logs)
		r.begin()
		time.Sleep(2 * tickEvery)
		began := time.Now()
		require.ErrorContains(t, r.instances[0].Shutdown(context.Background()), "busy")
		assert.LessOrEqual(t, time.Since(began), 3*deliver.ShutdownLimit)
		time.Sleep(2 * time.Hour) // the tick ends
	})
}

// A delivery under way at the end has its time.
func TestShutdown_DeliveryIsUnderWay_IsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		var cancelled error
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			select {
			case <-time.After(300 * time.Millisecond):
				return r.logs.ConsumeLogs(ctx, ld)
			case <-ctx.Done():
				cancelled = ctx.Err()
				return consumererror.NewPermanent(ctx.Err())
			}
		})
		require.NoError(t, err)
		r.logsToLogs(next)
		r.begin()
		r.mustSend("a1")
		require.NoError(t, r.instances[0].Shutdown(t.Context()))
		require.NoError(t, cancelled)
		assert.Equal(t, []string{"a1"}, delivered(r.logs))
		assert.Zero(t, r.counts.EventsLost.Load())
	})
}

// States that are kept behind the delivery are not kept while a finding is refused: a restart would not send it.
func TestSent_FindingIsRefused_NotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		m := &memory{data: map[string][]byte{}}
		r := newRig(t)
		var calls atomic.Int64
		r.Wait, r.conclude, r.Storage = true, findings, &id
		r.Save = func(context.Context, *States, *Output) {}
		r.Sent = func(context.Context, *States, *Output) { calls.Add(1) }
		kept := &counter{}
		r.States = map[string]State{"counter": kept}
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if err := refuse.answer(ctx, 0); err != nil {
				return err
			}
			return r.logs.ConsumeLogs(ctx, ld)
		})
		require.NoError(t, err)
		r.logsToLogs(next)
		require.NoError(t, r.instances[0].Start(t.Context(), host{componenttest.NewNopHost(), map[component.ID]component.Component{id: m}}))
		before := calls.Load()
		kept.n = 1
		r.mustSend("a1")
		time.Sleep(21 * tickEvery)
		synctest.Wait()
		assert.Equal(t, before, calls.Load())
		assert.Empty(t, m.data, "nor on the interval")
		refuse.on.Store(false)
		time.Sleep(21 * tickEvery)
		synctest.Wait()
		assert.NotEmpty(t, m.data)
		r.mustSend("a2")
		assert.Greater(t, calls.Load(), before)
		require.NoError(t, r.instances[0].Shutdown(t.Context()))
	})
}
