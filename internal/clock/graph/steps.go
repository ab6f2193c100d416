// SPDX-License-Identifier: Apache-2.0

package graph

// findSteps tells which clocks were stepped, and when. An edge that says so does
// not say which of its two clocks it was: the one that more clocks say it of; else the
// one of which a smaller share of other edges from after the step knows nothing of it;
// either where that is the same.
func (p *problem) findSteps() {
	n := len(p.group)
	p.stepped, p.since, p.sure, p.set = make([]bool, n), make([]int64, n), make([]bool, n), make([]bool, n)
	p.either = map[[2]int32]int64{}
	told := p.tellers()
	for i := range p.links {
		l := &p.links[i]
		if !p.tells(l) {
			continue
		}
		begin := p.lag(l) - l.Span/2
		src, dst := 1/float64(told[l.src]), 1/float64(told[l.dst])
		if src == dst {
			src, dst = p.steadiness(l.src, l, begin), p.steadiness(l.dst, l, begin)
		}
		if src <= dst {
			p.noteStep(l, l.src, begin, src < dst)
		}
		if dst <= src {
			p.noteStep(l, l.dst, begin, dst < src)
		}
		if src == dst {
			p.either[pairOf(l.src, l.dst)] = begin
		}
	}
}

// tells reports whether a link tells of a step, and first of all.
func (p *problem) tells(l *link) bool { return l.set && l.fresh && p.together(l) && !p.known(l) }

// tellers counts the clocks of which edges tell that either of both was stepped: new ones,
// and those that told of it lately.
func (p *problem) tellers() []int {
	told := make([]int, len(p.group))
	seen := map[[2]int32]bool{}
	for i := range p.links {
		l := &p.links[i]
		if pair := pairOf(l.src, l.dst); (p.tells(l) || l.jumped && p.together(l)) && !seen[pair] {
			seen[pair] = true
			told[l.src]++
			told[l.dst]++
		}
	}
	return told
}

func (p *problem) noteStep(l *link, c int32, begin int64, sure bool) {
	p.sure[c] = p.sure[c] || sure
	p.set[c] = p.set[c] || sure && l.jumped
	if !p.stepped[c] || begin > p.since[c] {
		p.stepped[c], p.since[c] = true, begin
	}
}

// mostAsked bounds how many edges of a clock are asked about one step.
const mostAsked = 64

// steadiness is the share of a clock's new edges with others than the one of l
// that go on after the step and do not tell of one.
func (p *problem) steadiness(c int32, l *link, begin int64) float64 {
	steady, all := 0.0, 1.0 // l itself
	links := p.of(c)
	for _, i := range links[:min(len(links), mostAsked)] {
		o := &p.links[i]
		if o.other(c) == l.other(c) || !o.fresh || p.goesOn(o) <= begin {
			continue
		}
		all++
		if !o.Stepped && !o.jumped {
			steady++
		}
	}
	return steady / all
}

// goesOn is until when a link tells of its clocks. One of traces tells little of its end,
// as few messages do.
func (p *problem) goesOn(l *link) int64 {
	if ofTraces(l.Source) {
		return p.lag(l)
	}
	return p.lag(l) + l.Span/2
}

// beforeSteps returns edges of stepped clocks that ended before the step: the clock
// is another one now. Where it may have been either of two clocks, those between both
// are; what else is known of them keeps the one that was not stepped in its place. A
// clock that was set back shows the same readings twice: of its edges only those stay
// that have seen it.
func (p *problem) beforeSteps() (old []int32) {
	for i := range p.links {
		l := &p.links[i]
		if l.slot < 0 || l.set || !p.together(l) {
			continue
		}
		end := p.lag(l) + l.Span/2
		if (p.set[l.src] || p.set[l.dst]) && !l.jumped {
			old = append(old, l.slot)
			continue
		}
		begin, either := p.either[pairOf(l.src, l.dst)]
		if p.endedBefore(l.src, end) || p.endedBefore(l.dst, end) || either && end <= begin {
			old = append(old, l.slot)
		}
	}
	return old
}

func (p *problem) endedBefore(c int32, end int64) bool { return p.sure[c] && end <= p.since[c] }
