// SPDX-License-Identifier: Apache-2.0

package causality

import "slices"

// forgetAfter is for how many seconds a clock or a job is kept that is not seen any
// more: processes name theirs anew with every start.
const forgetAfter = 600

// sweepEvery is how many seconds pass between two looks at all of them.
const sweepEvery = 10

// forgetClocks makes room for new clocks; false where all that are known are in use.
// What is remembered of a clock is forgotten with it: it bears its name no more, which
// may come again.
func (e *Engine) forgetClocks() bool {
	if e.second < e.swept+sweepEvery {
		return len(e.clocks) < e.cfg.MaxClocks
	}
	e.swept = e.second
	before := len(e.clocks)
	for id, c := range e.clocks {
		if e.second-c.seen >= forgetAfter {
			c.gone = true
			delete(e.clocks, id)
		}
	}
	if len(e.clocks) < before {
		e.evidence.forget()
	}
	return len(e.clocks) < e.cfg.MaxClocks
}

// forget drops the pairs of clocks that were forgotten.
func (v *evidence) forget() {
	v.pairs.DeleteFunc(func(key clockPair, _ *pairEvidence) bool { return key.gone() })
	v.queue = slices.DeleteFunc(v.queue, func(p *pairEvidence) bool { return p.gone() })
}

func (p *clockPair) gone() bool { return p.src.gone || p.dst.gone }

// forget makes room for new jobs; false where all that are known are in use.
func (js *jobs) forget(second int64) bool {
	if second >= js.swept+sweepEvery {
		js.swept = second
		for name, j := range js.byName {
			if second-j.seen >= max(forgetAfter, int64(len(j.buckets))) {
				delete(js.byName, name)
			}
		}
	}
	return len(js.byName) < js.max
}
