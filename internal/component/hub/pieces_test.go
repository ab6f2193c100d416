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
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// sizes plays calls of a next component that has n entries waiting: "+" takes a call, "-" refuses it for a reason that
// may pass, "!" for good. It returns the size of each call.
func sizes(n int, answers string) (all []int) {
	p := newPieces()
	for _, answer := range answers {
		size := min(n, p.next())
		all = append(all, size)
		switch answer {
		case '+':
			p.took(size)
		case '-':
			p.wait(size)
		case '!':
			p.divide(size)
		}
	}
	return all
}

func TestPieces(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		answers string
		want    []int
	}{
		"taken":                   {600, "+++", []int{512, 512, 512}},
		"every fourth is smaller": {600, "---" + "-" + "---" + "-" + "---" + "-", []int{512, 512, 512, 256, 512, 512, 512, 128, 512, 512, 512, 64}},
		"few wait":                {5, "---" + "-" + "---" + "-" + "---" + "-", []int{5, 5, 5, 2, 5, 5, 5, 1, 5, 5, 5, 1}},
		"smaller is taken":        {600, "---" + "+++", []int{512, 512, 512, 256, 256, 256}},
		"full again":              {600, "---" + "+" + "-+", []int{512, 512, 512, 256, 256, 512}},
		"grows below the limit":   {400, "---" + "-" + "---" + "++", []int{400, 400, 400, 200, 400, 400, 400, 100, 200}},
		"no two in turn":          {600, "---+---+", []int{512, 512, 512, 256, 256, 512, 512, 256}},
		"for good":                {600, "!!+++", []int{512, 256, 128, 256, 512}},
		"one for good":            {1, "!!", []int{1, 1}},
		"a smaller one for good":  {600, "---" + "!!!+", []int{512, 512, 512, 256, 128, 64, 32}},
		"one alone for now":       {1, "---+", []int{1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, sizes(c.n, c.answers)) })
	}
}

// A size that was refused is tried again, in case it was for lack of room.
func TestPieces_SmallerOnesAreTakenForLong_LargerIsTried(t *testing.T) {
	p := newPieces()
	for range probeEvery - 1 {
		p.wait(p.next())
	}
	p.took(p.next())
	calls := 1
	for ; p.next() == maxPiece/2; calls++ {
		p.took(maxPiece / 2)
	}
	assert.Equal(t, growAfter+1, calls)
	assert.Equal(t, maxPiece, p.next())
}

func TestPieces_LastCalls(t *testing.T) {
	p := newPieces()
	for range probeEvery - 1 {
		p.wait(p.next())
	}
	p.end()
	assert.Equal(t, maxPiece, p.next(), "no probe: no call follows that would be larger")
	require.True(t, p.last(5, false))
	require.True(t, p.last(p.next(), false))
	assert.Equal(t, 1, p.next())
	require.False(t, p.last(1, true), "that says nothing of the others")
	for range maxAlone {
		require.True(t, p.last(2, false))
		require.False(t, p.last(1, false))
		assert.Equal(t, maxPiece, p.next())
	}
	require.False(t, p.last(maxPiece, false), "nothing is taken")
	require.True(t, p.last(maxPiece, true))
	p.took(p.next())
	require.True(t, p.last(2, false), "something is taken")
}

// One entry that was alone in the outbox, and refused for a while, says nothing of larger calls.
func TestPieces_OneAloneIsTakenAtLast_LargeCallsFollow(t *testing.T) {
	p := newPieces()
	for range probeEvery - 1 {
		p.next()
		p.wait(1)
	}
	require.Equal(t, 1, p.next())
	p.took(1)
	assert.Equal(t, maxPiece, p.next())
}

// queued is an exporter with a sending queue, and a backend that takes so long for each request.
func queued(t *testing.T, takes time.Duration, size exporterhelper.RequestSizerType, n int64) (e exporter.Logs, got *atomic.Int64) {
	t.Helper()
	got = &atomic.Int64{}
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize, queue.NumConsumers = size, n, 1
	queue.Batch = configoptional.None[exporterhelper.BatchConfig]()
	e, err := exporterhelper.NewLogs(t.Context(), exportertest.NewNopSettings(component.MustNewType("queued")), &struct{}{},
		func(_ context.Context, ld plog.Logs) error {
			time.Sleep(takes)
			got.Add(int64(ld.LogRecordCount()))
			return nil
		},
		exporterhelper.WithQueue(configoptional.Some(queue)), exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}))
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	return e, got
}

