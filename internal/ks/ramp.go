// SPDX-License-Identifier: Apache-2.0

package ks

// ramp sums by how much a number exceeds each of a set of numbers, all within -Full and
// Full.
type ramp struct {
	sums      []uint64 // by number, from -Full on
	low, high int      // where they begin, and the first number above all
	weight    uint64   // of all
	moment    int      // sum of weight times number
}

// add takes a number, before sum is called.
func (r *ramp) add(v int, weight uint64) {
	if r.sums == nil {
		r.sums = make([]uint64, 2*Full+2)
		r.low, r.high = 2*Full+1, 0
	}
	v += Full + 1
	r.low, r.high = min(r.low, v), max(r.high, v)
	r.sums[v] += weight
}

// sum serves what was added.
func (r *ramp) sum() {
	r.weight, r.moment = 0, 0
	sum := uint64(0)
	for i := r.low; i <= r.high; i++ {
		r.weight += r.sums[i]
		sum += r.weight
		r.sums[i] = sum
	}
	// The highest number exceeds the others by as much as their mean lies below it.
	r.moment = int(r.weight)*(r.high-Full) - int(sum)
}

// within returns the least number and the most.
func (r *ramp) within() (low, high int) { return r.low - Full - 1, r.high - Full - 1 }

// at returns by how much v exceeds the numbers below it, in all.
func (r *ramp) at(v int) uint64 {
	v += Full
	if v < r.low {
		return 0
	}
	if v > r.high {
		return r.sums[r.high] + uint64(v-r.high)*r.weight
	}
	return r.sums[v]
}

// beyond returns by how much more than allowed v is apart from the numbers, in all. What
// numbers exceed v by is what v exceeds numbers by, less the sum of all differences.
func (r *ramp) beyond(v, allowed int) uint64 {
	above := v + allowed
	return r.at(v-allowed) + r.at(above) + uint64(r.moment-int(r.weight)*above)
}

// clear forgets what was added.
func (r *ramp) clear() {
	clear(r.sums[r.low : r.high+1])
	r.low, r.high = 2*Full+1, 0
}
