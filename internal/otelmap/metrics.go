// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// WriteMetrics appends the metrics that have series to md, under an empty
// resource: every dimension stands on the data points.
func WriteMetrics(md pmetric.Metrics, now time.Time, metrics ...*series.Metric) {
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(ScopeName)
	for _, m := range metrics {
		if !m.Empty() {
			writeMetric(m, sm.Metrics().AppendEmpty(), pcommon.NewTimestampFromTime(now))
		}
	}
}

func writeMetric(m *series.Metric, to pmetric.Metric, now pcommon.Timestamp) {
	to.SetName(m.Name)
	to.SetUnit(m.Unit)
	to.SetDescription(m.Description)
	next := appender(m, to)
	for p := range m.Points() {
		next(p, now)
	}
}

// appender prepares the metric's data and returns what adds a point to it.
func appender(m *series.Metric, to pmetric.Metric) func(p *series.Point, now pcommon.Timestamp) {
	if m.Kind == series.Histogram {
		h := to.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(p *series.Point, now pcommon.Timestamp) {
			writeHistogram(p, m.Bounds, h.DataPoints().AppendEmpty(), now)
		}
	}
	if m.Kind == series.Exponential {
		h := to.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(p *series.Point, now pcommon.Timestamp) {
			writeExponential(p, h.DataPoints().AppendEmpty(), now)
		}
	}
	var points pmetric.NumberDataPointSlice
	if m.Kind == series.Gauge {
		points = to.SetEmptyGauge().DataPoints()
	} else {
		s := to.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = s.DataPoints()
	}
	return func(p *series.Point, now pcommon.Timestamp) { writeNumber(p, m.Kind, points.AppendEmpty(), now) }
}

func writeNumber(p *series.Point, kind series.Kind, to pmetric.NumberDataPoint, now pcommon.Timestamp) {
	writePoint(p, to.Attributes())
	to.SetTimestamp(now)
	switch kind {
	case series.Counter:
		to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.Start()))
		to.SetIntValue(int64(p.Value()))
	case series.Seconds:
		to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.Start()))
		to.SetDoubleValue(p.Value())
	default:
		to.SetDoubleValue(p.Value())
	}
}

func writeHistogram(p *series.Point, bounds []float64, to pmetric.HistogramDataPoint, now pcommon.Timestamp) {
	writePoint(p, to.Attributes())
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.Start()))
	to.SetTimestamp(now)
	to.SetCount(p.Count())
	to.SetSum(p.Value())
	to.ExplicitBounds().FromRaw(bounds)
	to.BucketCounts().FromRaw(p.Buckets())
}

func writeExponential(p *series.Point, to pmetric.ExponentialHistogramDataPoint, now pcommon.Timestamp) {
	writePoint(p, to.Attributes())
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.Start()))
	to.SetTimestamp(now)
	zero, offset, counts := p.Exponential()
	to.SetScale(series.ExponentialScale)
	to.SetCount(p.Count())
	to.SetSum(p.Value())
	to.SetZeroCount(zero)
	if len(counts) > 0 {
		to.Positive().SetOffset(offset)
		to.Positive().BucketCounts().FromRaw(counts)
	}
}

// writePoint writes the attributes of a point.
func writePoint(p *series.Point, to pcommon.Map) {
	if p.Overflow() {
		to.PutBool(semconv.MetricOverflowAttribute, true)
		return
	}
	attrs := p.Attrs()
	for i := range attrs {
		if number, ok := attrs[i].Number(); ok {
			to.PutInt(attrs[i].Name(), number)
		} else {
			to.PutStr(attrs[i].Name(), attrs[i].Text())
		}
	}
}
