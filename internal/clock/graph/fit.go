// SPDX-License-Identifier: Apache-2.0

package graph

import "math"

// row is one equation of a weighted least-squares problem on a graph:
// x[dst]-x[src] = r with weight w.
type row struct {
	src, dst  int32
	r, w      float64
	factor    float64 // of the weight; 1 unless the row is believed less
	eliminate bool    // satisfied exactly by its leaf
}

// fit solves the normal equations of its rows, the weighted Laplacian of the
// graph with one clock of each component held at 0. Huygens' correction of loops
// is the same solution, without counting loops.
type fit struct {
	rows   []row
	ground []bool
	first  []int32
	around []int32

	leaves []leaf
	work   *work
	// letGo: a row that deviates by more than sigmasInside pulls the less the farther away
	// it is, by the square of that. There can be several solutions then: x has to be near
	// the right one.
	letGo bool
	// Scratch of the conjugate gradients.
	diagonal, residual, direction, scaled, product []float64
}

// leaf is a clock with one row, which that row places.
type leaf struct{ clock, row int32 }

func (p *problem) newFit() *fit {
	f := &fit{ground: make([]bool, len(p.group)), rows: make([]row, 0, len(p.links)), work: &p.work}
	for _, r := range p.references() {
		f.ground[r] = true
	}
	return f
}

func (f *fit) add(r row) {
	r.factor = 1
	f.rows = append(f.rows, r)
}

// robustPasses bounds the repetitions with other weights. Ten bring a weight
// within a percent of where it ends, and what is still outside then is looked at
// by consistent.
const robustPasses = 10

// effort is where conjugate gradients end: where the square of the error that is left, in
// sigmas, is so small a share of the first, or as small for each clock, or after so many steps.
type effort struct {
	share, within float64
	steps         int
}

var (
	// exactly is for what is told: ns of an error of a second. Random graphs need some 30
	// steps; a ring of 10,000 clocks would need 5,000, and is then solved to a small share of
	// its sigmas instead.
	exactly = effort{share: 1e-22, within: 1e-14, steps: 1000}
	// roughly is for what weights are found from, which are known to a percent. They rest on
	// neighbours, and changes of few clocks reach far ones late.
	roughly = effort{share: 1e-6, within: 1e-8, steps: 100}
	// forSigmas is enough for variances that are estimates.
	forSigmas = effort{share: 1e-6, steps: 2000}
)

// robust solves again and again with less weight for rows that deviate by more than some
// sigmas: such a row pulls with the force that it has there, however far away it is
// (Huber), or lets go. x is the solution with the weights of before, and then roughly the
// result.
func (f *fit) robust(x []float64) {
	for range robustPasses {
		if !f.reweigh(x) {
			return
		}
		f.approach(x, roughly)
	}
}

// sigmasInside is how many sigmas a row is believed in full: of normal errors one
// in 370 is beyond.
const sigmasInside = 3

func (f *fit) reweigh(x []float64) (changed bool) {
	for i := range f.rows {
		r := &f.rows[i]
		factor := min(1, sigmasInside/math.Sqrt(r.w)/math.Abs(r.r-(x[r.dst]-x[r.src])))
		if f.letGo {
			factor = factor * factor * factor
		}
		if math.Abs(factor-r.factor) > 0.01*r.factor {
			changed = true
		}
		r.factor = factor
	}
	return changed
}

func (f *fit) build() {
	n := len(f.ground)
	f.first = make([]int32, n+1)
	for i := range f.rows {
		f.first[f.rows[i].src+1]++
		f.first[f.rows[i].dst+1]++
	}
	for c := range n {
		f.first[c+1] += f.first[c]
	}
	f.around = make([]int32, 2*len(f.rows))
	next := append([]int32(nil), f.first[:n]...)
	for i := range f.rows {
		for _, c := range [2]int32{f.rows[i].src, f.rows[i].dst} {
			f.around[next[c]] = int32(i)
			next[c]++
		}
	}
	f.strip()
	for _, v := range []*[]float64{&f.diagonal, &f.residual, &f.direction, &f.scaled, &f.product} {
		*v = make([]float64, n)
	}
}

// strip takes off leaves, then what became leaves by that: trees that hang on the
// rest are solved exactly, and only loops are left to iterate on.
func (f *fit) strip() {
	n := len(f.ground)
	degree := make([]int32, n)
	var queue []int32
	for c := range n {
		degree[c] = f.first[c+1] - f.first[c]
		if degree[c] == 1 && !f.ground[c] {
			queue = append(queue, int32(c))
		}
	}
	for len(queue) > 0 {
		c := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if degree[c] != 1 {
			continue
		}
		for _, i := range f.around[f.first[c]:f.first[c+1]] {
			r := &f.rows[i]
			if r.eliminate {
				continue
			}
			r.eliminate = true
			f.leaves = append(f.leaves, leaf{c, i})
			o := r.src + r.dst - c
			degree[c]--
			if degree[o]--; degree[o] == 1 && !f.ground[o] {
				queue = append(queue, o)
			}
		}
	}
}

