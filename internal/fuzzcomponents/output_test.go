// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// One message of a connector may have a fixed number of bytes, and some times the bytes that came
// so far.
const (
	longestMessage  = 1 << 20
	longestPerInput = 64
)

// output takes what connectors send, and checks each message.
type output struct {
	t *testing.T

	mu          sync.Mutex
	in          int // bytes that came so far
	refusing    bool
	everRefused bool
}

func (*output) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (o *output) given(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.in += bytes
}

// refuse has the consumers of connectors refuse everything, or take it again.
func (o *output) refuse(is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refusing = is
	o.everRefused = o.everRefused || is
}

func (o *output) refused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.everRefused
}

var errRefused = errors.New("refused by the test")

func (o *output) take(size int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.LessOrEqual(o.t, size, longestMessage+longestPerInput*o.in, "bytes of one message")
	if o.refusing {
		return errRefused
	}
	return nil
}

func (o *output) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				assert.False(o.t, s.SpanID().IsEmpty(), "span %q has an id", s.Name())
			}
		}
	}
	return o.take((&ptrace.ProtoMarshaler{}).TracesSize(td))
}

// ConsumeLogs takes what the findings connector passes on, which may be another's finding.
func (o *output) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	return o.take((&plog.ProtoMarshaler{}).LogsSize(ld))
}

// findings checks those that an analysis of ours has made.
func (o *output) findings(ld plog.Logs) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok { // else a clock's model
					o.finding(&f, lr.Body().Str())
				}
			}
		}
	}
}

func (o *output) finding(f *model.Finding, sentence string) {
	assert.Contains(o.t, []string{model.StatusOpen, model.StatusUpdated, model.StatusClosed}, f.Status, "status of %+v", f)
	assert.NotEmpty(o.t, f.ID, "id of %+v", f)
	assert.NotEmpty(o.t, sentence)
	for name, v := range map[string]model.Optional[float64]{"cost": f.CostSeconds, "share": f.CostShare, "confidence": model.Some(f.Confidence)} {
		assert.False(o.t, math.IsNaN(v.V), "%s of %+v is a number", name, f)
	}
}

func (o *output) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				o.metric(m)
			}
		}
	}
	return o.take((&pmetric.ProtoMarshaler{}).MetricsSize(md))
}

// metric checks what a scrape of all series would fail on: a series that is there twice, or
// text that is not UTF-8; and counters that count down.
func (o *output) metric(m pmetric.Metric) {
	series := map[string]bool{}
	point := func(attrs pcommon.Map, value float64, counts bool) {
		key := o.labels(m.Name(), attrs)
		assert.False(o.t, series[key], "%s has series %q once", m.Name(), key)
		series[key] = true
		assert.False(o.t, math.IsNaN(value) || math.IsInf(value, 0), "%s%s: got %v; want a number", m.Name(), key, value)
		if counts {
			assert.GreaterOrEqual(o.t, value, 0.0, "%s%s counts", m.Name(), key)
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			point(p.Attributes(), valueOf(p), false)
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			point(p.Attributes(), valueOf(p), m.Sum().IsMonotonic())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			point(p.Attributes(), p.Sum(), true)
			var n uint64
			for _, bucket := range p.BucketCounts().AsRaw() {
				n += bucket
			}
			assert.Equal(o.t, p.Count(), n, "buckets of %s", m.Name())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			point(p.Attributes(), p.Sum(), false)
		}
	default:
		assert.Fail(o.t, "unknown type", "%s is a %s", m.Name(), m.Type())
	}
}

func valueOf(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

func (o *output) labels(metric string, m pcommon.Map) string {
	var list []string
	for name, v := range m.All() {
		assert.True(o.t, utf8.ValidString(v.AsString()), "%s: label %s is UTF-8: %q", metric, name, v.AsString())
		list = append(list, fmt.Sprintf("%s=%q", name, v.AsString()))
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ",") + "}"
}

// fanOut gives findings to every instance of the findings connector, as a collector does.
type fanOut struct {
	next []consumer.Logs
	out  *output
}

func (*fanOut) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (f *fanOut) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	f.out.findings(ld)
	errs := []error{f.out.take((&plog.ProtoMarshaler{}).LogsSize(ld))}
	for _, next := range f.next {
		errs = append(errs, next.ConsumeLogs(ctx, ld))
	}
	return errors.Join(errs...)
}
