// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Unit is what a GPU's clock counts.
type Unit uint8

// The units. Nothing is converted while the unit is unknown.
const (
	UnitUnknown Unit = iota
	UnitNanoseconds
	UnitTicks
)

// String returns the unit's name.
func (u Unit) String() string {
	switch u {
	case UnitNanoseconds:
		return "ns"
	case UnitTicks:
		return "ticks"
	}
	return "unknown"
}

const (
	// buckets of bucketNS each are the window. In 32 s brackets of 50 µs tell the
	// drift to 1.5 ppm, while no frequency changes by more than wander.
	buckets  = 32
	bucketNS = 1_000_000_000
	// maxDrift bounds the rates' difference where the unit is ns: crystals are
	// within 100 ppm, and a kernel's calibration of its counter within 300 more.
	maxDrift = 500e-6
	// wander is how much the frequencies may change inside a window, relative to
	// each other: 0.1 ppm, some kelvin of a crystal without compensation.
	wander = 1e-7
	// promptDelivery is half of what the soonest delivery of a stop is believed to
	// take where the lower constraints do not say: NCCL's profiler thread pauses 1
	// to 10 µs, and its proxy thread looks as often.
	promptDelivery = 10_000
	// refitEvery is after how many samples a tighter bracket is taken up, so that
	// a long backlog is not converted by its first sample alone. One that the line
	// contradicts is taken up at once.
	refitEvery = 256
	// firstResolution, in units of the clock, is assumed until enough stamps have
	// shown their own: the coarsest globaltimer known ticks each 1,024 ns.
	firstResolution = 1024
	// stampsForResolution: that 64 random stamps share a factor by chance has a
	// probability of 2^-64.
	stampsForResolution = 64
)

// bracket is one constraint: at GPU time g the host's clock was at least (lower)
// or at most (upper) h.
type bracket struct {
	g, h uint64
	rest float64 // h less the fit's line at g; comparable until the next fit
}

// bucket keeps the tightest constraints of one second.
type bucket struct {
	id           uint64 // host second; 0 where empty
	lower, upper bracket
}

// Fit relates one GPU's clock to the host's. The zero value is ready; it holds
// some 5 KB and allocates nothing. It is not safe for concurrent use.
type Fit struct {
	unit Unit
	rate float64 // ns per unit
	scan rateScan

	window [buckets]bucket
	newest uint64 // id of the newest bucket
	step   uint64 // resolution in units: all stamps are seen to be multiples apart
	stamp  uint64 // the stamp that step is counted from
	seen   int    // stamps that step was learnt from

	g0, h0   uint64                    // reference of line and polygon
	line     stats.Line                // offset A in ns at the reference, drift B
	delivery float64                   // ns between the line and the nearest upper constraints
	polygon  [2*buckets + 8]stats.Line // the extreme lines
	scratch  [2*buckets + 8]stats.Line
	vertices int
	tighter  bool
	pending  int // samples since the last fit

	samples, refused, resets int64
}

// Stats are a fit's counters.
type Stats struct {
	Samples int64
	Refused int64 // brackets that end before they begin
	Resets  int64 // contradictions: a clock was stepped, or a stamp was wrong
}

// Stats returns the counters.
func (f *Fit) Stats() Stats { return Stats{f.samples, f.refused, f.resets} }

// Unit returns what the clock counts, as far as it is known.
func (f *Fit) Unit() Unit { return f.unit }

// Rate returns ns per unit, drift included; 0 while unknown.
func (f *Fit) Rate() float64 { return f.rate * (1 + f.line.B) }

// Ready reports whether stamps can be converted.
func (f *Fit) Ready() bool { return f.vertices > 0 }

// Add takes one bracket: host times before and after in ns of MONOTONIC_RAW, the
// GPU's stamps between them.
func (f *Fit) Add(before, start, stop, after uint64) {
	if stop < start || after < before || start == 0 || after == 0 {
		f.refused++
		return
	}
	f.samples++
	if f.unit == UnitUnknown {
		if !f.scan.add(before, start, stop, after) {
			return
		}
		f.unit, f.rate = f.scan.unit, f.scan.rate
		f.g0, f.h0, f.stamp = start, before, start
	}
	id := after / bucketNS
	b := &f.window[id%buckets]
	switch {
	case b.id > id:
		return // older than the window
	case b.id < id:
		*b = bucket{id: id}
		f.newest = max(f.newest, id)
		f.take(b, before, start, stop, after, true)
	default:
		f.take(b, before, start, stop, after, false)
	}
	wrong := f.rest(start, before) > 0 || f.rest(stop, after) < 0
	if f.pending++; f.tighter && (f.pending >= refitEvery || f.vertices == 0 || wrong) {
		f.Refit()
	}
}

