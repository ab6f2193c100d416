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
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// Without Wait, no sender waits for a next component.
func TestConsume_NextIsSlow_SenderDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := findingsRig(t, delivertest.TakesAfter(deliver.Patience/2)), time.Now()
		r.sendEach("a1", "b1")
		assert.Zero(t, time.Since(began))
		time.Sleep(deliver.Patience)
		r.stop()
		assert.Equal(t, []string{"a1", "b1"}, delivered(r.logs))
	})
}

// A sender waits until what came of its batch was taken or refused, so that it slows down with the next
// component; and for one that is stuck, no longer than its patience, once.
func TestConsumeWait_NextTakesItsTime_SenderWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		answer delivertest.Answer
		want   []time.Duration
	}{
		"slow":    {delivertest.TakesAfter(deliver.Patience / 2), []time.Duration{deliver.Patience / 2, deliver.Patience / 2}},
		"stuck":   {delivertest.TakesAfter(time.Hour), []time.Duration{deliver.Patience, 0, 0}},
		"refuses": {delivertest.Refuses(1000, assert.AnError), []time.Duration{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Wait, r.conclude = true, findings
				r.logsToLogs(delivertest.NewNext(tc.answer))
				r.begin()
				var got []time.Duration
				for range tc.want {
					began := time.Now()
					r.mustSend("a1")
					got = append(got, time.Since(began))
				}
				assert.Equal(t, tc.want, got)
				_ = r.instances[0].Shutdown(context.Background())
			})
		})
	}
}

func TestConsumeWait_SenderLeaves_OutputIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		r.logs = delivertest.NewNext(delivertest.TakesAfter(deliver.Patience))
		r.logsToLogs(r.logs)
		r.begin()
		ctx, cancel := context.WithTimeout(t.Context(), deliver.Patience/4)
		defer cancel()
		began := time.Now()
		require.NoError(t, r.send(ctx, "a1"), "the engine has used it")
		assert.Equal(t, deliver.Patience/4, time.Since(began))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a1"}, delivered(r.logs))
		r.stop()
	})
}

// elapsed returns how long a sender waits for a batch, which it sends after a time.
func (r *rig) elapsed(after time.Duration, name string) <-chan time.Duration {
	got := make(chan time.Duration, 1)
	go func() {
		time.Sleep(after)
		began := time.Now()
		assert.NoError(r.tb, r.send(context.Background(), name))
		got <- time.Since(began)
	}()
	return got
}

// A sender waits for the call that has what came of its batch, and each call may take the patience.
func TestConsumeWait_CallsFollowEachOther_SenderWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = deliver.Patience * 3 / 4
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		r.logsToLogs(delivertest.NewNext(delivertest.TakesAfter(call)))
		r.begin()
		first, second, third := r.elapsed(0, "a1"), r.elapsed(call/3, "b1"), r.elapsed(call+call/3, "c1")
		assert.Equal(t, call, <-first)
		assert.Equal(t, 2*call-call/3, <-second)
		assert.Equal(t, 2*call-call/3, <-third)
		r.stop()
	})
}

// While refused findings rest, no sender waits for them; while they are sent again, senders wait.
func TestConsumeWait_Retry_SenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		r.logsToLogs(delivertest.NewNext(func(ctx context.Context, call int64) error {
			if call == 1 {
				return assert.AnError
			}
			return delivertest.TakesAfter(deliver.Patience/2)(ctx, call)
		}))
		r.begin()
		r.mustSend("a1")
		time.Sleep(again.InitialInterval + deliver.Patience/4)
		began := time.Now()
		r.mustSend("b1")
		assert.Equal(t, deliver.Patience/4+deliver.Patience/2, time.Since(began), "the retry, and the next call")
		r.stop()
	})
}

// A sender waits again once a part that was refused is taken.
func TestConsumeWait_AfterAPart_SenderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		next := &partly{Logs: r.logs}
		r.logsToLogs(slowly{next})
		r.begin()
		r.mustSend("a1 b1")
		time.Sleep(time.Minute)
		began := time.Now()
		r.mustSend("c1")
		assert.Equal(t, deliver.Patience/2, time.Since(began))
		r.stop()
	})
}

// slowly is a next component that takes half the patience for each call.
type slowly struct{ *partly }

func (s slowly) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	time.Sleep(deliver.Patience / 2)
	return s.partly.ConsumeLogs(ctx, ld)
}

// Nothing comes of an output that has ended.
func TestConsumeWait_OutputHasEnded_SenderDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Wait, r.conclude = true, findings
		r.logsToLogs(r.logs)
		r.logsToMetrics(r.metrics)
		r.begin()
		r.mustSend("a1")
		require.NoError(t, r.instances[0].output.box.stop(t.Context()))
		began := time.Now()
		r.mustSend("b1")
		assert.Zero(t, time.Since(began))
		r.stop()
	})
}

// A next component that does not return is logged once, until one call returns in time.
func TestFindings_NextTakesLong_IsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		takes.Store(int64(time.Minute))
		r := findingsRig(t, func(context.Context, int64) error { time.Sleep(time.Duration(takes.Load())); return nil })
		logged := func() int { return r.log.FilterMessage("The next component does not return; events wait for it").Len() }
		r.mustSend("a1")
		time.Sleep(deliver.Patience - 1)
		assert.Zero(t, logged())
		time.Sleep(2 * time.Minute)
		r.mustSend("a2")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, logged())
		takes.Store(0)
		r.sendEach("a3")
		takes.Store(int64(time.Minute))
		r.mustSend("a4")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 2, logged())
		r.stop()
	})
}

// An output logs with the names of its own pipelines, whichever was made first.
func TestOutput_Refused_LogHasItsSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(name string) Output { return Output{Findings: findingsIn(name), FindingSpans: findingsIn(name)} }
		log := r.set.Logger
		r.set.Logger = log.With(zap.String("signal", "logs"))
		r.logsToLogs(r.logs)
		r.set.Logger = log.With(zap.String("signal", "traces"))
		r.logsToTraces(delivertest.NewNext(delivertest.Refuses(1, assert.AnError)))
		r.begin()
		r.mustSend("a1")
		time.Sleep(time.Minute)
		all := r.log.FilterMessageSnippet("The next component").All()
		require.NotEmpty(t, all)
		for _, l := range all {
			assert.Equal(t, "traces", l.ContextMap()["signal"], l.Message)
		}
		r.stop()
	})
}

// Each time of refusals is logged, with its end.
func TestFindings_RefusedForAWhileTwice_EachIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		r := findingsRig(t, refuse.answer)
		for range 2 {
			refuse.on.Store(true)
			r.mustSend("a1")
			time.Sleep(time.Minute)
			refuse.on.Store(false)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		assert.Equal(t, 2, r.log.FilterMessageSnippet("they are sent again until it takes them").Len())
		assert.Equal(t, 2, r.log.FilterMessage("The next component takes events again").Len())
		r.stop()
	})
}

// The end logs the losses that the log did not have yet.
func TestFindings_RefusedForGoodBeforeTheEnd_AllAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Refuses(1<<60, consumererror.NewPermanent(assert.AnError)))
		r.sendEach("a1 b1 c1")
		r.stop()
		logged := int64(0)
		for _, l := range r.log.FilterMessage("The next component refused events for good").All() {
			logged += l.ContextMap()["events"].(int64)
		}
		assert.Equal(t, int64(3), logged)
	})
}
