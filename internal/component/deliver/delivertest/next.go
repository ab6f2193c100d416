// SPDX-License-Identifier: Apache-2.0

package delivertest

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Consumer takes every signal.
type Consumer interface {
	consumer.Traces
	consumer.Logs
	consumer.Metrics
}

// Answer is what a next component does with a call, from 1 on, before it takes the data.
type Answer func(ctx context.Context, call int64) error

// Next is a next component of every signal that answers as a test says, and keeps what it takes.
type Next struct {
	Traces  consumertest.TracesSink
	Logs    consumertest.LogsSink
	Metrics consumertest.MetricsSink

	answer Answer
	calls  atomic.Int64
	items  atomic.Int64
}

// NewNext returns a next component with an answer.
func NewNext(answer Answer) *Next { return &Next{answer: answer} }

// Takes takes everything.
func Takes(context.Context, int64) error { return nil }

// Refuses refuses as many calls with an error, and takes what comes then.
func Refuses(calls int64, err error) Answer {
	return func(_ context.Context, call int64) error {
		if call <= calls {
			return err
		}
		return nil
	}
}

// Panics panics in every call.
func Panics(context.Context, int64) error { panic("the next component has a bug") }

// TakesAfter takes everything, each after a time, unless its context is done before.
func TakesAfter(d time.Duration) Answer {
	return func(ctx context.Context, _ int64) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Calls returns how often it was called.
func (n *Next) Calls() int64 { return n.calls.Load() }

// Items returns how many items it was given, those included that it did not take.
func (n *Next) Items() int64 { return n.items.Load() }

func (n *Next) called(ctx context.Context, items int) error {
	n.items.Add(int64(items))
	return n.answer(ctx, n.calls.Add(1))
}

// Capabilities implements Consumer.
func (*Next) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeTraces implements Consumer.
func (n *Next) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if err := n.called(ctx, td.SpanCount()); err != nil {
		return err
	}
	return n.Traces.ConsumeTraces(ctx, td)
}

// ConsumeLogs implements Consumer.
func (n *Next) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if err := n.called(ctx, ld.LogRecordCount()); err != nil {
		return err
	}
	return n.Logs.ConsumeLogs(ctx, ld)
}

// ConsumeMetrics implements Consumer.
func (n *Next) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if err := n.called(ctx, md.DataPointCount()); err != nil {
		return err
	}
	return n.Metrics.ConsumeMetrics(ctx, md)
}