func (f *Fit) take(b *bucket, before, start, stop, after uint64, fresh bool) {
	if rest := f.rest(start, before); fresh || rest > b.lower.rest {
		f.resolve(start)
		b.lower = bracket{start, before, rest}
		f.tighter = true
	}
	if rest := f.rest(stop, after); fresh || rest < b.upper.rest {
		f.resolve(stop)
		b.upper = bracket{stop, after, rest}
		f.tighter = true
	}
}

// rest is the host time less the line at g.
func (f *Fit) rest(g, h uint64) float64 {
	x := f.at(g)
	return float64(int64(h-f.h0)) - x - f.line.A - f.line.B*x
}

// at is g on the fit's axis: ns since the reference.
func (f *Fit) at(g uint64) float64 { return float64(int64(g-f.g0)) * f.rate }

// resolve learns how coarse the stamps are: the greatest common divisor of their
// distances. It starts too coarse, which only widens the bound.
func (f *Fit) resolve(g uint64) {
	d := g - f.stamp
	if int64(d) < 0 {
		d = -d
	}
	f.seen++
	if f.step == 0 || d%f.step != 0 {
		f.step = gcd(f.step, d)
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// resolution returns how much later than its stamp an event may have been, in ns.
func (f *Fit) resolution() float64 {
	step := f.step
	if step == 0 || f.seen < stampsForResolution {
		step = firstResolution
	}
	return float64(step) * f.rate
}

// Refit takes up what came since the last fit. It costs some microseconds.
func (f *Fit) Refit() {
	if !f.tighter {
		return
	}
	f.tighter, f.pending = false, 0
	f.clip()
	if f.vertices == 0 {
		// No line satisfies all: what was true once is not any more.
		f.resets++
		f.keepNewest()
		f.clip()
	}
	if f.vertices == 0 {
		f.window = [buckets]bucket{}
		return
	}
	f.choose()
	for i := range f.window {
		if b := &f.window[i]; b.id != 0 {
			b.lower.rest = f.rest(b.lower.g, b.lower.h)
			b.upper.rest = f.rest(b.upper.g, b.upper.h)
		}
	}
}

// choose takes the fit's line out of the polygon: the one that comes nearest to
// the upper constraints in the middle of the window, less what the soonest
// delivery is believed to take. The lower constraints hold, but say little: where
// work is enqueued ahead, no kernel starts soon after its launch.
func (f *Fit) choose() {
	mid := f.middle()
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range f.polygon[:f.vertices] {
		low, high = min(low, v.At(mid)), max(high, v.At(mid))
	}
	const same = 1e-3 // ns: vertices of one edge
	var sum stats.Line
	n := 0.0
	for _, v := range f.polygon[:f.vertices] {
		if v.At(mid) >= high-same {
			sum.A, sum.B, n = sum.A+v.A, sum.B+v.B, n+1
		}
	}
	f.delivery = min((high-low)/2, promptDelivery)
	f.line = stats.Line{A: sum.A/n - f.delivery, B: sum.B / n}
}

// middle is the mean place of the window's upper constraints.
func (f *Fit) middle() float64 {
	sum, n := 0.0, 0.0
	f.each(func(_, _, _, xu float64) { sum, n = sum+xu, n+1 })
	if n == 0 {
		return 0
	}
	return sum / n
}

func (f *Fit) keepNewest() {
	for i := range f.window {
		if f.window[i].id != f.newest {
			f.window[i] = bucket{}
		}
	}
}

// Host converts a GPU stamp to host ns; false while that cannot be done.
func (f *Fit) Host(g uint64) (uint64, bool) {
	if f.vertices == 0 {
		return 0, false
	}
	x := f.at(g)
	return f.h0 + uint64(int64(x+f.line.A+f.line.B*x)), true
}

// Offset returns host ns less converted-by-rate GPU ns at g, and how far the
// truth may lie from it, both in ns. It is what Host adds to a clock of ns.
func (f *Fit) Offset(g uint64) (offset int64, bound float64) {
	h, ok := f.Host(g)
	if !ok {
		return 0, math.Inf(1)
	}
	return int64(h - g), f.Bound(g)
}

// Bound returns the half width in ns of where the host time of g must lie.
func (f *Fit) Bound(g uint64) float64 {
	if f.vertices == 0 {
		return math.Inf(1)
	}
	x := f.at(g)
	mid, worst := f.line.A+f.line.B*x, 0.0
	for _, v := range f.polygon[:f.vertices] {
		worst = max(worst, math.Abs(v.At(x)-mid))
	}
	return worst + wander*math.Abs(x) + f.resolution()
}

// Sigma returns the standard deviation in ns that an estimate of the host time
// has, if the soonest of many deliveries is prompt. Unlike Bound it is belief.
func (f *Fit) Sigma() float64 {
	if f.vertices == 0 {
		return math.Inf(1)
	}
	return f.delivery + f.resolution()
}

// Drift returns how much faster the host's clock runs than the GPU's at the rate
// found, in ppm.
func (f *Fit) Drift() float64 { return f.line.B * 1e6 }
