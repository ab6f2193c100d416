// SPDX-License-Identifier: Apache-2.0

package gpuclock

import "slices"

// Pair is one reading of a device's clock and the host's together.
type Pair struct {
	Host  uint64 // ns, the middle of the reading
	Clock uint64 // ns of the other clock
	Width uint64 // ns that the reading took: it is right within half of it
}

const (
	// maxPairs are kept: some three a second are made while kernels are handed over,
	// so that they reach back over a minute.
	maxPairs = 256
	// settled is after how many readings that agree what was read before a step of
	// the clock is forgotten: kernels that ran before are handed over by then.
	settled = 8
	// slack is how far readings may disagree beyond their widths and the drift.
	slack = 1000
	// maxPairBound is the widest bound, ns: beyond, a stamp says less than how long
	// steps take.
	maxPairBound = 100_000_000
)

// Pairs converts stamps of a clock that is read beside the host's: by the line
// between the two readings around a stamp. Its zero value is ready.
type Pairs struct {
	pairs []Pair // by Clock
	last  Pair   // the latest by Host
	since int    // readings since the clock was stepped
	steps int64
}

// Len is how many readings are kept.
func (p *Pairs) Len() int { return len(p.pairs) }

// Last is the latest reading; the zero value where there is none.
func (p *Pairs) Last() Pair { return p.last }

// Steps is how often the clock was seen to be stepped.
func (p *Pairs) Steps() int64 { return p.steps }

func (p Pair) offset() int64 { return int64(p.Host - p.Clock) }

// disagreement is how far two readings are apart in what they say of the offset,
// beyond their own widths; stepped says that no drift explains it.
func disagreement(a, b Pair) (ns uint64, stepped bool) {
	gap := apart(a.Clock, b.Clock)
	off := apart(uint64(a.offset()), uint64(b.offset()))
	return off, off > a.Width/2+b.Width/2+slack+uint64(maxDrift*float64(gap))
}

// apart is the distance of two numbers that are close to each other in 64 bits.
func apart(a, b uint64) uint64 {
	if d := int64(a - b); d >= 0 {
		return uint64(d)
	}
	return uint64(int64(b - a))
}

// Add takes a reading.
func (p *Pairs) Add(next Pair) {
	i, found := slices.BinarySearchFunc(p.pairs, next.Clock, func(o Pair, at uint64) int {
		if o.Clock < at {
			return -1
		}
		if o.Clock > at {
			return 1
		}
		return 0
	})
	latest := next.Host >= p.last.Host
	switch {
	case found && (latest || next.Width < p.pairs[i].Width):
		p.pairs[i] = next // the clock was set back to it, or the other was wider
	case found:
		return
	default:
		p.insert(i, next)
	}
	if latest {
		p.settle(next)
	}
}

func (p *Pairs) insert(i int, next Pair) {
	if len(p.pairs) >= maxPairs {
		oldest := p.oldest()
		p.pairs = slices.Delete(p.pairs, oldest, oldest+1)
		if oldest < i {
			i--
		}
	}
	p.pairs = slices.Insert(p.pairs, i, next)
}

// settle compares the latest reading with the one before.
func (p *Pairs) settle(next Pair) {
	before := p.last
	p.last = next
	if before == (Pair{}) {
		return
	}
	if _, stepped := disagreement(before, next); stepped {
		p.steps++
		p.since = 0
		return
	}
	if p.since++; p.since == settled && p.steps > 0 {
		p.pairs = slices.DeleteFunc(p.pairs, func(o Pair) bool {
			_, other := disagreement(o, next)
			return other
		})
	}
}

func (p *Pairs) oldest() (at int) {
	for i := range p.pairs {
		if p.pairs[i].Host < p.pairs[at].Host {
			at = i
		}
	}
	return at
}

// Host converts a stamp. bound is the half width of where the host time must lie:
// half the wider reading, and by how much the readings around it disagree, or what a
// drift may come to since the only one. It is false where there is no reading, or none
// near enough to say anything.
func (p *Pairs) Host(stamp uint64) (host, bound uint64, ok bool) {
	if len(p.pairs) == 0 {
		return 0, 0, false
	}
	i, _ := slices.BinarySearchFunc(p.pairs, stamp, func(o Pair, at uint64) int {
		if o.Clock < at {
			return -1
		}
		return 1
	})
	switch {
	case i == 0:
		host, bound = p.beyond(p.pairs[0], stamp)
	case i == len(p.pairs):
		host, bound = p.beyond(p.pairs[i-1], stamp)
	default:
		host, bound = between(p.pairs[i-1], p.pairs[i], stamp)
	}
	return host, bound, bound <= maxPairBound
}

func (p *Pairs) beyond(near Pair, stamp uint64) (host, bound uint64) {
	distance := float64(apart(stamp, near.Clock))
	return stamp + uint64(near.offset()), near.Width/2 + uint64(min(maxDrift*distance, 1e18))
}

// between places a stamp on the line from one reading to the next. Where the clock
// was stepped between them there is no line: it is taken to have gone on with the
// nearer, and may have with the other.
func between(a, b Pair, stamp uint64) (host, bound uint64) {
	off, stepped := disagreement(a, b)
	bound = max(a.Width, b.Width)/2 + min(off, 1<<62)
	if stepped {
		near := a
		if b.Clock-stamp < stamp-a.Clock {
			near = b
		}
		return stamp + uint64(near.offset()), bound
	}
	share := float64(stamp-a.Clock) / float64(b.Clock-a.Clock)
	return stamp + uint64(a.offset()) + uint64(int64(share*float64(b.offset()-a.offset()))), bound
}
