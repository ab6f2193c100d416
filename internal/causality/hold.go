// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// emitted is how a span was given out: whoever comes later is judged by that, and
// not by what is known by then.
type emitted struct {
	Shift, Bound     int64
	Timeline         string
	State            State
	Bounded, Stepped bool
}

func (p *Place) emitted() emitted {
	return emitted{Shift: p.Shift, Bound: p.Bound, Timeline: p.Timeline, State: p.State, Bounded: p.Bounded, Stepped: p.Stepped}
}

// held is a clock in a trace of the batch. Its spans stand where its model puts
// them, or all are moved by one shift, which leaves them among themselves as they
// were stamped.
type held struct {
	clock   *Clock
	spans   []int32
	models  []Place // of the spans
	pairs   []*pairing
	choices []choice
	chosen  int // modelled, or a number of choices
}

// choice is a shift of which some span was given out, or none at all.
type choice struct {
	shift    int64
	timeline string
}

const (
	modelled = -1
	// maxChoices bounds the shifts that are tried on a clock in a trace.
	maxChoices = 8
	// maxPasses bounds how often all are gone through for less that is wrong.
	maxPasses = 8
	// maxLinks bounds how far holding spreads by links to other traces.
	maxLinks = 4
	// maxTogether bounds the clocks of a trace that are tried to be moved by one shift.
	maxTogether = 64
)

// holding finds, for the traces in which a relation would be shown wrong that the
// stamps have right, which clocks are not to be corrected.
type holding struct {
	e      *Engine
	b      *Batch
	traces map[model.TraceID]struct{}
	groups []held
	of     []int32 // group of each span of the batch, -1 none
}

// part is what relations connect, which is a trace as a rule: one does not depend on
// another.
type part struct {
	groups []*held
	pairs  []*pairing
}

// withhold decides which corrections are not applied. What was given out before
// stays; so the spans that come now are left as they came, or are moved like those
// that they belong to, whichever leaves right what the stamps have right.
func (e *Engine) withhold(b *Batch) {
	h := &holding{e: e, b: b, traces: map[model.TraceID]struct{}{}, of: make([]int32, len(b.Spans))}
	h.open()
	h.group()
	for _, p := range h.parts() {
		h.settle(p)
	}
	for i := range h.groups {
		for _, s := range h.groups[i].spans {
			if b.Places[s].State == Withheld {
				e.stats.Withheld++
			}
		}
	}
}

// open gathers the traces that are concerned, and those that links connect to them.
func (h *holding) open() {
	for i := range h.e.pairs {
		if p := &h.e.pairs[i]; p.judged.visible || p.kept() {
			h.traces[p.first.Ref.Trace] = struct{}{}
			h.traces[p.second.Ref.Trace] = struct{}{}
		}
	}
	for range maxLinks {
		before := len(h.traces)
		for i := range h.e.pairs {
			p := &h.e.pairs[i]
			if p.first.Ref.Trace == p.second.Ref.Trace {
				continue
			}
			_, first := h.traces[p.first.Ref.Trace]
			_, second := h.traces[p.second.Ref.Trace]
			if first != second {
				h.traces[p.first.Ref.Trace] = struct{}{}
				h.traces[p.second.Ref.Trace] = struct{}{}
			}
		}
		if len(h.traces) == before {
			return
		}
	}
}

type heldKey struct {
	clock *Clock
	trace model.TraceID
}

func (h *holding) group() {
	h.groups = h.groups[:0]
	byKey := map[heldKey]int32{}
	for i := range h.b.Spans {
		s := &h.b.Spans[i]
		h.of[i] = -1
		if _, ok := h.traces[s.Ref.Trace]; !ok || s.Clock == nil {
			continue
		}
		key := heldKey{s.Clock, s.Ref.Trace}
		g, ok := byKey[key]
		if !ok {
			g = int32(len(h.groups))
			byKey[key] = g
			h.groups = append(h.groups, held{clock: s.Clock, chosen: modelled})
		}
		h.of[i] = g
		h.groups[g].spans = append(h.groups[g].spans, int32(i))
		h.groups[g].models = append(h.groups[g].models, h.b.Places[i])
	}
	for i := range h.e.pairs {
		p := &h.e.pairs[i]
		a, b := h.groupsOf(p)
		if a != nil {
			a.relate(p)
		}
		if b != nil && b != a {
			b.relate(p)
		}
	}
	for i := range h.groups {
		h.groups[i].offer(choice{}, false)
	}
}

