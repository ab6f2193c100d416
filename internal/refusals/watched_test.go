// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// watched records how a next component answers.
type watched struct {
	*next

	mu      sync.Mutex
	calls   int
	refused int           // calls
	items   int           // that were refused
	last    time.Time     // when a call was refused, if the last one was
	latest  time.Duration // after which a refused call was followed by another
	soonest time.Duration
	err     error // of the last call
}

// pass makes a call with so many items. A call that does not return counts as refused for no item.
func (w *watched) pass(items int, call func() error) (err error) {
	w.begin()
	refused := true // a panic refuses
	defer func() { w.end(items, refused, err) }()
	err = call()
	refused = err != nil
	return err
}

func (w *watched) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if !w.last.IsZero() {
		after := time.Since(w.last)
		w.latest, w.soonest = max(w.latest, after), min(cmp.Or(w.soonest, after), after)
	}
}

func (w *watched) end(items int, refused bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.err = time.Time{}, err
	if refused {
		w.refused++
		w.items += items
		w.last = time.Now()
	}
}

// answered is how often a next component was called, and what it refused, and how long after a refused call the next
// one comes.
type answered struct {
	calls, refused, items int
	latest, soonest       time.Duration
	err                   error
}

func (w *watched) answers() answered {
	w.mu.Lock()
	defer w.mu.Unlock()
	return answered{w.calls, w.refused, w.items, w.latest, w.soonest, w.err}
}

func (w *watched) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return w.pass(td.SpanCount(), func() error { return w.next.ConsumeTraces(ctx, td) })
}

func (w *watched) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return w.pass(ld.LogRecordCount(), func() error { return w.next.ConsumeLogs(ctx, ld) })
}

func (w *watched) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return w.pass(md.DataPointCount(), func() error { return w.next.ConsumeMetrics(ctx, md) })
}

// item is a finding, another event, a span or a point of a series. The text differs between revisions of one key.
type item struct{ key, text string }

// itemsOf returns what a next component took, in order. Of metrics, which are cumulative, it is the last.
func itemsOf(n *delivertest.Next) (all []item) {
	for _, ld := range n.Logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					all = append(all, eventOf(lr))
				}
			}
		}
	}
	for _, td := range n.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					all = append(all, item{s.Name() + " " + s.SpanID().String(), fmt.Sprint(s.EndTimestamp())})
				}
			}
		}
	}
	if flushes := n.Metrics.AllMetrics(); len(flushes) > 0 {
		for _, rm := range flushes[len(flushes)-1].ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					all = append(all, pointsOf(m)...)
				}
			}
		}
	}
	return all
}

func eventOf(lr plog.LogRecord) item {
	if f, ok := otelmap.LogToFinding(lr, nil); ok {
		return item{"finding " + f.ID, fmt.Sprint(f.Status, " ", f.Revision)}
	}
	clock, _ := lr.Attributes().Get(semconv.ClockID)
	return item{lr.EventName() + " " + clock.AsString(), fmt.Sprint(lr.Timestamp().AsTime().UnixMilli())}
}

func pointsOf(m pmetric.Metric) (all []item) {
	add := func(of pcommon.Map, value any) {
		all = append(all, item{fmt.Sprint(m.Name(), " ", of.AsRaw()), fmt.Sprint(value)})
	}
	number := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			add(p.Attributes(), p.DoubleValue()+float64(p.IntValue()))
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		number(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		number(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			add(p.Attributes(), p.Count())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			add(p.Attributes(), p.Count())
		}
	default:
		panic(fmt.Sprint("got a metric of type ", m.Type()))
	}
	return all
}

// newest returns the last text of each key.
func newest(all []item) map[string]string {
	of := map[string]string{}
	for _, i := range all {
		of[i.key] = i.text
	}
	return of
}

// silent returns items of which neither they nor a later one of the same key have arrived.
func silent(put, arrived []item) (lost []item) {
	have := map[item]bool{}
	for _, i := range arrived {
		have[i] = true
	}
	later := map[string]bool{} // keys of which a later item has arrived
	for n := len(put) - 1; n >= 0; n-- {
		i := put[n]
		later[i.key] = later[i.key] || have[i]
		if !later[i.key] {
			lost = append(lost, i)
		}
	}
	return lost
}
