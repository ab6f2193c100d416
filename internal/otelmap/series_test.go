// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var t0 = time.Unix(1000, 0)

func writeOne(t *testing.T, m *Metric) pmetric.Metric {
	t.Helper()
	md := pmetric.NewMetrics()
	WriteMetrics(md, t0.Add(time.Minute), m)
	require.Equal(t, 1, md.MetricCount())
	assert.Zero(t, md.ResourceMetrics().At(0).Resource().Attributes().Len())
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

func TestCounterSeries(t *testing.T) {
	m := &Metric{Name: "n", Unit: "{u}", Description: "d", Kind: KindCounter, Limit: 10}
	m.Add(t0, 1, Number("rank", 1), Text("job", "a"))
	m.Add(t0.Add(time.Second), 2, Number("rank", 1), Text("job", "a"))
	m.Add(t0.Add(time.Second), 5, Number("rank", 2), Text("job", "a"))
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

func TestGaugeKeepsTheLastValue(t *testing.T) {
	m := &Metric{Kind: KindGauge, Limit: 10}
	m.Set(t0, 1.5)
	m.Set(t0, -2.5)
	got := writeOne(t, m).Gauge().DataPoints()
	require.Equal(t, 1, got.Len())
	assert.InDelta(t, -2.5, got.At(0).DoubleValue(), 0)
}

func TestHistogramBuckets(t *testing.T) {
	m := &Metric{Kind: KindHistogram, Limit: 10, Bounds: []float64{1, 2}}
	for _, v := range []float64{0.5, 1, 1.5, 2, 3} {
		m.Add(t0, v)
	}
	p := writeOne(t, m).Histogram().DataPoints().At(0)
	assert.Equal(t, []uint64{2, 2, 1}, p.BucketCounts().AsRaw(), "an upper bound is included")
	assert.Equal(t, []float64{1, 2}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, uint64(5), p.Count())
	assert.InDelta(t, 8, p.Sum(), 1e-12)
}

func TestSeriesOverflow(t *testing.T) {
	m := &Metric{Kind: KindSeconds, Limit: 2}
	for rank := range int64(5) {
		m.Add(t0, 1, Number("rank", rank))
		m.Add(t0, 1, Number("rank", rank))
	}
	points := writeOne(t, m).Sum().DataPoints()
	require.Equal(t, 3, points.Len())
	assert.InDelta(t, 2, points.At(0).DoubleValue(), 0)
	assert.Equal(t, map[string]any{"otel.metric.overflow": true}, points.At(2).Attributes().AsRaw())
	assert.InDelta(t, 6, points.At(2).DoubleValue(), 0)
	assert.Equal(t, 2, m.Len())
}

func TestSeriesExpire(t *testing.T) {
	m := &Metric{Kind: KindCounter, Limit: 1}
	m.Add(t0, 1, Text("job", "old"))
	m.Expire(t0)
	require.Equal(t, 1, m.Len())
	m.Expire(t0.Add(time.Second))
	assert.Zero(t, m.Len())
	m.Add(t0, 1, Text("job", "new"))
	assert.Equal(t, map[string]any{"job": "new"}, writeOne(t, m).Sum().DataPoints().At(0).Attributes().AsRaw())
}

func TestMetric_OldestSeriesUsedAgain_OthersExpire(t *testing.T) {
	m := &Metric{Kind: KindCounter, Limit: 3}
	for i, job := range []string{"a", "b", "c", "a"} {
		m.Add(t0.Add(time.Duration(i)*time.Second), 1, Text("job", job))
	}
	m.Expire(t0.Add(3 * time.Second))
	assert.Equal(t, 1, m.Len())
	assert.Equal(t, map[string]any{"job": "a"}, writeOne(t, m).Sum().DataPoints().At(0).Attributes().AsRaw())
}

func TestSeriesKeysDoNotRunTogether(t *testing.T) {
	m := &Metric{Kind: KindCounter, Limit: 10}
	m.Add(t0, 1, Text("a", "b"), Text("c", ""))
	m.Add(t0, 1, Text("a", ""), Text("bc", ""))
	m.Add(t0, 1, Text("a", "1"))
	m.Add(t0, 1, Number("a", 1))
	assert.Equal(t, 4, m.Len())
}

func TestNoSeriesNoMetric(t *testing.T) {
	md := pmetric.NewMetrics()
	WriteMetrics(md, t0, &Metric{Name: "n", Limit: 1})
	assert.Zero(t, md.MetricCount())
}

// Of gauges that find no room one series tells the greatest, or the sum, of those of one time, and
// ends with them.
func TestOverflowOfGauges(t *testing.T) {
	for _, c := range []struct {
		sums bool
		want float64
	}{{false, 7}, {true, 12}} {
		m := &Metric{Name: "g", Kind: KindGauge, Limit: 1, Sums: c.sums}
		now := time.Unix(1_760_000_000, 0)
		value := func() float64 {
			md := pmetric.NewMetrics()
			WriteMetrics(md, now, m)
			points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
			require.Equal(t, 2, points.Len())
			return points.At(1).DoubleValue()
		}
		for range 2 { // what was before is not added to
			for i, v := range []float64{100, 2, 7, 3} {
				m.Set(now, v, Number("i", int64(i)))
			}
			assert.InDelta(t, c.want, value(), 0)
			now = now.Add(time.Second)
		}
		m.Set(now, 1, Number("i", 1))
		assert.InDelta(t, 1, value(), 0)
		m.Set(now.Add(time.Second), 100, Number("i", 0))
		m.Expire(now.Add(time.Second))
		assert.Equal(t, 1, m.Len())
		assert.Nil(t, m.overflow)
	}
}
