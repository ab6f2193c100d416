// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// tally counts as the counters of a receiver do.
type tally struct{ emitted, dropped, retried int64 }

func into(n *int64) deliver.Adder {
	return func(_ context.Context, by int64, _ ...metric.AddOption) { *n += by }
}

// newReceiver returns how a receiver with retries delivers, and what it logs.
func newReceiver(t *testing.T, n *tally) (*deliver.Receiver, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	set := receivertest.NewNopSettings(receivertest.NopType)
	set.Logger = zap.New(core)
	r, err := deliver.NewReceiver(set, deliver.ReceiverConfig{
		Transport: "file", Format: "test", Retry: configretry.NewDefaultBackOffConfig(), Retried: into(&n.retried),
	})
	require.NoError(t, err)
	return r, logs
}

func (n *tally) counts() *deliver.Counts {
	return &deliver.Counts{What: "Events", Emitted: into(&n.emitted), Dropped: into(&n.dropped)}
}

// answers returns a next component that gives these answers in turn, the last over and over.
func answers(t *testing.T, errs ...error) consumer.Logs {
	t.Helper()
	calls := 0
	next, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
		calls++
		return errs[min(calls, len(errs))-1]
	})
	require.NoError(t, err)
	return next
}

func three() plog.Logs { return records(3) }

func TestSender_Outcome_CountedAndLogged(t *testing.T) {
	short, always, never := errors.New("memory is short"), func(error) bool { return true }, func(error) bool { return false }
	for name, c := range map[string]struct {
		answers []error
		keeps   func(error) bool
		want    tally
		left    int
		logged  []zapcore.Level
	}{
		"taken":                          {[]error{nil}, nil, tally{emitted: 3}, 0, nil},
		"refused for now, then taken":    {[]error{short, short, nil}, nil, tally{emitted: 3, retried: 2}, 0, nil},
		"refused for good":               {[]error{consumererror.NewPermanent(short)}, nil, tally{dropped: 3}, 3, []zapcore.Level{zapcore.ErrorLevel}},
		"refused for good, and kept":     {[]error{consumererror.NewPermanent(short)}, always, tally{}, 3, []zapcore.Level{zapcore.WarnLevel}},
		"refused for good, and not kept": {[]error{consumererror.NewPermanent(short)}, never, tally{dropped: 3}, 3, []zapcore.Level{zapcore.ErrorLevel}},
		"a part refused for good":        {[]error{consumererror.NewLogs(short, records(1)), consumererror.NewPermanent(short)}, nil, tally{emitted: 2, dropped: 1, retried: 1}, 1, []zapcore.Level{zapcore.ErrorLevel}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n tally
				r, logs := newReceiver(t, &n)
				counts := n.counts()
				counts.Keeps = c.keeps
				o := r.Logs(answers(t, c.answers...), counts).Send(t.Context(), 3, three)
				assert.Equal(t, c.left, o.Left)
				assert.Equal(t, c.left > 0, o.Err != nil)
				assert.Equal(t, int64(c.left)-c.want.dropped > 0, o.Kept)
				assert.Equal(t, c.want, n)
				var levels []zapcore.Level
				for _, line := range logs.All() {
					levels = append(levels, line.Level)
				}
				assert.Equal(t, c.logged, levels)
			})
		})
	}
}

func TestSender_ReceiverStops_GivesOnce(t *testing.T) {
	var n tally
	r, _ := newReceiver(t, &n)
	s := r.Logs(answers(t, errors.New("memory is short"), nil), n.counts())
	last, stopped := r.Stop(t.Context())
	o := s.Send(last, 3, three)
	require.Error(t, o.Err)
	assert.Equal(t, 3, o.Left)
	assert.Equal(t, tally{dropped: 3}, n)
	require.NoError(t, stopped())
}

func TestSender_OnceRefused_NotGivenAgain(t *testing.T) {
	var n tally
	r, _ := newReceiver(t, &n)
	require.Error(t, r.Logs(answers(t, errors.New("memory is short"), nil), n.counts()).Once(t.Context(), records(3)).Err)
	assert.Equal(t, tally{dropped: 3}, n)
}

