// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// maxParts bounds into how many parts a window is split.
	maxParts = 8
	// clumsy is how many times wider than its narrower half of intervals a line may
	// make the bound before a split is looked for.
	clumsy = 4.0
	// worthwhile is to what share of the width a split must bring the bound.
	worthwhile = 0.7
)

// describe makes estimates of the intervals found, as few as describe them well.
func (e *Estimator) describe(reach int64) []Estimate {
	var out []Estimate
	for i := 0; i < len(e.intervals); {
		j := i
		for j < len(e.intervals) && e.intervals[j].alike(e.intervals[i]) && e.era(e.intervals[j].from) == e.era(e.intervals[i].from) {
			j++
		}
		if j > i {
			out = e.divide(out, e.intervals[i:j], reach, i > 0 || j < len(e.intervals))
		}
		i = max(j, i+1)
	}
	return out
}

// share distributes the samples since the last estimates by time.
func (e *Estimator) share(out []Estimate) {
	span := 0.0
	for _, o := range out {
		span += float64(o.Until - o.From)
	}
	for i, o := range out {
		out[i].Samples = int64(math.Round(float64(e.fresh) * float64(o.Until-o.From) / span))
	}
	if len(out) > 0 {
		e.fresh = 0
	}
}

// count counts a change, once for all intervals within a reach of each other that
// show one.
func (e *Estimator) count(at, reach int64) {
	if e.stats.Changes == 0 || at > e.change+reach || at < e.change-reach {
		e.stats.Changes++
	}
	e.change = at
}

func (i interval) bounded() (lower, upper bool) {
	return i.low[0] != model.NoLower && i.low[1] != model.NoLower, i.high[0] != model.NoUpper && i.high[1] != model.NoUpper
}

// alike reports whether both are bounded, on the same sides.
func (i interval) alike(o interval) bool {
	l, u := i.bounded()
	ol, ou := o.bounded()
	return i.found && o.found && !i.torn && !o.torn && (l || u) && l == ol && u == ou
}

// divide appends estimates of a run of intervals, split where one line describes it
// badly.
func (e *Estimator) divide(out []Estimate, run []interval, reach int64, split bool) []Estimate {
	half := e.halfWidth(run)
	if len(run) > 1 && len(out) < maxParts && half > clumsy*median(run) {
		at, best := 0, math.Inf(1)
		for k := range run {
			if w := max(e.halfWidth(run[:k]), e.halfWidth(run[k+1:])); w < best {
				at, best = k, w
			}
		}
		if best >= worthwhile*half && half > clumsy*clumsy*median(run) { // one of several, as about a gap
			if k, w := widestOf(run); w/2 >= worthwhile*half {
				at, best = k, 0
			}
		}
		if best < worthwhile*half {
			out = e.divideSome(out, run[:at], reach)
			return e.divideSome(out, run[at+1:], reach)
		}
	}
	return append(out, e.estimate(run, reach, split))
}

func (e *Estimator) divideSome(out []Estimate, run []interval, reach int64) []Estimate {
	if len(run) == 0 {
		return out
	}
	return e.divide(out, run, reach, true)
}

func (e *Estimator) halfWidth(run []interval) float64 {
	if len(run) == 0 {
		return 0
	}
	_, half := e.chebyshev(run, anchor(run))
	return half
}

// widestOf is the interval with the widest bounds.
func widestOf(run []interval) (at int, width float64) {
	for k, i := range run {
		if l, u := i.bounded(); l && u {
			if w := max(float64(i.high[0]-i.low[0]), float64(i.high[1]-i.low[1])); w > width {
				at, width = k, w
			}
		}
	}
	return at, width
}

// median is the middle of the intervals' half widths.
func median(run []interval) float64 {
	var widths []float64
	for _, i := range run {
		if l, u := i.bounded(); l && u {
			widths = append(widths, max(float64(i.high[0]-i.low[0]), float64(i.high[1]-i.low[1]))/2)
		}
	}
	if len(widths) == 0 {
		return math.Inf(1)
	}
	return stats.SelectMedianHigh(widths)
}

