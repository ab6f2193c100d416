// SPDX-License-Identifier: Apache-2.0

package graph

import queue "container/heap"

// way is how a clock can be placed: by a link to one that is placed.
type way struct {
	clock, link int32
	class       uint8
	covers      bool    // the instant, as all links on the way to the reference do
	variance    float64 // ns², of where the clock would stand
	cost        float64 // the variance, more of what does not cover the instant
}

// The classes of ways. Readings of a clock that was stepped back are there twice, and
// an edge may stand at either: others are placed by the rest first. An edge from
// before what may have been a step comes last.
const (
	steadily uint8 = iota
	beyondStep
	acrossStep
)

// ways are a heap, the best way first.
type ways []way

func (w ways) Len() int      { return len(w) }
func (w ways) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w ways) Less(i, j int) bool {
	a, b := &w[i], &w[j]
	if a.class != b.class {
		return a.class < b.class
	}
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	return a.link < b.link
}
func (w *ways) Push(x any) { *w = append(*w, x.(way)) }
func (w *ways) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// placing places clocks one after the other, each by the way on which least is
// unknown: one wide edge, however new, and whatever it covers, moves nobody of whom
// others know more.
type placing struct {
	p        *problem
	placed   []bool
	hung     []bool
	variance []float64
	ways     ways
	order    []way // of those that hang
}

// hangingCosts is how much better, in variance, a clock must be known beside the
// instant than at it to be left out of what is solved together: two sigmas.
const hangingCosts = 4

func (p *problem) newPlacing() *placing {
	n := len(p.group)
	p.told = make([]bool, n)
	h := &placing{p: p, placed: make([]bool, n), hung: make([]bool, n), variance: make([]float64, n)}
	for i := range p.links {
		if l := &p.links[i]; l.set && l.fresh {
			p.told[l.src], p.told[l.dst] = true, true
		}
	}
	return h
}

// run places all clocks that links lead to from the references.
func (h *placing) run() {
	p := h.p
	for g, r := range p.reference {
		if r >= 0 {
			h.placed[r], p.valid[r] = true, p.window[g]
			h.around(r)
		}
	}
	for len(h.ways) > 0 {
		w := queue.Pop(&h.ways).(way)
		if h.placed[w.clock] || !h.place(w) {
			continue
		}
		h.placed[w.clock], h.variance[w.clock] = true, w.variance
		h.around(w.clock)
	}
}

// covered reports whether a clock stands where all links on the way to it cover the
// instant.
func (h *placing) covered(c int32) bool { return h.placed[c] && !h.hung[c] }

// around notes the ways that lead on from a clock.
func (h *placing) around(o int32) {
	for _, i := range h.p.of(o) {
		l := &h.p.links[i]
		if c := l.other(o); !l.joins() || h.placed[c] || h.p.group[c] != h.p.group[o] {
			continue
		}
		if w, ok := h.way(i, o); ok {
			queue.Push(&h.ways, w)
		}
	}
}

// way tells what is known of a clock by a link that leads on from o.
func (h *placing) way(i, o int32) (way, bool) {
	p, l := h.p, &h.p.links[i]
	s, ok := p.spanOf(l, o)
	if !ok {
		return way{}, false
	}
	w := way{clock: l.other(o), link: i, covers: h.covered(o) && s.holds(0) && !p.twice(l, o), variance: h.variance[o] + square(l.sigma)}
	if p.stepped[o] {
		w.class = beyondStep
	}
	if w.covers {
		w.cost = w.variance
		return w, true
	}
	if h.common(l, o).empty() && p.changed(w.clock, o) {
		w.class = acrossStep
	}
	// Beside its span the frequency may be anything up to MaxDrift.
	w.variance += square(p.opt.MaxDrift*float64(max(0, s.from, -s.until))) / 3
	w.cost = hangingCosts * w.variance
	return w, true
}

// place puts a clock where a way leads.
func (h *placing) place(w way) bool {
	p, l := h.p, &h.p.links[w.link]
	o := l.other(w.clock)
	b, ok := p.across(l, o)
	if !ok {
		return false
	}
	p.base[w.clock] = b
	if w.covers {
		p.valid[w.clock] = p.valid[o]
		return true
	}
	h.hung[w.clock] = true
	h.order = append(h.order, w)
	p.valid[w.clock] = h.common(l, o)
	return true
}

// common is the time that a link has in common with a clock that it leads on from, and
// never where that was stepped: a link beside the instant may be from before it, even if it
// tells of a step, which may be an earlier one.
func (h *placing) common(l *link, o int32) span {
	if s, ok := h.p.spanOf(l, o); ok && !h.p.stepped[o] {
		if s = s.and(h.p.valid[o]); !s.empty() {
			return s
		}
	}
	return never
}

// twice reports whether the reading of c that a link speaks of may have been there before:
// of a clock that was stepped back some are there twice, and what does not tell of the step
// may be from before it.
func (p *problem) twice(l *link, c int32) bool { return p.stepped[c] && !l.set }

// hang finds the links by which those hang that do not cover the instant. Each hangs on
// those that do, or were hung before it.
func (h *placing) hang(used []bool) {
	for c := range h.hung {
		h.placed[c] = h.placed[c] && !h.hung[c]
	}
	for _, w := range h.order {
		h.gather(w, used)
		h.placed[w.clock] = true
	}
}

// gather lets a clock hang by its way and by all links that cover the same time: that
// of its way at which they together leave least unknown. By a way that has no time in
// common with what it leads on from, it hangs alone. It holds nowhere then, but for
// what Growth allows for.
func (h *placing) gather(w way, used []bool) {
	p, c := h.p, w.clock
	o := p.links[w.link].other(c)
	s := h.common(&p.links[w.link], o)
	used[w.link] = true
	p.hangs[c] = []int32{w.link}
	if s.empty() {
		p.valid[c], p.silent[c] = never, p.changed(c, o)
		return
	}
	links, spans, weights := []int32{w.link}, []span{s}, []float64{1 / w.variance}
	for _, i := range p.of(c) {
		l := &p.links[i]
		o := l.other(c)
		if i == w.link || !l.joins() || !h.placed[o] || p.group[o] != p.group[c] || len(links) == mostAsked {
			continue
		}
		t := h.common(l, o)
		if t.and(s).empty() {
			continue
		}
		if other, ok := h.way(i, o); ok {
			links, spans, weights = append(links, i), append(spans, t), append(weights, 1/other.variance)
		}
	}
	at := heaviest(spans, weights)
	for k, t := range spans[1:] {
		if t.holds(at) {
			used[links[k+1]] = true
			p.hangs[c] = append(p.hangs[c], links[k+1])
			s = s.and(t)
		}
	}
	p.valid[c] = s
}

// heaviest is the time within the first span that the greatest weight of all covers,
// the latest of these.
func heaviest(spans []span, weights []float64) (at int64) {
	most := 0.0
	for _, s := range spans {
		t, weight := max(s.from, spans[0].from), 0.0
		for k, o := range spans {
			if o.holds(t) {
				weight += weights[k]
			}
		}
		if weight > most || weight == most && t > at {
			most, at = weight, t
		}
	}
	return at
}

// changed reports whether a clock may have been stepped between an edge and the time
// of the others: where new edges of it, of what it hangs on or of the reference tell of
// a change.
func (p *problem) changed(c, o int32) bool {
	return p.told[c] || p.told[o] || p.told[p.reference[p.group[c]]]
}