// What is given again later is dropped only where it is refused for good, or to the end.
func TestSender_Again_KeptUntilTheEnd(t *testing.T) {
	var n tally
	r, _ := newReceiver(t, &n)
	counts, short := n.counts(), errors.New("memory is short")
	counts.Again = true
	s := r.Logs(answers(t, short, consumererror.NewPermanent(short), short), counts)
	assert.True(t, s.Once(t.Context(), records(1)).Kept)
	assert.Equal(t, tally{}, n)
	assert.False(t, s.Once(t.Context(), records(2)).Kept)
	assert.Equal(t, tally{dropped: 2}, n)
	last, stopped := r.Stop(t.Context())
	assert.False(t, s.Once(last, records(4)).Kept)
	assert.Equal(t, tally{dropped: 6}, n)
	require.NoError(t, stopped())
}

// Series that are refused are neither given again nor dropped: the next ones have them.
func TestSender_MetricsRefused_KeptForTheNext(t *testing.T) {
	var n tally
	r, logs := newReceiver(t, &n)
	s := r.Metrics(consumertest.NewErr(errors.New("memory is short")))
	for range 2 {
		o := s.Once(t.Context(), points(2))
		require.Error(t, o.Err)
		assert.True(t, o.Kept)
	}
	assert.Equal(t, tally{}, n)
	require.Equal(t, 1, logs.Len(), "once a minute")
	assert.Equal(t, zapcore.WarnLevel, logs.All()[0].Level)
}

func TestSender_RefusedForLong_LoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n tally
		r, logs := newReceiver(t, &n)
		counts := n.counts()
		counts.LogEvery = time.Minute
		s := r.Logs(consumertest.NewErr(consumererror.NewPermanent(errors.New("no"))), counts)
		for range 121 {
			require.Error(t, s.Once(t.Context(), records(1)).Err)
			time.Sleep(time.Second)
		}
		assert.Equal(t, 3, logs.Len())
		assert.Equal(t, tally{dropped: 121}, n)
	})
}

func TestSender_WithoutNext_TakesEverythingUncounted(t *testing.T) {
	var n tally
	r, _ := newReceiver(t, &n)
	s := r.Logs(nil, n.counts())
	require.Nil(t, s)
	assert.Equal(t, deliver.Outcome{}, s.Send(t.Context(), 3, three))
	assert.Equal(t, deliver.Outcome{}, s.Once(t.Context(), records(1)))
	s.Drop(t.Context(), 3, errors.New("no"))
	assert.Nil(t, r.Traces(nil, n.counts()))
	assert.Nil(t, r.Metrics(nil))
	assert.Equal(t, tally{}, n)
}

// An analysis has used the data, and what came of them was refused: nothing is dropped, and it is logged once. What
// another branch refuses is dropped all the same.
func TestSender_AnalysedAndRefused_IsNoLoss(t *testing.T) {
	full := consumererror.NewPermanent(deliver.Analysed(errors.New("deliver step traces: the queue is full")))
	other := consumererror.NewPermanent(errors.New("the file is full"))
	for name, of := range map[string]struct {
		err  error
		want tally
	}{
		"analysis":         {full, tally{emitted: 6}},
		"two analyses":     {errors.Join(full, full), tally{emitted: 6}},
		"another branch":   {errors.Join(full, other), tally{dropped: 6}},
		"the other branch": {other, tally{dropped: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			var n tally
			r, logs := newReceiver(t, &n)
			next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
				deliver.Used(ctx)
				return of.err
			})
			require.NoError(t, err)
			counts := n.counts()
			counts.LogEvery = time.Hour
			s := r.Logs(next, counts)
			for range 2 {
				s.Send(t.Context(), 3, func() plog.Logs { return records(3) })
			}
			assert.Equal(t, of.want, n)
			assert.Equal(t, of.want.dropped == 0, logs.FilterMessageSnippet("Events were analysed").Len() == 1)
			assert.Equal(t, of.want.dropped > 0, logs.FilterMessageSnippet("Events refused").Len() == 1)
		})
	}
}
