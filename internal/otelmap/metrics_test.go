// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

var t0 = time.Unix(1000, 0)

func writeOne(t *testing.T, m *series.Metric) pmetric.Metric {
	t.Helper()
	md := pmetric.NewMetrics()
	WriteMetrics(md, t0.Add(time.Minute), m)
	require.Equal(t, 1, md.MetricCount())
	assert.Zero(t, md.ResourceMetrics().At(0).Resource().Attributes().Len())
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

func TestWriteMetrics_Counter_IsACumulativeSum(t *testing.T) {
	m := &series.Metric{Name: "n", Unit: "{u}", Description: "d", Kind: series.Counter, Limit: 10}
	m.Add(t0, 1, series.Number("rank", 1), series.Text("job", "a"))
	m.Add(t0.Add(time.Second), 2, series.Number("rank", 1), series.Text("job", "a"))
	m.Add(t0.Add(time.Second), 5, series.Number("rank", 2), series.Text("job", "a"))
	got := writeOne(t, m)
	assert.Equal(t, []string{"n", "{u}", "d"}, []string{got.Name(), got.Unit(), got.Description()})
	sum := got.Sum()
	assert.True(t, sum.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
	require.Equal(t, 2, sum.DataPoints().Len())
	p := sum.DataPoints().At(0)
	assert.Equal(t, map[string]any{"rank": int64(1), "job": "a"}, p.Attributes().AsRaw())
	assert.Equal(t, int64(3), p.IntValue())
	assert.Equal(t, pcommon.NewTimestampFromTime(t0), p.StartTimestamp())
	assert.Equal(t, pcommon.NewTimestampFromTime(t0.Add(time.Minute)), p.Timestamp())
}

func TestWriteMetrics_Seconds_KeepTheirFraction(t *testing.T) {
	m := &series.Metric{Kind: series.Seconds, Limit: 1}
	m.Add(t0, 1.25)
	p := writeOne(t, m).Sum().DataPoints().At(0)
	assert.InDelta(t, 1.25, p.DoubleValue(), 0)
	assert.Equal(t, pcommon.NewTimestampFromTime(t0), p.StartTimestamp())
}

func TestWriteMetrics_Gauge_HasNoStart(t *testing.T) {
	m := &series.Metric{Kind: series.Gauge, Limit: 10}
	m.Set(t0, -2.5)
	got := writeOne(t, m).Gauge().DataPoints()
	require.Equal(t, 1, got.Len())
	assert.InDelta(t, -2.5, got.At(0).DoubleValue(), 0)
	assert.Zero(t, got.At(0).StartTimestamp())
}

func TestWriteMetrics_Histogram_HasBoundsAndCounts(t *testing.T) {
	m := &series.Metric{Kind: series.Histogram, Limit: 10, Bounds: []float64{1, 2}}
	m.AddAll(t0, []float64{0.5, 1, 1.5, 2, 3})
	h := writeOne(t, m).Histogram()
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, h.AggregationTemporality())
	p := h.DataPoints().At(0)
	assert.Equal(t, []uint64{2, 2, 1}, p.BucketCounts().AsRaw(), "an upper bound is included")
	assert.Equal(t, []float64{1, 2}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, uint64(5), p.Count())
	assert.InDelta(t, 8, p.Sum(), 1e-12)
}

func TestWriteMetrics_Exponential_HasOffsetAndOverflow(t *testing.T) {
	m := series.Metric{Name: "d", Unit: "s", Kind: series.Exponential, Limit: 1}
	m.AddAll(t0, []float64{0, 1, 2, 2}, series.Text("k", "a"))
	m.Add(t0, 3, series.Text("k", "b"))
	h := writeOne(t, &m).ExponentialHistogram()
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, h.AggregationTemporality())
	p := h.DataPoints().At(0)
	assert.Equal(t, map[string]any{"k": "a"}, p.Attributes().AsRaw())
	assert.Equal(t, int32(3), p.Scale())
	assert.Equal(t, []uint64{4, 1}, []uint64{p.Count(), p.ZeroCount()})
	assert.InDelta(t, 5, p.Sum(), 0)
	assert.Equal(t, int32(-1), p.Positive().Offset())
	assert.Equal(t, []uint64{1, 0, 0, 0, 0, 0, 0, 0, 2}, p.Positive().BucketCounts().AsRaw())
	over := h.DataPoints().At(1)
	assert.Equal(t, map[string]any{semconv.MetricOverflowAttribute: true}, over.Attributes().AsRaw())
	assert.Equal(t, uint64(1), over.Count())
}

func TestWriteMetrics_NoSeries_NoMetric(t *testing.T) {
	md := pmetric.NewMetrics()
	WriteMetrics(md, t0, &series.Metric{Name: "n", Limit: 1})
	assert.Zero(t, md.MetricCount())
}