// reached tells which clocks rows join with one that is held.
func (f *fit) reached() []bool {
	out := append([]bool(nil), f.ground...)
	var queue []int32
	for c, held := range f.ground {
		if held {
			queue = append(queue, int32(c))
		}
	}
	for len(queue) > 0 {
		c := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, i := range f.around[f.first[c]:f.first[c+1]] {
			if o := f.rows[i].src + f.rows[i].dst - c; !out[o] {
				out[o] = true
				queue = append(queue, o)
			}
		}
	}
	return out
}

// solve starts at x and leaves the solution there.
func (f *fit) solve(x []float64) { f.approach(x, exactly) }

// approach starts at x and goes as far towards the solution as the effort.
func (f *fit) approach(x []float64, e effort) {
	for c, held := range f.ground {
		if held {
			x[c] = 0
		}
	}
	f.iterate(x, e)
	f.hangLeaves(x)
}

func (f *fit) hangLeaves(x []float64) {
	for i := len(f.leaves) - 1; i >= 0; i-- {
		l := f.leaves[i]
		if r := &f.rows[l.row]; r.dst == l.clock {
			x[l.clock] = x[r.src] + r.r
		} else {
			x[l.clock] = x[r.dst] - r.r
		}
	}
}

// iterate is the method of conjugate gradients, preconditioned by the diagonal.
func (f *fit) iterate(x []float64, e effort) {
	clear(f.residual)
	clear(f.diagonal)
	for i := range f.rows {
		r := &f.rows[i]
		if r.eliminate {
			continue
		}
		w := r.w * r.factor
		pull := w * (r.r - (x[r.dst] - x[r.src]))
		f.residual[r.dst] += pull
		f.residual[r.src] -= pull
		f.diagonal[r.dst] += w
		f.diagonal[r.src] += w
	}
	rz := f.precondition()
	copy(f.direction, f.scaled)
	enough := max(rz*e.share, e.within*float64(len(x)))
	for range e.steps {
		if rz <= enough || rz == 0 {
			return
		}
		if f.work.done() {
			return
		}
		f.work.add(len(f.rows) + len(x))
		bend := f.multiply()
		if bend <= 0 {
			return
		}
		step := rz / bend
		for c := range x {
			x[c] += step * f.direction[c]
			f.residual[c] -= step * f.product[c]
		}
		next := f.precondition()
		for c := range f.direction {
			f.direction[c] = f.scaled[c] + next/rz*f.direction[c]
		}
		rz = next
	}
}

// precondition divides the residual by the diagonal, and returns the square of
// its norm.
func (f *fit) precondition() float64 {
	rz := 0.0
	for c, d := range f.diagonal {
		if d == 0 || f.ground[c] {
			f.scaled[c], f.residual[c] = 0, 0
			continue
		}
		f.scaled[c] = f.residual[c] / d
		rz += f.residual[c] * f.scaled[c]
	}
	return rz
}

// multiply applies the Laplacian to the direction, and returns the product of
// both.
func (f *fit) multiply() float64 {
	clear(f.product)
	bend := 0.0
	for i := range f.rows {
		r := &f.rows[i]
		if r.eliminate {
			continue
		}
		d := f.direction[r.dst] - f.direction[r.src]
		v := r.w * r.factor * d
		f.product[r.dst] += v
		f.product[r.src] -= v
		bend += v * d
	}
	return bend
}

// sigmaProbes is how many random right-hand sides estimate the variances: with 12
// a sigma is right within some 20 %.
const sigmaProbes = 12

// variances estimates the variance of every x against the clock that is held: its
// effective resistance. With q a random vector of signs, one for each row, the
// solution of rows that say q/sqrt(w) has that variance.
func (f *fit) variances() []float64 {
	n := len(f.ground)
	out, z := make([]float64, n), make([]float64, n)
	keep := make([]float64, len(f.rows))
	for i := range f.rows {
		keep[i] = f.rows[i].r
	}
	bits := splitMix(1)
	for range sigmaProbes {
		for i := range f.rows {
			r := &f.rows[i]
			r.r = 1 / math.Sqrt(r.w*r.factor)
			if bits.next()&1 == 0 {
				r.r = -r.r
			}
		}
		clear(z)
		f.iterate(z, forSigmas)
		f.hangLeaves(z)
		for c, v := range z {
			out[c] += v * v / sigmaProbes
		}
	}
	for i := range f.rows {
		f.rows[i].r = keep[i]
	}
	return out
}

// splitMix is a generator of random bits of which nothing is asked but signs that
// are the same in every run.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
