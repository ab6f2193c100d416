// SPDX-License-Identifier: Apache-2.0

// Package series keeps counters, gauges and histograms with a limit of series each. It knows no wire format:
// internal/otelmap writes the points of a metric as pdata.
package series

import (
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Kind is the kind of a metric.
type Kind int

// The kinds. Sums and histograms are cumulative.
const (
	Counter Kind = iota // integers that only grow
	Seconds             // seconds that only grow
	Gauge
	Histogram
	Exponential // a histogram of seconds or the like, without bounds of its own
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
	Kind                    Kind
	Limit                   int       // most series, the overflow series not counted; at least 1
	Bounds                  []float64 // upper bounds of the buckets of a histogram, ascending
	Sums                    bool      // of a gauge: values of several series add up to something

	points   *bounded.Map[string, *Point] // nil before the first
	overflow *Point
	asks     Point // stands in for a new series until there is room for it
}

// textShare is how many bytes of text the attributes of a series have on average, at most: a job's
// id and a class are half of it. What a scrape transfers is bounded by this times the limit of series.
const textShare = 128

// textOf returns the bytes of a series' attributes.
func textOf(attrs []Attr) (n int) {
	for _, a := range attrs {
		n += len(a.text)
	}
	return n
}

// Add adds v to a counter, or records it in a histogram.
func (m *Metric) Add(now time.Time, v float64, attrs ...Attr) {
	m.add(m.point(now, attrs), v)
}

func (m *Metric) add(p *Point, v float64) {
	p.value += v
	switch m.Kind {
	case Histogram:
		if p.buckets == nil {
			p.buckets = make([]uint64, len(m.Bounds)+1)
		}
		i, _ := slices.BinarySearch(m.Bounds, v)
		p.buckets[i]++
		p.count++
	case Exponential:
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

func (m *Metric) point(now time.Time, attrs []Attr) *Point {
	key, points := keyOf(attrs), m.series()
	p, known := points.Get(key)
	if !known {
		p = m.newPoint(points, key, now, attrs)
	}
	p.updated = now
	return p
}

// newPoint adds a series, or returns the overflow series where there is no room. It allocates no point before
// it knows that: under hostile load most have none.
func (m *Metric) newPoint(points *bounded.Map[string, *Point], key string, now time.Time, attrs []Attr) *Point {
	m.asks.text = textOf(attrs)
	if points.Fits(key, &m.asks) {
		p := &Point{attrs: slices.Clone(attrs), text: m.asks.text, start: now}
		points.Set(key, p)
		return p
	}
	if m.overflow == nil {
		m.overflow = &Point{isOverflow: true, start: now}
	}
	return m.overflow
}

func (m *Metric) series() *bounded.Map[string, *Point] {
	if m.points == nil {
		m.points = bounded.NewMap(bounded.MapConfig[string, *Point]{
			Entries: m.Limit, Bytes: m.Limit*textShare + cut.MaxLabel, Order: bounded.ByUse,
			Size: func(_ string, p *Point) int { return p.text },
		})
	}
	return m.points
}

func keyOf(attrs []Attr) string {
	var b []byte
	for _, a := range attrs {
		b = append(append(append(b, a.name...), 0), a.text...)
		b = append(strconv.AppendInt(append(b, 0), a.number, 10), 0)
	}
	return string(b)
}

// Expire drops the series that nothing was added to since before.
func (m *Metric) Expire(before time.Time) {
	m.series().DropOldest(func(_ string, p *Point) bool { return p.updated.Before(before) })
	if m.Kind == Gauge && m.overflow != nil && m.overflow.updated.Before(before) {
		m.overflow = nil // what counts goes on from where it was
	}
}

// Len returns the number of series, the overflow series not counted.
func (m *Metric) Len() int { return m.series().Len() }