func (h *holding) groupsOf(p *pairing) (first, second *held) {
	at := func(span int32) *held {
		if span < 0 || h.of[span] < 0 {
			return nil
		}
		return &h.groups[h.of[span]]
	}
	return at(p.a), at(p.b)
}

func (g *held) relate(p *pairing) {
	g.pairs = append(g.pairs, p)
	if p.was == nil {
		return
	}
	// Spans of one clock compare exactly, as long as they are moved alike.
	g.offer(choice{p.was.Shift, p.was.Timeline}, p.first.Clock == p.second.Clock)
}

func (g *held) offer(c choice, own bool) {
	for _, known := range g.choices {
		if known.shift == c.shift {
			return
		}
	}
	switch {
	case len(g.choices) >= maxChoices:
	case own:
		g.choices = append([]choice{c}, g.choices...)
	default:
		g.choices = append(g.choices, c)
	}
}

// choose moves all spans of a clock in a trace, and judges their relations anew.
func (h *holding) choose(g *held, n int) {
	g.chosen = n
	for i, s := range g.spans {
		p := &h.b.Places[s]
		*p = g.models[i]
		if n == modelled {
			continue
		}
		c := g.choices[n]
		if c.shift == 0 && p.State != Placed {
			continue // it stays where it is anyway
		}
		*p = withheld(&g.models[i], c)
	}
	for _, p := range g.pairs {
		p.judged = h.e.of(h.b, p)
	}
}

// withheld is a place beside that of the clock's model, which its bound reaches to.
func withheld(model *Place, c choice) Place {
	p := Place{State: Withheld, Shift: c.shift}
	p.Timeline = c.timeline
	if (model.State == Placed || model.State == Withheld) && model.Bounded && (c.timeline == "" || c.timeline == model.Timeline) {
		off := c.shift - model.Shift
		p.Timeline, p.Bounded, p.Bound = model.Timeline, true, min(max(off, -off)+model.Bound, mostBound)
	}
	return p
}

// parts are the clocks and relations that are connected.
func (h *holding) parts() []*part {
	root := make([]int32, len(h.groups))
	for i := range root {
		root[i] = int32(i)
	}
	find := func(g int32) int32 {
		for root[g] != g {
			root[g] = root[root[g]]
			g = root[g]
		}
		return g
	}
	ends := func(p *pairing) (first, second int32) {
		first, second = -1, -1
		if p.a >= 0 {
			first = h.of[p.a]
		}
		if p.b >= 0 {
			second = h.of[p.b]
		}
		if first < 0 {
			return second, second
		}
		if second < 0 {
			return first, first
		}
		return first, second
	}
	for i := range h.e.pairs {
		if a, b := ends(&h.e.pairs[i]); a >= 0 {
			root[find(a)] = find(b)
		}
	}
	var out []*part
	of := make([]*part, len(h.groups))
	for i := range h.groups {
		r := find(int32(i))
		if of[r] == nil {
			of[r] = &part{}
			out = append(out, of[r])
		}
		of[r].groups = append(of[r].groups, &h.groups[i])
	}
	for i := range h.e.pairs {
		if a, _ := ends(&h.e.pairs[i]); a >= 0 {
			p := of[find(a)]
			p.pairs = append(p.pairs, &h.e.pairs[i])
		}
	}
	return out
}

// settle finds the choices of one part.
func (h *holding) settle(p *part) {
	h.keep(p)
	kept, left := p.chosen(), h.wrong(p.pairs)
	if left == 0 {
		return
	}
	h.spread(p)
	h.improve(p)
	if h.wrong(p.pairs) > 0 && len(p.groups) <= maxTogether {
		h.together(p)
	}
	if h.wrong(p.pairs) >= left {
		h.restore(p, kept) // what is wrong beside what was given out can as well be where it belongs
	}
	h.widen(p)
}

