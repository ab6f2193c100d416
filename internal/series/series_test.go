// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var t0 = time.Unix(1000, 0)

func pointsOf(m *Metric) []*Point { return slices.Collect(m.Points()) }

// attributes returns the attributes of a point as one would write them down.
func attributes(p *Point) map[string]any {
	out := map[string]any{}
	for _, a := range p.Attrs() {
		out[a.Name()] = a.Text()
		if n, ok := a.Number(); ok {
			out[a.Name()] = n
		}
	}
	return out
}

func TestMetric_Counter_SumsBySeries(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 10}
	m.Add(t0, 1, Number("rank", 1), Text("job", "a"))
	m.Add(t0.Add(time.Second), 2, Number("rank", 1), Text("job", "a"))
	m.Add(t0.Add(time.Second), 5, Number("rank", 2), Text("job", "a"))
	points := pointsOf(m)
	require.Len(t, points, 2)
	p := points[0]
	assert.Equal(t, map[string]any{"rank": int64(1), "job": "a"}, attributes(p))
	assert.InDelta(t, 3, p.Value(), 0)
	assert.Equal(t, t0, p.Start())
	assert.False(t, p.Overflow())
}

func TestMetric_Gauge_KeepsTheLastValue(t *testing.T) {
	m := &Metric{Kind: Gauge, Limit: 10}
	m.Set(t0, 1.5)
	m.Set(t0, -2.5)
	points := pointsOf(m)
	require.Len(t, points, 1)
	assert.InDelta(t, -2.5, points[0].Value(), 0)
}

func TestMetric_Histogram_CountsByBucket(t *testing.T) {
	m := &Metric{Kind: Histogram, Limit: 10, Bounds: []float64{1, 2}}
	m.AddAll(t0, []float64{0.5, 1, 1.5, 2, 3})
	p := pointsOf(m)[0]
	assert.Equal(t, []uint64{2, 2, 1}, p.Buckets(), "an upper bound is included")
	assert.Equal(t, uint64(5), p.Count())
	assert.InDelta(t, 8, p.Value(), 1e-12)
}

func TestMetric_AddAllOfNothing_AddsNoSeries(t *testing.T) {
	m := &Metric{Kind: Histogram, Limit: 10, Bounds: []float64{1, 2}}
	m.AddAll(t0, nil, Text("job", "a"))
	assert.True(t, m.Empty())
}

func TestMetric_Full_OverflowSeriesComesLast(t *testing.T) {
	m := &Metric{Kind: Seconds, Limit: 2}
	for rank := range int64(5) {
		m.Add(t0, 1, Number("rank", rank))
		m.Add(t0, 1, Number("rank", rank))
	}
	points := pointsOf(m)
	require.Len(t, points, 3)
	assert.InDelta(t, 2, points[0].Value(), 0)
	assert.True(t, points[2].Overflow())
	assert.Empty(t, points[2].Attrs())
	assert.InDelta(t, 6, points[2].Value(), 0)
	assert.Equal(t, 2, m.Len())
}

func TestMetric_OnlyOverflow_IsNotEmpty(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 1}
	assert.True(t, m.Empty())
	m.Add(t0, 1, Text("job", "a"))
	m.Add(t0, 1, Text("job", "b"))
	m.Expire(t0.Add(time.Second))
	assert.Zero(t, m.Len())
	assert.False(t, m.Empty(), "what counts goes on from where it was")
}

func TestMetric_Points_StopsWhereTheCallerDoes(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 1}
	m.Add(t0, 1, Text("job", "a"))
	m.Add(t0, 1, Text("job", "b"))
	seen := 0
	for range m.Points() {
		seen++
		break
	}
	assert.Equal(t, 1, seen)
}

func TestMetric_Expire_DropsWhatIsOlder(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 1}
	m.Add(t0, 1, Text("job", "old"))
	m.Expire(t0)
	require.Equal(t, 1, m.Len())
	m.Expire(t0.Add(time.Second))
	assert.Zero(t, m.Len())
	m.Add(t0, 1, Text("job", "new"))
	assert.Equal(t, map[string]any{"job": "new"}, attributes(pointsOf(m)[0]))
}

func TestMetric_OldestSeriesUsedAgain_OthersExpire(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 3}
	for i, job := range []string{"a", "b", "c", "a"} {
		m.Add(t0.Add(time.Duration(i)*time.Second), 1, Text("job", job))
	}
	m.Expire(t0.Add(3 * time.Second))
	assert.Equal(t, 1, m.Len())
	assert.Equal(t, map[string]any{"job": "a"}, attributes(pointsOf(m)[0]))
}

func TestMetric_SeriesKeys_DoNotRunTogether(t *testing.T) {
	m := &Metric{Kind: Counter, Limit: 10}
	m.Add(t0, 1, Text("a", "b"), Text("c", ""))
	m.Add(t0, 1, Text("a", ""), Text("bc", ""))
	m.Add(t0, 1, Text("a", "1"))
	m.Add(t0, 1, Number("a", 1))
	assert.Equal(t, 4, m.Len())
}

// The overflow series of a gauge has the greatest of the values set at one time, or their sum, and
// expires like the others.
func TestMetric_GaugeOverflow_IsGreatestOrSum(t *testing.T) {
	for _, c := range []struct {
		sums bool
		want float64
	}{{false, 7}, {true, 12}} {
		m := &Metric{Kind: Gauge, Limit: 1, Sums: c.sums}
		now := time.Unix(1_760_000_000, 0)
		value := func() float64 {
			points := pointsOf(m)
			require.Len(t, points, 2)
			return points[1].Value()
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
