// SPDX-License-Identifier: Apache-2.0

package pair

import "slices"

const (
	// neighbours of the other direction, before and after a sample, judge it.
	neighbours = 4
	// accusers is how many of them must contradict it, on either side. A truthful
	// sample between two liars within 2*neighbours is that rare: 1 in 200,000 where
	// 1 % lie.
	accusers = 2
	// maxLiars is the share of a window's samples beyond which nobody is a liar, and
	// something else is wrong. One is, among however few.
	maxLiars = 0.05
)

// expel drops samples that lie in the zone between both envelopes: an upper sample
// below lower ones before and after it, or the other way round. No step and no
// change of frequency makes one, since it contradicts one side only. Two steps in a
// row would; but then the nearest sample of the other direction, mostly of the same
// exchange, came between them as well, and agrees.
func (e *Estimator) expel() {
	up, low := e.upper.raw(), e.lower.raw()
	liarsUp := e.liars(e.upper.liars[:0], up, low, 1)
	liarsLow := e.liars(e.lower.liars[:0], low, up, -1)
	e.upper.liars, e.lower.liars = liarsUp, liarsLow
	n := len(liarsUp) + len(liarsLow)
	if n == 0 || (n > 1 && float64(n) > maxLiars*float64(len(up)+len(low))) {
		return
	}
	e.stats.Liars += int64(n)
	e.upper.drop(liarsUp)
	e.lower.drop(liarsLow)
}

// raw returns the pending samples by time, behind the last ones of the Close before.
func (s *side) raw() []sample {
	s.sorted = append(append(s.sorted[:0], s.tail...), s.pending...)
	slices.SortStableFunc(s.sorted, byTime)
	return s.sorted
}

// liars appends those of own that enough others contradict.
func (e *Estimator) liars(out, own, others []sample, sign float64) []sample {
	drift := 0.0
	if e.known {
		drift = e.last.Drift
	}
	j := 0
	for _, s := range own {
		for j < len(others) && others[j].t < s.t {
			j++
		}
		if j < neighbours || j+neighbours > len(others) {
			continue
		}
		near := others[j-1 : j]
		if others[j].t-s.t < s.t-others[j-1].t {
			near = others[j : j+1]
		}
		if contradicting(s, near, drift, sign) > 0 && contradicting(s, others[j-neighbours:j], drift, sign) >= accusers &&
			contradicting(s, others[j:j+neighbours], drift, sign) >= accusers {
			out = append(out, s)
		}
	}
	return out
}

// contradicting counts those of others that a sample contradicts.
func contradicting(s sample, others []sample, drift, sign float64) int {
	n := 0
	for _, o := range others {
		if sign*(float64(o.v-s.v)+drift*float64(s.t-o.t)) > 0 {
			n++
		}
	}
	return n
}

// drop removes samples from whatever holds them.
func (s *side) drop(liars []sample) {
	if len(liars) == 0 {
		return
	}
	liar := func(o sample) bool {
		_, found := slices.BinarySearchFunc(liars, o, byTimeAndValue)
		return found
	}
	slices.SortFunc(liars, byTimeAndValue)
	s.pending = slices.DeleteFunc(s.pending, liar)
	s.tail = slices.DeleteFunc(s.tail, liar)
	s.kept = slices.DeleteFunc(s.kept, liar)
}

func byTimeAndValue(a, b sample) int {
	if c := byTime(a, b); c != 0 {
		return c
	}
	return byTime(sample{t: a.v}, sample{t: b.v})
}

// remember keeps the last samples for the judgement of those around the window's
// end.
func (s *side) remember() {
	last := s.raw()
	s.tail = append(s.tail[:0], last[max(0, len(last)-3*neighbours):]...)
}