// widen lets the bounds of spans reach to where their relations are right that no
// choice leaves right. Spans on both sides were given out then, before it could be
// seen that they have to do with each other: a program stamped late and a skew hid it,
// or a model is wrong, and nothing tells which. A bound that leaves both possible is
// what is known.
func (h *holding) widen(p *part) {
	for _, r := range p.pairs {
		x, y := r.out(h.b, r.a), r.out(h.b, r.b)
		if !r.judged.visible || !r.widens(&x, &y) {
			continue
		}
		at := r.b
		if at < 0 {
			at = r.a
		}
		h.b.Places[at].Bound += max(0, r.judged.magnitude-x.Bound-y.Bound)
		h.e.stats.Widened++
		r.judged.class, r.judged.visible = Undecided, false
	}
}

// widens reports whether wider bounds can leave room for a relation: spans of one clock
// compare exactly, and what has no bound has none to be widened.
func (p *pairing) widens(x, y *emitted) bool {
	return p.first.Clock != p.second.Clock && x.Bounded && y.Bounded && x.Timeline == y.Timeline
}

// most is more than the relations of a part, of which bounds leave room for some.
const most = 1 << 32

// wrong counts the relations that would turn; those that wider bounds leave no room for
// count for more than all others.
func (h *holding) wrong(pairs []*pairing) (n int) {
	for _, p := range pairs {
		if !p.judged.visible {
			continue
		}
		if x, y := p.out(h.b, p.a), p.out(h.b, p.b); p.widens(&x, &y) {
			n++
		} else {
			n += most
		}
	}
	return n
}

// keep holds what was held in an earlier batch.
func (h *holding) keep(part *part) {
	for _, p := range part.pairs {
		if !p.kept() {
			continue
		}
		g, other := h.groupsOf(p)
		if g == nil {
			g = other
		}
		for n, c := range g.choices {
			if g.chosen == modelled && c.shift == p.was.Shift {
				h.choose(g, n)
			}
		}
	}
}

// spread takes the correction off both clocks of each relation that would turn, and
// off those beside which these would be wrong then. Each clock is taken off once.
func (h *holding) spread(part *part) {
	for again := true; again; {
		again = false
		for _, p := range part.pairs {
			if !p.judged.visible {
				continue
			}
			a, b := h.groupsOf(p)
			for _, g := range [...]*held{a, b} {
				if g != nil && g.chosen == modelled {
					h.choose(g, h.best(g, 0))
					again = true
				}
			}
		}
	}
}

// best is the choice, of those from a number on, that leaves the least wrong.
func (h *holding) best(g *held, from int) (best int) {
	before, least := g.chosen, 0
	for n := from; n < len(g.choices); n++ {
		h.choose(g, n)
		if wrong := h.wrong(g.pairs); n == from || wrong < least {
			best, least = n, wrong
		}
	}
	h.choose(g, before)
	return best
}

// improve goes through the clocks as long as another choice for one of them leaves
// less wrong.
func (h *holding) improve(p *part) {
	for range maxPasses {
		better := false
		for _, g := range p.groups {
			wrong := h.wrong(g.pairs)
			if wrong == 0 {
				continue
			}
			before := g.chosen
			h.choose(g, h.best(g, modelled))
			if h.wrong(g.pairs) < wrong {
				better = true
			} else {
				h.choose(g, before)
			}
		}
		if !better {
			return
		}
	}
}

// together tries to move all by one shift: what comes in one batch stands then as it
// was stamped.
func (h *holding) together(p *part) {
	least, best := h.wrong(p.pairs), p.chosen()
	var tried []choice
	for _, g := range p.groups {
		for _, c := range g.choices {
			if !slices.Contains(tried, c) && len(tried) < maxChoices {
				tried = append(tried, c)
			}
		}
	}
	for _, c := range tried {
		for _, g := range p.groups {
			h.choose(g, g.numberOf(c))
		}
		h.improve(p)
		if wrong := h.wrong(p.pairs); wrong < least {
			least, best = wrong, p.chosen()
		}
	}
	h.restore(p, best)
}

// numberOf is the number of a choice, which is new where the clock had another.
func (g *held) numberOf(c choice) int {
	n := slices.IndexFunc(g.choices, func(known choice) bool { return known.shift == c.shift })
	if n < 0 {
		n = len(g.choices)
		g.choices = append(g.choices, c)
	}
	return n
}

func (p *part) chosen() []int {
	out := make([]int, len(p.groups))
	for i, g := range p.groups {
		out[i] = g.chosen
	}
	return out
}

func (h *holding) restore(p *part, chosen []int) {
	for i, g := range p.groups {
		if g.chosen != chosen[i] {
			h.choose(g, chosen[i])
		}
	}
}
