package pair

import "math"

const (
	// calm is how much less than Wander the frequency is believed to change: what
	// the estimate may rest on, and no bound.
	calm = 0.1
	// lengths is how many lengths of fits are compared, each twice the one before.
	lengths = 8
	// agree is within how many standard deviations of the shorter fits a longer one
	// must lie to be taken (Lepski's rule): a change of frequency that is too small
	// for the bounds to contradict bends the longer ones first.
	agree = 4
	// trusted is of how many comparisons of halves a mean is relied on.
	trusted = 6
)

// halves is what is known of the noise of one length of fit: how far apart the
// estimates are, in the mean, that rest on its even and its odd cells of time.
type halves struct{ apart, seen float64 }

func (h *halves) learn(apart float64) {
	if h.seen >= trusted {
		apart = min(apart, 4*h.apart)
	}
	h.seen = min(h.seen+1, 16)
	h.apart += (apart - h.apart) / h.seen
}

// sigma is the standard deviation of the estimate that rests on both halves: the
// soonest of twice as many samples is half as late. Until enough halves were
// compared it is taken from the strip's width, which is too much.
func (h *halves) sigma(width float64) float64 {
	if h.seen < trusted {
		return max(width/4, h.apart, 1)
	}
	return max(h.apart/2, 1)
}

// doubt widens the sigmas of estimates to what they do from one to the next. Errors
// of stamps that last longer than a cell, such as those of the clocks by which the
// kernel's stamps are placed, are the same in both halves; but they do not last from
// window to window. A difference of two is 2/sqrt(pi) sigmas in the mean. Nor is
// anything known better than two stamps of the resolution can tell.
func (e *Estimator) doubt(out []Estimate) {
	before, known := e.last, e.known
	for i := range out {
		o := &out[i]
		if o.Sigma > 0 && o.DriftBound > 0 {
			if known && before.Sigma > 0 && !o.Stepped && o.From-before.Until <= int64(e.cfg.Window) {
				e.jumps.learn(math.Abs(float64(o.OffsetAt(o.From) - before.OffsetAt(o.From))))
			}
			o.Sigma = max(o.Sigma, e.jumps.apart*math.Sqrt(math.Pi)/2, float64(e.cfg.Resolution)/math.Sqrt(6))
		}
		before, known = *o, true
	}
}

// fitting is the search for the longest evidence that agrees with all shorter ones.
type fitting struct {
	accepted [lengths]line
	sigmas   [lengths]float64
	few      [lengths]bool // rests on too few samples to contradict a longer one
	n        int
}

func (f *fitting) best() (l line, sigma float64, ok bool) {
	if f.n == 0 {
		return line{}, 0, false
	}
	return f.accepted[f.n-1], f.sigmas[f.n-1], true
}

// fit is the line between the envelopes of all evidence around [from, until] that
// belongs to one line, at the anchor, and its standard deviation.
func (e *Estimator) fit(from, until, reach int64, o sample) (best line, sigma float64, ok bool) {
	var f fitting
	e.lengthen(&f, 0, from, until, o)
	if e.lengthen(&f, 1, from, until+reach, o) {
		until += reach
	}
	for j := 2; j < lengths; j++ {
		if back := reach << (j - 2); back > int64(e.cfg.MaxFit) || !e.lengthen(&f, j, from-back, until, o) {
			break
		}
	}
	return f.best()
}

// lengthen takes the j-th length of evidence if it agrees with what was taken before.
func (e *Estimator) lengthen(f *fitting, j int, from, until int64, o sample) bool {
	l, width, ok := e.line(from, until, o, every)
	if !ok {
		return false
	}
	even, _, okEven := e.line(from, until, o, 0)
	odd, _, okOdd := e.line(from, until, o, 1)
	for i := range f.n {
		if !f.few[i] && math.Abs(l.a-f.accepted[i].a) > agree*f.sigmas[i] {
			return false
		}
	}
	if okEven && okOdd {
		e.halves[j].learn(math.Abs(even.a - odd.a))
	}
	f.few[f.n] = min(len(e.upper.between(from, until)), len(e.lower.between(from, until))) < evidence
	f.accepted[f.n], f.sigmas[f.n] = l, e.halves[j].sigma(width)
	f.n++
	return true
}

// every takes the samples of all cells, 0 and 1 those of even and odd ones.
const every = 2

// line is the middle of the widest strip between the envelopes of [from, until], and the strip's
// width.
func (e *Estimator) line(from, until int64, o sample, parity int64) (mid line, width float64, ok bool) {
	e.up = e.points(e.up[:0], e.some(e.upper.between(from, until), parity), o.t, o.v, 1, calm)
	e.low = e.points(e.low[:0], e.some(e.lower.between(from, until), parity), o.t, o.v, -1, calm)
	if len(e.up) == 0 || len(e.low) == 0 {
		return line{}, 0, false
	}
	e.before.clip(e.up, e.low, e.cfg.MaxDrift)
	if e.before.empty() {
		return line{}, 0, false
	}
	if lo, hi := e.before.drift(); hi-lo > e.cfg.MaxDrift { // too few to tell a drift
		b := lo + (hi-lo)/2
		high, low := strip(e.up, e.low, b)
		return line{low + (high-low)/2, b}, high - low, true
	}
	mid, width = widest(e.up, e.low, e.cfg.MaxDrift)
	return mid, width, true
}

func (e *Estimator) some(in []sample, parity int64) []sample {
	if parity == every {
		return in
	}
	e.part = e.part[:0]
	for _, s := range in {
		if (s.t/e.cell())&1 == parity {
			e.part = append(e.part, s)
		}
	}
	return e.part
}
