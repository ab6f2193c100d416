// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// span is a time relative to the instant of a component, in ns.
type span struct{ from, until int64 }

func (s span) and(o span) span { return span{max(s.from, o.from), min(s.until, o.until)} }

func (s span) empty() bool { return s.from > s.until }

func (s span) holds(t int64) bool { return s.from <= t && t <= s.until }

var never = span{1, 0}

// spanOf is when a link's bounds hold, seen from one of its clocks, whose base must
// be known; false where it is out of range. What daemons say of their clock counts for
// half a window to either side.
func (p *problem) spanOf(l *link, c int32) (span, bool) {
	at := l.At
	if c == l.dst {
		v, ok := sum(l.At, l.offset)
		if !ok {
			return never, false
		}
		at = v
	}
	lag, half := at-p.base[c], l.Span/2
	if l.Source == model.EdgeChrony || l.Source == model.EdgePTP {
		half = p.opt.Window.Nanoseconds() / 2
	}
	if !near(lag) {
		return never, false
	}
	return span{lag - half, lag + half}, true
}

// instants chooses, for each component, a time that most of its new edges cover, and
// edges of its reference with them; where there are several such times, the middle
// of the longest. lags are relative to a first guess.
func (p *problem) instants(news []bool, reached []bool) []int64 {
	type ends struct{ from, until []int64 }
	all, own, current := make([]ends, len(p.group)), make([]ends, len(p.group)), p.current()
	for i := range p.links {
		l := &p.links[i]
		g := p.group[l.src]
		if g < 0 || !l.joins() || !reached[l.src] || (!l.fresh && news[g]) || current[g] && p.belated(l) {
			continue
		}
		s, ok := p.spanOf(l, l.src)
		if !ok {
			continue
		}
		all[g].from, all[g].until = append(all[g].from, s.from), append(all[g].until, s.until)
		if r := p.reference[g]; l.src == r || l.dst == r {
			own[g].from, own[g].until = append(own[g].from, s.from), append(own[g].until, s.until)
		}
	}
	out := make([]int64, len(p.group))
	for g := range all {
		if len(all[g].from) > 0 {
			out[g] = mostCovered(all[g].from, all[g].until, own[g].from, own[g].until)
		}
	}
	return out
}

// mostCovered is the middle of the longest time that most of all spans cover, of
// those that at least half as many of own cover as any time does.
func mostCovered(from, until, ownFrom, ownUntil []int64) int64 {
	for _, v := range [][]int64{from, until, ownFrom, ownUntil} {
		slices.Sort(v)
	}
	covering := func(from, until []int64, t int64) int {
		begun, _ := slices.BinarySearch(from, t+1)
		ended, _ := slices.BinarySearch(until, t)
		return begun - ended
	}
	least := 0
	for _, t := range ownFrom {
		least = max(least, covering(ownFrom, ownUntil, t))
	}
	best, at, length := -1, int64(0), int64(0)
	for i, t := range from {
		if i > 0 && from[i-1] == t || 2*covering(ownFrom, ownUntil, t) < least {
			continue
		}
		n := covering(from, until, t)
		// It is covered as well until the next one begins or the first one ends.
		next, _ := slices.BinarySearch(until, t)
		end := until[next]
		if j, _ := slices.BinarySearch(from, t+1); j < len(from) {
			end = min(end, from[j])
		}
		if n > best || n == best && end-t > length {
			best, at, length = n, t+(end-t)/2, end-t
		}
	}
	return at
}

// align decides which links take part. Bounds of edges that hold at different times
// cannot be joined: between them a clock may have been stepped. So a clock is placed
// by links that cover the instant where a path of such links leads to it. All others
// hang on these, by links that cover one time, and nothing rests on them. What covers
// neither takes no part, and accuses nobody.
func (p *problem) align() {
	n := len(p.group)
	p.hangs, p.valid, p.silent = make([][]int32, n), make([]span, n), make([]bool, n)
	used := make([]bool, len(p.links))
	h := p.newPlacing()
	h.run()
	for i := range p.links {
		l := &p.links[i]
		used[i] = p.together(l) && h.covered(l.src) && h.covered(l.dst) && p.covers(l, l.src) && (!l.estimated || p.covers(l, l.dst))
	}
	h.hang(used)
	for i := range p.links {
		l := &p.links[i]
		if !l.aside && p.together(l) && !used[i] {
			p.left[i], l.aside = true, true
		}
	}
}

