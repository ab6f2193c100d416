// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func TestExponentialBucketsHoldTheirBounds(t *testing.T) {
	// Of scale 3, base 2^(1/8): a bucket holds its upper bound and not its lower.
	for _, tc := range []struct {
		v    float64
		want int32
	}{{1, -1}, {1.0001, 0}, {2, 7}, {1.0905, 0}, {1.0906, 1}, {0.5, -9}, {1e-300, -240}, {1e300, 239}} {
		assert.Equal(t, tc.want, exponentialBucket(tc.v), "%v", tc.v)
	}
}

func TestExponentialHistogram(t *testing.T) {
	begin := time.Unix(100, 0)
	m := Metric{Name: "d", Unit: "s", Kind: KindExponential, Limit: 1}
	for _, v := range []float64{0, 1, 2, 2} {
		m.Add(begin, v, Text("k", "a"))
	}
	m.Add(begin, 3, Text("k", "b"))
	md := pmetric.NewMetrics()
	WriteMetrics(md, begin.Add(time.Second), &m)
	h := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram()
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
