package graph

// findSteps tells which clocks were stepped, and when. An edge that says so does
// not say which of its two clocks it was: the one of which a smaller share of
// other edges from after the step knows nothing of it; both where that is the same.
func (p *problem) findSteps() {
	n := len(p.group)
	p.stepped, p.since = make([]bool, n), make([]int64, n)
	for i := range p.links {
		l := &p.links[i]
		if !l.Stepped || !l.fresh || !p.together(l) {
			continue
		}
		begin := p.lag(l) - l.Span/2
		src, dst := p.steadiness(l.src, l, begin), p.steadiness(l.dst, l, begin)
		if src <= dst {
			p.noteStep(l.src, begin)
		}
		if dst <= src {
			p.noteStep(l.dst, begin)
		}
	}
}

func (p *problem) noteStep(c int32, begin int64) {
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
		if o.other(c) == l.other(c) || !o.fresh || p.lag(o)+o.Span/2 <= begin {
			continue
		}
		all++
		if !o.Stepped {
			steady++
		}
	}
	return steady / all
}

// beforeSteps returns edges of stepped clocks that ended before the step: the clock
// is another one now.
func (p *problem) beforeSteps() (old []int32) {
	for i := range p.links {
		l := &p.links[i]
		if l.slot < 0 || l.Stepped || !p.together(l) {
			continue
		}
		end := p.lag(l) + l.Span/2
		if (p.stepped[l.src] && end <= p.since[l.src]) || (p.stepped[l.dst] && end <= p.since[l.dst]) {
			old = append(old, l.slot)
		}
	}
	return old
}