func (p *problem) covers(l *link, c int32) bool {
	s, ok := p.spanOf(l, c)
	return ok && s.holds(0)
}

// boundHanging bounds the clocks that hang on others, in the order in which they
// were hung. Where their links contradict one another nothing is said.
func (p *problem) boundHanging() {
	done := make([]bool, len(p.group))
	for c := range p.group {
		p.boundHung(int32(c), done)
	}
}

func (p *problem) boundHung(c int32, done []bool) {
	if done[c] || p.hangs[c] == nil {
		return
	}
	done[c] = true
	lo, hi := int64(noLo), int64(noHi)
	for _, i := range p.hangs[c] {
		l := &p.links[i]
		o := l.other(c)
		p.boundHung(o, done)
		if l.aside || p.lower[o] == noLo || p.upper[o] == noHi {
			continue
		}
		down, up := l.lo, l.hi // of x[dst]-x[src]
		if c == l.src {
			down, up = noLo, noHi
			if l.hi != noHi {
				down = -l.hi
			}
			if l.lo != noLo {
				up = -l.lo
			}
		}
		// As in loosen: the link speaks of where both bases are.
		slack := 1 + int64(math.Ceil(2*l.rate*p.halfWidth(o)))
		if down != noLo {
			lo = max(lo, p.lower[o]+down-slack)
		}
		if up != noHi {
			hi = min(hi, p.upper[o]+up+slack)
		}
	}
	p.silent[c] = p.silent[c] || lo > hi
	if lo == noLo || hi == noHi || p.silent[c] {
		lo, hi = noLo, noHi
	}
	p.lower[c], p.upper[c] = lo, hi
}

// validity narrows down when each clock's bounds hold: while all links on the paths
// do that they rest on. Where that leaves no time, and new edges tell of a change, it came
// in between, and nothing is said.
func (p *problem) validity(viaUpper, viaLower []int32) {
	for _, via := range [][]int32{viaUpper, viaLower} {
		known := make([]bool, len(p.group))
		on := make([]span, len(p.group))
		for c := range p.group {
			if p.group[c] >= 0 && p.hangs[c] == nil {
				p.valid[c] = p.valid[c].and(p.along(int32(c), via, on, known))
			}
		}
	}
	// What hangs on a clock holds while that does.
	done := make([]bool, len(p.group))
	for c := range p.group {
		p.narrow(int32(c), done)
	}
}

func (p *problem) narrow(c int32, done []bool) {
	if done[c] || p.hangs[c] == nil {
		return
	}
	done[c] = true
	for _, i := range p.hangs[c] {
		o := p.links[i].other(c)
		p.narrow(o, done)
		if p.valid[c] = p.valid[c].and(p.valid[o]); p.silent[o] || p.valid[c].empty() && p.changed(c, o) {
			p.silent[c] = true
		}
	}
	if p.silent[c] {
		p.lower[c], p.upper[c] = noLo, noHi
	}
}

// along is when all links on the path to c hold.
func (p *problem) along(c int32, via []int32, on []span, known []bool) span {
	var path []int32
	at := c
	for !known[at] && via[at] >= 0 {
		path = append(path, at)
		at = p.links[p.net.link[via[at]]].other(at)
	}
	if !known[at] {
		known[at], on[at] = true, p.window[p.group[at]]
	}
	for i := len(path) - 1; i >= 0; i-- {
		l := &p.links[p.net.link[via[path[i]]]]
		s, ok := p.spanOf(l, l.src)
		if !ok {
			s = never
		}
		known[path[i]], on[path[i]] = true, s.and(on[at])
		at = path[i]
	}
	return on[c]
}

// hanging reports whether a clock of the link hangs on the other by it.
func (p *problem) hanging(l *link) bool { return p.hangs[l.src] != nil || p.hangs[l.dst] != nil }

func filled32(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = -1
	}
	return out
}
