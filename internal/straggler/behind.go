// SPDX-License-Identifier: Apache-2.0

package straggler

// behind reports whether the step is older than steps that were judged, as one that a
// source delivers again: judgements take the window to be in order. A few later ones do not
// tell, since one number may be wrong, nor do those far ahead: then a program counts again.
func (j *job) behind(step int64) bool {
	later := 0
	for i := len(j.window) - 1; i >= 0 && later < minTrials; i-- {
		if n := j.window[i].step; n > step && n-step <= closedMemory {
			later++
		}
	}
	return later >= minTrials
}

// extent returns the first and the last step of the stretch, by number: a program that counts
// again leaves the window out of order.
func (in stretch) extent() (first, last *record) {
	first, last = in[0], in[0]
	for _, rec := range in {
		if rec.step < first.step {
			first = rec
		}
		if rec.step >= last.step {
			last = rec
		}
	}
	return first, last
}
