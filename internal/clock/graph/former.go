// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Who sends late tells of clocks as they were. What is told of a clock from before it was
// set holds for another clock than the one that others tell of now, and what is told of
// the step itself is known by then. So it is remembered how long ago clocks were set, by
// the time of all clocks of a component together: the one that was set cannot tell.

const (
	// farLate is from when on an edge is late: those that come at once differ by little more
	// than a window.
	farLate = int64(25e8)
	// aroundStep is how much later than a step an edge must begin that is late: when it was
	// is known as well as edges are split.
	aroundStep = int64(3e9)
)

// past is a component's clocks as they stood in the last solution, and how long before
// its instant some were set.
type past struct {
	stood map[string]stood
	set   map[string]int64
}

// stood is where a clock stood, and for how many solutions in a row all that was new of
// its component was belated: after patience of them that is the time.
type stood struct {
	base   int64
	waited int
}

const patience = 8

// formerLives returns late edges from before one of their clocks was set.
func (p *problem) formerLives() (old []int32) {
	if len(p.s.past.set) == 0 {
		return nil
	}
	advance := p.advances()
	for i := range p.links {
		l := &p.links[i]
		if l.slot < 0 || !p.together(l) {
			continue
		}
		for _, c := range [2]int32{l.src, l.dst} {
			ago, ok := p.setAgo(c, advance)
			begin := aroundStep - ago
			if l.set {
				begin = -aroundStep - ago // it begins with the step
			}
			if s, known := p.standsAt(l, l.other(c), advance); ok && known && s.until < -farLate && s.from < begin {
				old = append(old, l.slot)
				break
			}
		}
	}
	return old
}

// known reports whether a link is late, and tells of a step that one of its clocks is
// known to have made.
func (p *problem) known(l *link) bool {
	if len(p.s.past.set) == 0 {
		return false
	}
	for _, c := range [2]int32{l.src, l.dst} {
		_, set := p.s.past.set[p.s.clocks[c].name]
		if s, ok := p.spanOf(l, l.other(c)); set && ok && s.until < -farLate {
			return true
		}
	}
	return false
}

// standsAt is when a link stands before the instant, as one of its clocks reads: by where
// that clock stood before, as the link itself may have led to where it stands now.
func (p *problem) standsAt(l *link, c int32, advance map[int32]int64) (span, bool) {
	s, ok := p.spanOf(l, c)
	if before, known := p.s.past.stood[p.s.clocks[c].name]; ok && known {
		by := p.base[c] - before.base - advance[p.group[c]]
		s.from, s.until = s.from+by, s.until+by
	}
	return s, ok
}

// belated reports whether both clocks of a link had gone on far beyond it in the last
// solution, as far as they were known. That is nothing new: time does not turn back for it.
func (p *problem) belated(l *link) bool {
	src, okSrc := p.s.past.stood[p.s.clocks[l.src].name]
	dst, okDst := p.s.past.stood[p.s.clocks[l.dst].name]
	half := l.Span / 2
	at, ok := sum(l.At, l.offset)
	if !ok || !okSrc && !okDst || okSrc && src.waited >= patience || okDst && dst.waited >= patience {
		return false
	}
	return (!okSrc || p.behind(l.At+half, src.base)) && (!okDst || p.behind(at+half, dst.base))
}

func (p *problem) behind(at, base int64) bool {
	return at < base-farLate && at > base-p.opt.Horizon.Nanoseconds()
}

// current tells which components have an edge that is not belated.
func (p *problem) current() []bool {
	out := make([]bool, len(p.group))
	for i := range p.links {
		if l := &p.links[i]; p.group[l.src] >= 0 && l.joins() && !p.belated(l) {
			out[p.group[l.src]] = true
		}
	}
	return out
}

// waits tells of which components all new edges are belated.
func (p *problem) waits() []bool {
	out, news := make([]bool, len(p.group)), p.haveNews()
	for i := range p.links {
		if l := &p.links[i]; l.fresh && p.group[l.src] >= 0 && l.joins() {
			out[p.group[l.src]] = !news[p.group[l.src]]
		}
	}
	return out
}

// setAgo is how long before the instant a clock was set, as far as it is remembered.
func (p *problem) setAgo(c int32, advance map[int32]int64) (int64, bool) {
	ago, ok := p.s.past.set[p.s.clocks[c].name]
	return ago + advance[p.group[c]], ok
}

// advances is how far the instant of each component went on since the last solution: as
// far as the middle one of its clocks did.
func (p *problem) advances() map[int32]int64 {
	all := map[int32][]int64{}
	for c := range p.group {
		g := p.group[c]
		if before, ok := p.s.past.stood[p.s.clocks[c].name]; ok && g >= 0 {
			all[g] = append(all[g], p.base[c]-before.base)
		}
	}
	out := make(map[int32]int64, len(all))
	for g, v := range all {
		slices.Sort(v)
		out[g] = max(0, stats.MedianHigh(v))
	}
	return out
}

// remember notes for the next solution where clocks stand, and which were set.
func (p *problem) remember() past {
	advance, horizon := p.advances(), p.opt.Horizon.Nanoseconds()
	out, waits := past{stood: map[string]stood{}, set: map[string]int64{}}, p.waits()
	for c := range p.group {
		name := p.s.clocks[c].name
		if p.group[c] < 0 {
			continue
		}
		now := stood{base: p.base[c]}
		if waits[p.group[c]] {
			now.waited = p.s.past.stood[name].waited + 1
		}
		out.stood[name] = now
		ago, ok := p.setAgo(int32(c), advance)
		if p.set[c] {
			// Nobody tells of what is to come, whatever an edge says.
			if since := max(-p.since[c], -p.opt.Window.Nanoseconds()); !ok || since < ago {
				ago, ok = since, true
			}
		}
		if ok && ago <= horizon {
			out.set[name] = ago
		}
	}
	return out
}
