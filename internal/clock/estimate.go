// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// applySigmas is how many sigmas an estimate must differ from zero before it is
// applied: at 3, one healthy clock in 370 is moved by its own noise.
const applySigmas = 3

// solvePasses bounds the alternation between meeting times and offsets. Each
// pass carries an offset one meeting further: groups that share all ranks need
// two passes, parallel layouts, whose groups cross, some ten. A chain of more
// than 64 groups is not solved to the end, which its sigma covers.
const solvePasses = 64

// Ends of one collective spread by a few µs for small messages (0 to 7 µs over
// the eight V100 of one host) and by 0.13 to 0.34 ms for messages of gigabytes.
const (
	priorFloor   = 4e3         // ns
	priorPerByte = 200e3 / 1e9 // ns per byte
)

func priorSigma(bytes int64) float64 {
	return priorFloor + priorPerByte*float64(max(0, bytes))
}

// settled is the share of the sharpest sigma below which a move is not worth
// another pass.
const settled = 0.01

// solve alternates between the meetings' times and the clocks' offsets, each
// the median of what the others say of it: least absolute deviations, so that a
// late leaver moves nobody.
func (p *problem) solve() {
	enough := math.Inf(1)
	for k := range p.rows {
		enough = min(enough, settled*p.rows[k].sigma)
	}
	for range solvePasses {
		p.placeRows()
		moved := 0.0
		for i := range p.theta {
			moved = max(moved, p.placeClock(i))
		}
		p.pinReferences()
		if moved < enough {
			break
		}
	}
	p.placeRows()
}

func (p *problem) placeRows() {
	for k := range p.rows {
		ends := p.ends[:0]
		for _, m := range p.rows[k].member {
			ends = append(ends, m.exit+p.theta[m.clock])
		}
		p.ends = ends
		slices.Sort(ends)
		p.rows[k].at = stats.Median(ends)
	}
}

func (p *problem) placeClock(i int) float64 {
	wants := p.wants[:0]
	for _, at := range p.byMem[i] {
		r := &p.rows[at.row]
		wants = append(wants, stats.Weighted{Value: r.at - r.member[at.member].exit, Weight: 1 / (r.sigma * r.sigma)})
	}
	p.wants = wants
	if len(wants) == 0 {
		return 0
	}
	next := stats.WeightedMedian(wants)
	moved := math.Abs(next - p.theta[i])
	p.theta[i] = next
	return moved
}

func (p *problem) pinReferences() {
	for i := len(p.theta) - 1; i >= 0; i-- {
		p.theta[i] -= p.theta[p.group[i]]
	}
}

// learnSigmas replaces the prior spread of each class by the observed one where
// that is larger: a prior must not claim more than the data show.
func (p *problem) learnSigmas() {
	for c, v := range p.apart {
		p.apart[c] = v[:0]
	}
	for k := range p.rows {
		r := &p.rows[k]
		v := p.apart[r.class]
		for _, m := range r.member {
			v = append(v, math.Abs(m.exit+p.theta[m.clock]-r.at))
		}
		p.apart[r.class] = v
	}
	spread := make(map[class]float64, len(p.apart))
	for c, v := range p.apart {
		if len(v) == 0 {
			delete(p.apart, c)
			continue
		}
		slices.Sort(v)
		spread[c] = stats.MADToSigma * stats.Median(v)
	}
	for k := range p.rows {
		r := &p.rows[k]
		r.sigma = max(r.sigma, spread[r.class])
	}
}

func (p *problem) offsets(opt Options, out []Offset) []Offset {
	conflicts := p.hard.conflicts(len(p.names))
	for i, name := range p.names {
		o := Offset{
			Clock: name, Reference: p.names[p.group[i]], Meetings: len(p.byMem[i]),
			Estimate: time.Duration(math.Round(p.theta[i])), Sigma: time.Duration(p.sigma(i)),
		}
		o.Lower, o.Upper, o.Bounded = p.hard.interval(p.group[i], i)
		o.Conflict = conflicts[i]
		if o.Bounded && o.Lower > o.Upper {
			o.Lower, o.Upper, o.Bounded = 0, 0, false
		}
		if !opt.Off {
			o.Value = o.applied()
		}
		out = append(out, o)
	}
	return out
}

// systematicShare is the part of a class's spread that no averaging removes:
// the order in which ranks leave a ring is not random.
const systematicShare = 0.5

func (p *problem) sigma(i int) float64 {
	if i == p.group[i] || len(p.byMem[i]) == 0 {
		return 0
	}
	best := math.Inf(1)
	for _, at := range p.byMem[i] {
		best = min(best, p.rows[at.row].sigma)
	}
	n := float64(len(p.byMem[i]))
	own := best * math.Sqrt(systematicShare*systematicShare+stats.MedianError*stats.MedianError/n)
	return own * math.Sqrt(float64(p.hops[i]))
}

// applied decides what is added to stamps: the estimate where it is
// significant, kept inside the hard interval, which is true where they differ.
func (o Offset) applied() time.Duration {
	v := o.Estimate
	if math.Abs(float64(v)) <= applySigmas*float64(o.Sigma) {
		v = 0
	}
	if o.Bounded {
		v = min(max(v, o.Lower), o.Upper)
	}
	return v
}