// anchor is where the numbers of a run are taken from: the middle of its time and
// an offset among its own.
func anchor(run []interval) sample {
	from, until := run[0].from, run[len(run)-1].until
	m := run[len(run)/2]
	s := sample{t: from + (until-from)/2, v: m.low[0]}
	if _, upper := m.bounded(); upper {
		s.v = m.high[0]
	}
	return s
}

// chebyshev is the line that comes nearest to all of a run's bounds, and by how much
// they are apart from it at most. Half is 0 where one side is not bounded: then the
// line follows the other.
func (e *Estimator) chebyshev(run []interval, o sample) (mid line, half float64) {
	lower, upper := run[0].bounded()
	e.up, e.low = e.up[:0], e.low[:0]
	for _, i := range run {
		for k, t := range [2]int64{i.from, i.until} {
			x := float64(t - o.t)
			high, low := i.high[k], i.low[k]
			if !upper {
				high = low
			}
			if !lower {
				low = high
			}
			e.low = append(e.low, point{x, float64(high - o.v)})
			e.up = append(e.up, point{x, float64(low - o.v)})
		}
	}
	e.up, e.low = hull(e.up, 1), hull(e.low, -1)
	mid, width := widest(e.up, e.low, e.cfg.MaxDrift)
	if !lower || !upper {
		return mid, 0
	}
	return mid, -width / 2
}

// estimate describes a run by one line, with bounds that hold for all of it.
func (e *Estimator) estimate(run []interval, reach int64, split bool) Estimate {
	o := anchor(run)
	est := Estimate{From: run[0].from, Until: run[len(run)-1].until, At: o.t, Split: split}
	est.HasLower, est.HasUpper = run[0].bounded()
	nearest, half := e.chebyshev(run, o)
	est.take(run, o, nearest)
	if est.HasLower && est.HasUpper {
		if l, sigma, ok := e.fit(est.From, est.Until, reach, o); ok {
			fitted := est
			fitted.take(run, o, l)
			fitted.Sigma = sigma
			if float64(fitted.Upper)-float64(fitted.Lower) <= 3*half {
				est = fitted
			}
		}
		if est.Sigma == 0 {
			est.Sigma = half / math.Sqrt(3)
		}
	}
	est.Growth = est.DriftBound + e.cfg.Wander*(1+horizon/2)
	return est
}

// take sets offset, drift and bounds of a line.
func (e *Estimate) take(run []interval, o sample, l line) {
	e.Drift = l.B
	e.Lower, e.Upper = math.MaxInt64, math.MinInt64
	e.DriftBound = 0
	for _, i := range run {
		for k, t := range [2]int64{i.from, i.until} {
			rise := e.rise(t)
			if e.HasLower {
				e.Lower = min(e.Lower, i.low[k]-rise-1)
			}
			if e.HasUpper {
				e.Upper = max(e.Upper, i.high[k]-rise+1)
			}
		}
		e.DriftBound = max(e.DriftBound, i.drift[1]-l.B, l.B-i.drift[0])
	}
	if !e.HasLower || !e.HasUpper {
		if !e.HasLower {
			e.Lower = model.NoLower
		} else {
			e.Upper = model.NoUpper
		}
		e.centre()
		return
	}
	e.Offset = min(max(o.v+int64(math.Round(min(max(l.A, -far), far))), e.Lower), e.Upper)
}

// label tells which estimates do not continue what was known before.
func (e *Estimator) label(out []Estimate) {
	before, known := e.last, e.known
	for i := range out {
		if known && !out[i].continues(before) {
			out[i].Stepped = true
		}
		before, known = out[i], true
	}
}

// continues reports whether an estimate lies within what the one before allows at
// its beginning.
func (e Estimate) continues(before Estimate) bool {
	lower, upper := before.BoundsAt(e.From)
	l, u := e.BoundsAt(e.From)
	return l <= upper && lower <= u
}
