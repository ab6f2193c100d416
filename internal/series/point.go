// SPDX-License-Identifier: Apache-2.0

package series

import (
	"iter"
	"slices"
	"time"
)

// Point is one series of a metric, as it is until the metric next changes.
type Point struct {
	attrs          []Attr
	text           int // bytes of these
	isOverflow     bool
	start, updated time.Time
	value          float64
	count          uint64
	buckets        []uint64
	exponential    exponential
}

// Points returns the series in the order of their attributes, and after them the overflow series. The metric
// must not change meanwhile.
func (m *Metric) Points() iter.Seq[*Point] {
	return func(yield func(*Point) bool) {
		points := m.series()
		for _, key := range slices.Sorted(points.Keys()) {
			if p, _ := points.Peek(key); !yield(p) {
				return
			}
		}
		if m.overflow != nil {
			yield(m.overflow)
		}
	}
}

// Empty reports whether the metric has no series, not even the overflow series.
func (m *Metric) Empty() bool { return m.Len() == 0 && m.overflow == nil }

// Attrs returns the attributes of the series, which the caller must not change; none of the overflow series.
func (p *Point) Attrs() []Attr { return p.attrs }

// Overflow reports whether this is the series of what found no room.
func (p *Point) Overflow() bool { return p.isOverflow }

// Start returns the time of the first value, from which a cumulative series counts.
func (p *Point) Start() time.Time { return p.start }

// Value returns the value of a counter or a gauge, or the sum of a histogram.
func (p *Point) Value() float64 { return p.value }

// Count returns the number of values in a histogram.
func (p *Point) Count() uint64 { return p.count }

// Buckets returns the counts of a histogram with bounds, one more than there are bounds. The caller must not
// change them.
func (p *Point) Buckets() []uint64 { return p.buckets }

// Name returns the name of the attribute.
func (a *Attr) Name() string { return a.name }

// Text returns the value of a string attribute, "" of an integer attribute.
func (a *Attr) Text() string { return a.text }

// Number returns the value of an integer attribute, and false of a string attribute.
func (a *Attr) Number() (int64, bool) { return a.number, a.isNumber }
