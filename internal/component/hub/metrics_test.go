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
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// metricsRig is a rig with one output, for metrics, which flushes with each second tick.
func metricsRig(t *testing.T, answer delivertest.Answer) *rig {
	t.Helper()
	r := newRig(t)
	r.FlushInterval, r.Metrics = 2*tickEvery, r.toy.metrics
	r.conclude = func(name string) Output { return Output{Measured: name == "measured"} }
	r.metrics = delivertest.NewNext(answer)
	r.logsToMetrics(r.metrics)
	r.begin()
	return r
}

func TestMetrics_SentWithFlushIntervalAndMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := metricsRig(t, delivertest.Takes)
		for _, want := range []int{1, 1, 2, 2} { // the first tick has nothing before it
			time.Sleep(tickEvery)
			synctest.Wait()
			assert.Len(t, valuesOf(r.metrics), want)
		}
		r.sendEach("x", "measured", "x", "measured")
		assert.Equal(t, []int64{1, 2, 3, 4}, valuesOf(r.metrics))
		r.stop()
		assert.Equal(t, []int64{1, 2, 3, 4, 5}, valuesOf(r.metrics), "the last values")
	})
}

func TestMetrics_TickHasMeasured_SentNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.FlushInterval, r.Metrics = time.Hour, r.toy.metrics
		r.Tick = func(time.Time) Output { return Output{Measured: true} }
		r.logsToMetrics(r.metrics)
		r.begin()
		time.Sleep(3 * tickEvery)
		synctest.Wait()
		assert.Equal(t, []int64{1, 2, 3}, valuesOf(r.metrics))
		r.stop()
	})
}

// Series are cumulative: the next flush has the values.
func TestMetrics_Refused_NextFlushSendsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := metricsRig(t, delivertest.Refuses(2, assert.AnError))
		r.sendEach("measured", "measured", "measured", "measured")
		assert.Equal(t, []int64{3, 4}, valuesOf(r.metrics))
		assert.Equal(t, 1, r.log.FilterMessageSnippet("Metrics were refused").Len(), "once")
		r.stop()
	})
}

func TestMetrics_LastAreRefused_ShutdownReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := metricsRig(t, delivertest.Refuses(2, assert.AnError))
		r.sendEach("measured")
		require.ErrorIs(t, r.instances[0].Shutdown(t.Context()), errMetrics)
		assert.Equal(t, int64(2), r.metrics.Calls())
	})
}

// A next component that is not done with the last metrics gets the next ones.
func TestMetrics_NextIsStuck_IsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := metricsRig(t, delivertest.TakesAfter(time.Hour)), time.Now()
		r.sendEach("measured", "measured", "measured")
		assert.Equal(t, int64(1), r.values.Load(), "none are made")
		assert.Zero(t, time.Since(began))
		time.Sleep(time.Hour)
		synctest.Wait()
		r.sendEach("measured")
		assert.Equal(t, int64(2), r.metrics.Calls())
		_ = r.instances[0].Shutdown(context.Background())
	})
}

// A sender that waits for what came of its batch waits for metrics, too.
func TestMetrics_NextIsSlow_SenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.Metrics = true, r.toy.metrics
		r.conclude = func(string) Output { return Output{Measured: true} }
		r.logsToMetrics(delivertest.NewNext(delivertest.TakesAfter(deliver.Patience / 2)))
		r.begin()
		began := time.Now()
		r.mustSend("x", "y")
		assert.Equal(t, deliver.Patience, time.Since(began))
		r.stop()
	})
}

// Metrics that have no series are not sent, and an engine may have none.
func TestMetrics_None_NoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, none := range []func(time.Time) pmetric.Metrics{nil, func(time.Time) pmetric.Metrics { return pmetric.NewMetrics() }} {
			r := newRig(t)
			r.Metrics = none
			r.logsToMetrics(r.metrics)
			r.begin()
			time.Sleep(2 * tickEvery)
			r.stop()
			assert.Zero(t, r.metrics.Calls())
		}
	})
}

// Metrics that are under way at the end are waited for, and the last values go out in any case.
func TestMetrics_UnderWayAtTheEnd_LastValuesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := metricsRig(t, delivertest.TakesAfter(deliver.Patience/2))
		r.sendEach("measured")
		r.stop()
		assert.Equal(t, []int64{1, 2}, valuesOf(r.metrics))
	})
}

// A call that takes long is cancelled early in the end, so that the last values go out.
func TestMetrics_StuckUntilTheEnd_LastValuesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := metricsRig(t, func(ctx context.Context, call int64) error {
			if call == 1 {
				return delivertest.TakesAfter(time.Hour)(ctx, call)
			}
			return nil
		})
		r.Flush = func(time.Time) Output { return Output{Measured: true} }
		r.sendEach("measured")
		time.Sleep(tickEvery / 2)
		r.stop()
		assert.Equal(t, []int64{2}, valuesOf(r.metrics), "once")
		assert.Equal(t, int64(2), r.metrics.Calls())
	})
}