// A sending queue refuses a call that is larger than itself, without a permanent error.
func TestFindings_CallIsLargerThanTheQueue_IsDivided(t *testing.T) {
	for name, atTheEnd := range map[string]bool{"while it runs": false, "at the end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				next, got := queued(t, 0, exporterhelper.RequestSizerTypeItems, 256)
				r := newRig(t)
				conclude := func() Output { return Output{Findings: numbered(400, 1)} }
				r.conclude = func(string) Output { return conclude() }
				r.Flush = func(time.Time) Output {
					if atTheEnd {
						return conclude()
					}
					return Output{}
				}
				slowly, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
					defer time.Sleep(time.Millisecond) // the queue is empty then
					return next.ConsumeLogs(ctx, ld)
				})
				require.NoError(t, err)
				r.logsToLogs(slowly)
				r.begin()
				if !atTheEnd {
					r.mustSend("all")
					time.Sleep(time.Minute)
					assert.Equal(t, int64(400), got.Load())
				}
				r.stop()
				require.NoError(t, next.Shutdown(t.Context()))
				assert.Equal(t, int64(400), got.Load())
				assert.Zero(t, r.counts.EventsLost.Load())
			})
		})
	}
}

// A queue that is full takes large calls when it has room.
func TestFindings_QueueIsFull_LargeCallsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, got := queued(t, 20*time.Second, exporterhelper.RequestSizerTypeRequests, 4)
		r := newRig(t)
		const n, every = 20_000, 20 * time.Second
		r.conclude = func(string) Output { return Output{Findings: numbered(n, 1)} }
		r.logsToLogs(next)
		r.begin()
		r.mustSend("all")
		time.Sleep(2 * every * n / maxPiece)
		assert.Equal(t, int64(n), got.Load(), "in twice the time of the largest calls")
		r.stop()
		require.NoError(t, next.Shutdown(t.Context()))
	})
}

// takesUpTo refuses calls of more events, and counts what it takes.
func takesUpTo(t *testing.T, most int) (next consumer.Logs, taken *atomic.Int64) {
	t.Helper()
	taken = &atomic.Int64{}
	next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		if ld.LogRecordCount() > most {
			return assert.AnError
		}
		taken.Add(int64(ld.LogRecordCount()))
		return nil
	})
	require.NoError(t, err)
	return next, taken
}

func TestFindings_LargeCallsAreRefused_ManyAreSoonTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, taken := takesUpTo(t, 300)
		r := newRig(t)
		r.conclude = func(string) Output { return Output{Findings: numbered(20_000, 1)} }
		r.logsToLogs(next)
		r.begin()
		r.mustSend("all")
		time.Sleep(time.Minute)
		assert.Equal(t, int64(20_000), taken.Load())
		r.stop()
	})
}

// The last calls are as large as after no outage: there is no time for many.
func TestLeave_AfterAnOutage_FewLargeCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends atomic.Bool
		r := newRig(t)
		r.conclude = func(string) Output { return Output{Findings: numbered(3*maxPiece, 1)} }
		r.Flush = func(time.Time) Output { ends.Store(true); return Output{} }
		next := delivertest.NewNext(func(context.Context, int64) error {
			if !ends.Load() {
				return assert.AnError
			}
			return nil
		})
		r.logsToLogs(next)
		r.begin()
		r.mustSend("all")
		time.Sleep(2 * time.Minute)
		before := next.Calls()
		r.stop()
		assert.Equal(t, before+3, next.Calls())
		assert.Equal(t, 3*maxPiece, next.Logs.LogRecordCount())
	})
}

// A next component that takes nothing is not asked for each event as the collector ends.
func TestLeave_NextTakesNothing_FewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(string) Output { return Output{Findings: numbered(4*maxPiece, 1)} }
		next := delivertest.NewNext(delivertest.Refuses(1<<60, assert.AnError))
		r.logsToLogs(next)
		r.begin()
		r.sendEach("all")
		before := next.Calls()
		require.ErrorIs(t, r.instances[0].Shutdown(t.Context()), assert.AnError)
		assert.LessOrEqual(t, next.Calls()-before, int64(maxAlone*10+4))
	})
}
