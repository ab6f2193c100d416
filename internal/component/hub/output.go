// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// errMetrics is the error of an output whose last metrics were refused.
var errMetrics = errors.New("deliver the last metrics: the next component refused them; the log has its error")

// output is one signal that a connector emits, and its next component. Each has a gate of its own, so that
// one that blocks takes no time from the end of the others.
type output struct {
	open   int // instances; guarded by the hub
	log    *zap.Logger
	gate   *deliver.Gate
	counts *Counts
	lost   *atomic.Int64 // entries that were dropped
	again  *atomic.Int64 // entries that were refused, each time

	box   *outbox // nil for metrics
	queue *deliver.Queue

	traces  consumer.Traces
	metrics consumer.Metrics
	refused atomic.Bool // the last metrics were
}

// output returns an output that logs as the instance with whose pipelines it was made.
func (h *Hub) output(log *zap.Logger, lost, again *atomic.Int64) *output {
	return &output{log: log, gate: deliver.NewInnerGate(log), queue: deliver.NewQueue(log), counts: h.engine.Counts, lost: lost, again: again}
}

func (h *Hub) toLogs(log *zap.Logger, next consumer.Logs) *output {
	if h.logs == nil {
		o := h.output(log, &h.engine.Counts.EventsLost, &h.engine.Counts.EventsRefused)
		to := o.gate.Logs(next)
		o.box = newOutbox(o, func(ctx context.Context, r deliver.Retry, build func() []entry) error {
			_, err := deliver.Logs(ctx, r, to, 0, func() plog.Logs { return logsOf(build()) })
			return err
		})
		h.logs = o
	}
	return h.attach(h.logs)
}

func (h *Hub) toTraces(log *zap.Logger, next consumer.Traces) *output {
	if h.traces == nil {
		o := h.output(log, &h.engine.Counts.SpansLost, new(atomic.Int64))
		o.traces = o.gate.Traces(next)
		o.box = newOutbox(o, func(ctx context.Context, r deliver.Retry, build func() []entry) error {
			_, err := deliver.Traces(ctx, r, o.traces, 0, func() ptrace.Traces { return tracesOf(build()) })
			return err
		})
		h.traces = o
	}
	return h.attach(h.traces)
}

func (h *Hub) toMetrics(log *zap.Logger, next consumer.Metrics) *output {
	if h.metrics == nil {
		o := h.output(log, nil, nil)
		o.metrics = o.gate.Metrics(next)
		h.metrics = o
	}
	return h.attach(h.metrics)
}

func (h *Hub) attach(o *output) *output {
	h.leaving.Lock()
	defer h.leaving.Unlock()
	o.open++
	h.open++
	return o
}

// wait returns when something was taken or refused, the next component is stuck, or ctx is done.
type wait func(ctx context.Context)

// deliveries are what came of one use of the engine.
type deliveries struct {
	of         *Output
	waits      []waitOf
	stepTraces []delivery
}

type waitOf struct {
	to   *output
	wait wait
}

type delivery struct {
	queue *deliver.Queue
	of    *deliver.Delivery
}

func (d *deliveries) add(to *output, w wait) {
	if w != nil {
		d.waits = append(d.waits, waitOf{to, w})
	}
}

// wait waits for what one output got; nil: all of them. It returns the errors of step traces that were refused, or
// could not be delivered in time.
func (d *deliveries) wait(ctx context.Context, of *output) error {
	var errs []error
	known := map[string]bool{} // a stop refuses hundreds for one reason
	for _, s := range d.stepTraces {
		if of != nil && s.queue != of.queue {
			continue
		}
		if err := s.queue.Wait(ctx, s.of); err != nil && !known[err.Error()] {
			known[err.Error()] = true
			errs = append(errs, err)
		}
	}
	for _, w := range d.waits {
		if of == nil || w.to == of {
			w.wait(ctx)
		}
	}
	return errors.Join(errs...)
}

// settled reports that the step traces were taken or refused, once.
func (d *deliveries) settled() {
	if d.of != nil && d.of.Settled != nil {
		d.of.Settled()
		d.of.Settled = nil
	}
}

// putEvents has entries sent; a nil output drops them, since no pipeline takes the signal.
func (o *output) putEvents(entries []entry) wait {
	if o == nil || len(entries) == 0 {
		return nil
	}
	seq := o.box.put(entries)
	return func(ctx context.Context) { o.box.wait(ctx, seq) }
}

func (o *output) putStepTraces(all []ptrace.Traces) (put []delivery) {
	if o == nil {
		return nil
	}
	for _, td := range all {
		spans := int64(td.SpanCount())
		if spans == 0 {
			continue
		}
		d := o.queue.Put(0,
			func(ctx context.Context) error { return o.traces.ConsumeTraces(ctx, td) },
			func() { o.counts.SpansLost.Add(spans) },
		)
		put = append(put, delivery{o.queue, d})
	}
	return put
}

// idle reports whether the metrics before are delivered. Series are cumulative: an output that is not done
// with the last ones gets the next. A nil output, which no pipeline takes, never is.
func (o *output) idle() bool { return o != nil && o.queue.Idle() }

// await waits until the metrics before are delivered or left behind.
func (o *output) await(ctx context.Context) { o.queue.Drain(ctx) }

func (o *output) putMetrics(md pmetric.Metrics) wait {
	if md.DataPointCount() == 0 {
		return nil
	}
	d := o.queue.Put(0, func(ctx context.Context) error {
		err := o.metrics.ConsumeMetrics(ctx, md)
		if before := o.refused.Swap(err != nil); err != nil && !before {
			o.log.Warn("Metrics were refused; the next flush sends their values", zap.Error(err))
		}
		return err
	}, func() {})
	return func(ctx context.Context) { _ = o.queue.Wait(ctx, d) } // the next flush has the values
}

// stop sends what is left a last time, and waits for what is under way.
func (o *output) stop(last context.Context) error {
	o.queue.Stop(last)
	var err error
	if o.box != nil {
		err = o.box.stop(last)
	}
	o.queue.Close()
	o.queue.Drain(context.Background()) // the gate ends each call
	if o.refused.Load() {
		err = errMetrics
	}
	return err
}
