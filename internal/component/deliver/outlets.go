// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
)

// Outlets are the next components of a connector, each behind a gate and with a queue of its own,
// so that one that blocks holds up neither the others nor the producers. They are added before the
// connector starts, and safe for concurrent use afterwards.
//
// A connector puts what it concludes while it holds its lock, which keeps the order, and waits
// without it.
type Outlets struct {
	log   *zap.Logger
	limit int // bytes that wait for one outlet
	gate  *Gate

	logs    []outlet[consumer.Logs]
	metrics []outlet[consumer.Metrics]
	traces  []outlet[consumer.Traces]
}

type outlet[C any] struct {
	next  C
	queue *Queue
}

// NewOutlets returns an empty set of outlets. The limit is how many bytes, as
// OTLP has them, may wait for one outlet.
func NewOutlets(log *zap.Logger, limit int) *Outlets {
	return &Outlets{log: log, limit: limit, gate: NewGate(log)}
}

// AddLogs adds a next component.
func (o *Outlets) AddLogs(next consumer.Logs) {
	o.logs = append(o.logs, outlet[consumer.Logs]{o.gate.Logs(next), NewLimitedQueue(o.log, o.limit)})
}

// AddMetrics adds a next component.
func (o *Outlets) AddMetrics(next consumer.Metrics) {
	o.metrics = append(o.metrics, outlet[consumer.Metrics]{o.gate.Metrics(next), NewLimitedQueue(o.log, o.limit)})
}

// AddTraces adds a next component.
func (o *Outlets) AddTraces(next consumer.Traces) {
	o.traces = append(o.traces, outlet[consumer.Traces]{o.gate.Traces(next), NewLimitedQueue(o.log, o.limit)})
}

// HasMetrics reports whether there is an outlet of metrics.
func (o *Outlets) HasMetrics() bool { return len(o.metrics) > 0 }

// HasTraces reports whether there is an outlet of traces.
func (o *Outlets) HasTraces() bool { return len(o.traces) > 0 }

// Sent is what was put at once.
type Sent []sent

type sent struct {
	queue    *Queue
	delivery *Delivery
}

// PutLogs gives ld to every outlet of logs. Lost counts the log records that an outlet does not take.
func (o *Outlets) PutLogs(ld plog.Logs, lost func(items int)) (all Sent) {
	items, size := ld.LogRecordCount(), (&plog.ProtoMarshaler{}).LogsSize(ld)
	for i, to := range o.logs {
		own := ld
		if i < len(o.logs)-1 { // a next component owns what it is given
			own = plog.NewLogs()
			ld.CopyTo(own)
		}
		d := to.queue.Put(size, func(ctx context.Context) error { return to.next.ConsumeLogs(ctx, own) }, func() { lost(items) })
		all = append(all, sent{to.queue, d})
	}
	return all
}

// PutTraces is PutLogs for spans.
func (o *Outlets) PutTraces(td ptrace.Traces, lost func(items int)) (all Sent) {
	items, size := td.SpanCount(), (&ptrace.ProtoMarshaler{}).TracesSize(td)
	for i, to := range o.traces {
		own := td
		if i < len(o.traces)-1 {
			own = ptrace.NewTraces()
			td.CopyTo(own)
		}
		d := to.queue.Put(size, func(ctx context.Context) error { return to.next.ConsumeTraces(ctx, own) }, func() { lost(items) })
		all = append(all, sent{to.queue, d})
	}
	return all
}

// PutMetrics gives every outlet of metrics that waits for nothing what build returns, unless that
// is empty. Series are cumulative or repeated: an outlet that is not done with the last ones gets
// the next. After Stop there is no next, and every outlet gets them.
func (o *Outlets) PutMetrics(build func() pmetric.Metrics) (all Sent) {
	for _, to := range o.metrics {
		if !to.queue.Idle() && !o.gate.stopping.Load() {
			continue
		}
		md := build()
		if md.DataPointCount() == 0 {
			continue
		}
		// One waits at a time, and the last behind it: of whatever size.
		d := to.queue.Put(0, func(ctx context.Context) error { return to.next.ConsumeMetrics(ctx, md) }, func() {})
		all = append(all, sent{to.queue, d})
	}
	return all
}

// Wait waits for each as [Queue.Wait] does, and returns their errors.
func (all Sent) Wait(ctx context.Context) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.queue.Wait(ctx, s.delivery))
	}
	return errors.Join(errs...)
}

// Stop begins the end of the connector, as [Gate.Stop] does.
func (o *Outlets) Stop(ctx context.Context) (last context.Context, stopped func() error) {
	last, closed := o.gate.Stop(ctx)
	queues := o.queues()
	for _, q := range queues {
		q.Stop(last)
	}
	return last, func() error {
		for _, q := range queues {
			q.Drain(context.Background())
		}
		return closed()
	}
}

func (o *Outlets) queues() (all []*Queue) {
	for _, to := range o.logs {
		all = append(all, to.queue)
	}
	for _, to := range o.metrics {
		all = append(all, to.queue)
	}
	for _, to := range o.traces {
		all = append(all, to.queue)
	}
	return all
}