// The engine works on while the end waits for metrics.
func TestMetrics_UnderWayAtTheEnd_SendersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.Metrics = true, r.toy.metrics
		r.FlushInterval = tickEvery
		r.conclude = findings
		r.logsToLogs(r.logs)
		r.logsToMetrics(delivertest.NewStuck(t))
		r.begin()
		time.Sleep(tickEvery + tickEvery/2)
		stopped := make(chan error, 1)
		go func() { stopped <- r.instances[1].Shutdown(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		r.mustSend("a1")
		assert.Zero(t, time.Since(began))
		require.Error(t, <-stopped)
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		require.NoError(t, r.instances[0].Shutdown(context.Background()))
	})
}

// valued is a rig with metrics whose values, from a flush on, are 100 and more.
func valued(t *testing.T, takes time.Duration) *rig {
	t.Helper()
	r := newRig(t)
	r.metrics = delivertest.NewNext(delivertest.TakesAfter(takes))
	r.Metrics = r.toy.metrics
	r.Flush = func(time.Time) Output { r.values.Store(100); return Output{} }
	r.logsToMetrics(r.metrics)
	return r
}

// Metrics that a tick sends as the output ends do not take the place of the last ones.
func TestMetrics_TickSendsThemAtTheEnd_LastValuesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := valued(t, 10*time.Millisecond)
		r.FlushInterval = tickEvery
		r.Tick = func(time.Time) Output { time.Sleep(2 * time.Second); return Output{} }
		r.begin()
		time.Sleep(tickEvery + time.Second)
		r.stop()
		assert.Equal(t, []int64{1, 101}, valuesOf(r.metrics))
	})
}

// A batch that comes while the last values wait sends others.
func TestMetrics_BatchComesAtTheEnd_LastValuesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := valued(t, 500*time.Millisecond)
		r.conclude = func(string) Output { return Output{Measured: true} }
		logs := r.logsToLogs(r.logs)
		r.begin()
		r.mustSend("first") // its metrics take 500 ms
		time.AfterFunc(100*time.Millisecond, func() {
			r.takes.Store(int64(time.Second))
			assert.NoError(t, r.send(context.Background(), "second"))
		})
		require.NoError(t, r.instances[0].Shutdown(t.Context()))
		assert.Equal(t, []int64{1, 101, 102}, valuesOf(r.metrics))
		require.NoError(t, logs.Shutdown(t.Context()))
	})
}

// An engine that is busy with its metrics is left behind.
func TestMetrics_TakeLong_ShutdownEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Metrics = func(time.Time) pmetric.Metrics { time.Sleep(time.Hour); return r.toy.metrics(time.Now()) }
		r.logsToMetrics(r.metrics)
		r.begin()
		began := time.Now()
		require.ErrorContains(t, r.instances[0].Shutdown(t.Context()), "deliver the last metrics: the analysis is busy")
		assert.LessOrEqual(t, time.Since(began), deliver.ShutdownLimit)
		time.Sleep(2 * time.Hour)
		assert.Zero(t, r.metrics.Calls(), "the next component may have stopped")
	})
}

// A tick that waited for the flush has sent metrics to a next component that is stuck: the engine is not busy.
func TestMetrics_NextIsStuckAtTheEnd_EngineIsNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Metrics = r.toy.metrics
		r.Flush = func(time.Time) Output { time.Sleep(5 * time.Second); return Output{} }
		r.logsToMetrics(delivertest.NewStuck(t))
		r.begin()
		time.Sleep(tickEvery - time.Second)
		err := r.instances[0].Shutdown(t.Context())
		require.ErrorContains(t, err, "did not return and are left behind")
		assert.NotContains(t, err.Error(), "busy")
	})
}

func TestMetrics_BatchSendsThemAtTheEnd_LastValuesAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := valued(t, 10*time.Millisecond)
		r.conclude = func(string) Output { return Output{Measured: true} }
		r.begin()
		r.takes.Store(int64(time.Second))
		go func() { _ = r.send(context.Background(), "busy") }()
		synctest.Wait()
		r.mustSend("waits")
		r.stop()
		all := valuesOf(r.metrics)
		assert.Equal(t, int64(101), all[len(all)-1], "%v", all)
	})
}

// Values that were refused, and of which no later ones came, are lost.
func TestMetrics_RefusedAndExpired_ShutdownReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.FlushInterval = tickEvery
		var none atomic.Bool
		r.Metrics = func(now time.Time) pmetric.Metrics {
			if none.Load() {
				return pmetric.NewMetrics()
			}
			return r.toy.metrics(now)
		}
		r.logsToMetrics(delivertest.NewNext(delivertest.Refuses(1, assert.AnError)))
		r.begin()
		time.Sleep(tickEvery + time.Second)
		none.Store(true)
		require.ErrorIs(t, r.instances[0].Shutdown(context.Background()), errMetrics)
	})
}
