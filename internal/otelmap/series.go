// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// SeriesKind is the kind of a metric.
type SeriesKind int

// The kinds. Sums and histograms are cumulative.
const (
	KindCounter SeriesKind = iota // integers that only grow
	KindSeconds                   // seconds that only grow
	KindGauge
	KindHistogram
	KindExponential // a histogram of seconds or the like, without bounds of its own
)

// Attr is one data-point attribute.
type Attr struct {
	name, text string
	number     int64
	isNumber   bool
}

// Text is a string attribute: valid UTF-8 of at most cut.MaxLabel bytes, cut where v is not.
func Text(name, v string) Attr { return Attr{name: name, text: cut.Text(v, cut.MaxLabel)} }

// Number is an integer attribute.
func Number(name string, v int64) Attr { return Attr{name: name, number: v, isNumber: true} }

// Metric is one metric with a bounded set of series, and bounded text in their attributes. What
// comes after the limit goes into one series marked otel.metric.overflow; of a gauge that is the greatest
// of what was set at the time of the latest, or its sum. It is not safe for concurrent
// use.
type Metric struct {
	Name, Unit, Description string
	Kind                    SeriesKind
	Limit                   int       // most series, the overflow series not counted; at least 1
	Bounds                  []float64 // upper bounds of the buckets of a histogram, ascending
	Sums                    bool      // of a gauge: values of several series add up to something

	points   *bounded.Map[string, *point] // nil before the first
	overflow *point
	asks     point // stands in for a new series until there is room for it
}

// seriesText is how many bytes of text the attributes of a series have on average, at most: a job's
// id and a class are half of it. What a scrape transfers is bounded by this times the limit of series.
const seriesText = 128

// textOf returns the bytes of a series' attributes.
func textOf(attrs []Attr) (n int) {
	for _, a := range attrs {
		n += len(a.text)
	}
	return n
}

type point struct {
	attrs          []Attr
	text           int // bytes of these
	start, updated time.Time
	value          float64 // of a histogram the sum
	count          uint64
	buckets        []uint64
	exponential    exponential
}

// Add adds v to a counter, or records it in a histogram.
func (m *Metric) Add(now time.Time, v float64, attrs ...Attr) {
	m.add(m.point(now, attrs), v)
}

func (m *Metric) add(p *point, v float64) {
	p.value += v
	switch m.Kind {
	case KindHistogram:
		if p.buckets == nil {
			p.buckets = make([]uint64, len(m.Bounds)+1)
		}
		i, _ := slices.BinarySearch(m.Bounds, v)
		p.buckets[i]++
		p.count++
	case KindExponential:
		p.exponential.add(v)
		p.count++
	}
}

// AddAll adds each value to a counter, or records each in a histogram.
func (m *Metric) AddAll(now time.Time, values []float64, attrs ...Attr) {
	if len(values) == 0 {
		return
	}
	p := m.point(now, attrs)
	for _, v := range values {
		m.add(p, v)
	}
}

// Set sets a gauge.
func (m *Metric) Set(now time.Time, v float64, attrs ...Attr) {
	var before time.Time
	if m.overflow != nil {
		before = m.overflow.updated
	}
	switch p := m.point(now, attrs); {
	case p != m.overflow || !before.Equal(now):
		p.value = v
	case m.Sums:
		p.value += v
	default:
		p.value = max(p.value, v)
	}
}

func (m *Metric) point(now time.Time, attrs []Attr) *point {
	key, points := seriesKey(attrs), m.series()
	p, known := points.Get(key)
	if !known {
		p = m.newPoint(points, key, now, attrs)
	}
	p.updated = now
	return p
}

// newPoint adds a series, or returns the overflow series where there is no room. It allocates no point before
// it knows that: under hostile load most have none.
func (m *Metric) newPoint(points *bounded.Map[string, *point], key string, now time.Time, attrs []Attr) *point {
	m.asks.text = textOf(attrs)
	if points.Fits(key, &m.asks) {
		p := &point{attrs: slices.Clone(attrs), text: m.asks.text, start: now}
		points.Set(key, p)
		return p
	}
	if m.overflow == nil {
		m.overflow = &point{start: now}
	}
	return m.overflow
}

