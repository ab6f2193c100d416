// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
)

// Change is a change of a Skewed's clock.
type Change struct {
	// At is when it happens in true time: a reading of this machine's
	// CLOCK_REALTIME, Unix ns.
	At int64
	// Rate is the clock's rate less that of true time from then on; 1e-6 is 1 ppm.
	Rate float64
	// Step is added to the reading at that moment, ns.
	Step int64
}

// Skewed is a Clock of which everything is known, for tests and the lab: both its
// clocks are functions of true time, which is this machine's CLOCK_REALTIME. All
// Skewed clocks of a machine share it, in whatever process and network namespace,
// so the offset between two of them is exact as long as nobody sets the machine's
// clock. Kernel stamps are carried over by the same functions.
type Skewed struct {
	raw, realtime atomic.Pointer[[]segment]
	narrow        narrow
	now           func() int64 // true time
}

// segment is a clock from true time at on: it reads reading there.
type segment struct {
	at, reading int64
	rate        float64
}

// NewSkewed returns clocks that read rawAt and realtimeAt at true time at (Unix
// ns) and run as true time does but for the changes, which are sorted by time;
// those before at count from at.
func NewSkewed(at, rawAt, realtimeAt int64, raw, realtime []Change) *Skewed {
	return NewSkewedBy(readTrue, at, rawAt, realtimeAt, raw, realtime)
}

// NewSkewedBy is NewSkewed with another true time than this machine's: that of a network
// that exists in memory only. now is called from several goroutines.
func NewSkewedBy(now func() int64, at, rawAt, realtimeAt int64, raw, realtime []Change) *Skewed {
	s := &Skewed{now: now}
	s.raw.Store(schedule(at, rawAt, raw))
	s.realtime.Store(schedule(at, realtimeAt, realtime))
	return s
}

func schedule(at, reading int64, changes []Change) *[]segment {
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	segments := []segment{{at: at, reading: reading}}
	for _, c := range changes {
		c.At = max(c.At, at)
		segments = append(segments, segment{c.At, read(segments, c.At) + c.Step, c.Rate})
	}
	return &segments
}

// read returns what the clock reads at a true time. Before the first segment it
// runs as true time does.
func read(segments []segment, t int64) int64 {
	for _, s := range slices.Backward(segments) {
		if t >= s.at {
			return s.reading + (t - s.at) + int64(math.Round(s.rate*float64(t-s.at)))
		}
	}
	return segments[0].reading + (t - segments[0].at)
}

// Raw returns what raw reads at true time t.
func (s *Skewed) Raw(t int64) int64 { return read(*s.raw.Load(), t) }

// Realtime returns what realtime reads at true time t.
func (s *Skewed) Realtime(t int64) int64 { return read(*s.realtime.Load(), t) }

// Kernel implements Clock.
func (s *Skewed) Kernel(unix int64) int64 { return s.Realtime(unix) }

// TrueOfRaw returns the last true time at which raw read reading, to the ns; ok is
// false where a step left the reading out.
func (s *Skewed) TrueOfRaw(reading int64) (t int64, ok bool) {
	return trueOf(*s.raw.Load(), reading)
}

// TrueOfRealtime is TrueOfRaw for realtime.
func (s *Skewed) TrueOfRealtime(reading int64) (t int64, ok bool) {
	return trueOf(*s.realtime.Load(), reading)
}

func trueOf(segments []segment, reading int64) (int64, bool) {
	until := int64(math.MaxInt64)
	for _, s := range slices.Backward(segments) {
		since := reading - s.reading
		// d + rate*d = since; the correction is small, so float64 is exact enough.
		t := s.at + since - int64(math.Round(float64(since)*s.rate/(1+s.rate)))
		if t >= s.at && t < until {
			return t, true
		}
		until = s.at
	}
	first := segments[0]
	if t := first.at + reading - first.reading; t < until {
		return t, true
	}
	return 0, false
}

// Offset returns what dst's raw reads less src's at true time t.
func Offset(src, dst *Skewed, t int64) int64 { return dst.Raw(t) - src.Raw(t) }

// ChangeRaw adds a change of raw; one that lies before the last is made then.
func (s *Skewed) ChangeRaw(c Change) { add(&s.raw, c) }

// ChangeRealtime adds a change of realtime; one that lies before the last is made
// then.
func (s *Skewed) ChangeRealtime(c Change) { add(&s.realtime, c) }

func add(p *atomic.Pointer[[]segment], c Change) {
	for {
		old := p.Load()
		segments := slices.Clone(*old)
		c.At = max(c.At, segments[len(segments)-1].at)
		segments = append(segments, segment{c.At, read(segments, c.At) + c.Step, c.Rate})
		if p.CompareAndSwap(old, &segments) {
			return
		}
	}
}

// Pair implements Clock. True time is read three times, as raw, realtime and raw
// of a real host are.
func (s *Skewed) Pair() Pair {
	return s.narrow.pick(func() Pair {
		before := s.now()
		realtime := s.now()
		after := s.now()
		return between(s.Raw(before), s.Realtime(realtime), s.Raw(after))
	})
}