func (m *Metric) series() *bounded.Map[string, *point] {
	if m.points == nil {
		m.points = bounded.NewMap(bounded.MapConfig[string, *point]{
			Entries: m.Limit, Bytes: m.Limit*seriesText + cut.MaxLabel, Order: bounded.ByUse,
			Size: func(_ string, p *point) int { return p.text },
		})
	}
	return m.points
}

func seriesKey(attrs []Attr) string {
	var b []byte
	for _, a := range attrs {
		b = append(append(append(b, a.name...), 0), a.text...)
		b = append(strconv.AppendInt(append(b, 0), a.number, 10), 0)
	}
	return string(b)
}

// Expire drops the series that nothing was added to since before.
func (m *Metric) Expire(before time.Time) {
	m.series().DropOldest(func(_ string, p *point) bool { return p.updated.Before(before) })
	if m.Kind == KindGauge && m.overflow != nil && m.overflow.updated.Before(before) {
		m.overflow = nil // what counts goes on from where it was
	}
}

// Len returns the number of series, the overflow series not counted.
func (m *Metric) Len() int { return m.series().Len() }

// WriteMetrics appends the metrics that have series to td, under an empty
// resource: every dimension stands on the data points.
func WriteMetrics(md pmetric.Metrics, now time.Time, metrics ...*Metric) {
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(ScopeName)
	for _, m := range metrics {
		if m.Len() > 0 || m.overflow != nil {
			m.write(sm.Metrics().AppendEmpty(), now)
		}
	}
}

func (m *Metric) write(to pmetric.Metric, now time.Time) {
	to.SetName(m.Name)
	to.SetUnit(m.Unit)
	to.SetDescription(m.Description)
	next := m.appender(to)
	points := m.series()
	for _, key := range slices.Sorted(points.Keys()) {
		p, _ := points.Peek(key)
		next(p, now, false)
	}
	if m.overflow != nil {
		next(m.overflow, now, true)
	}
}

// appender prepares the metric's data and returns what adds a point to it.
func (m *Metric) appender(to pmetric.Metric) func(p *point, now time.Time, overflow bool) {
	if m.Kind == KindHistogram {
		h := to.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(p *point, now time.Time, overflow bool) {
			m.writeHistogram(p, h.DataPoints().AppendEmpty(), now, overflow)
		}
	}
	if m.Kind == KindExponential {
		h := to.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return func(p *point, now time.Time, overflow bool) {
			m.writeExponential(p, h.DataPoints().AppendEmpty(), now, overflow)
		}
	}
	var points pmetric.NumberDataPointSlice
	if m.Kind == KindGauge {
		points = to.SetEmptyGauge().DataPoints()
	} else {
		s := to.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = s.DataPoints()
	}
	return func(p *point, now time.Time, overflow bool) { m.writeNumber(p, points.AppendEmpty(), now, overflow) }
}

func (m *Metric) writeNumber(p *point, to pmetric.NumberDataPoint, now time.Time, overflow bool) {
	p.writeAttributes(to.Attributes(), overflow)
	to.SetTimestamp(pcommon.NewTimestampFromTime(now))
	switch m.Kind {
	case KindCounter:
		to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
		to.SetIntValue(int64(p.value))
	case KindSeconds:
		to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
		to.SetDoubleValue(p.value)
	default:
		to.SetDoubleValue(p.value)
	}
}

func (m *Metric) writeHistogram(p *point, to pmetric.HistogramDataPoint, now time.Time, overflow bool) {
	p.writeAttributes(to.Attributes(), overflow)
	to.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
	to.SetTimestamp(pcommon.NewTimestampFromTime(now))
	to.SetCount(p.count)
	to.SetSum(p.value)
	to.ExplicitBounds().FromRaw(m.Bounds)
	to.BucketCounts().FromRaw(p.buckets)
}

func (p *point) writeAttributes(to pcommon.Map, overflow bool) {
	if overflow {
		to.PutBool(semconv.MetricOverflowAttribute, true)
		return
	}
	for _, a := range p.attrs {
		if a.isNumber {
			to.PutInt(a.name, a.number)
		} else {
			to.PutStr(a.name, a.text)
		}
	}
}
