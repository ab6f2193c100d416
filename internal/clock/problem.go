package clock

import (
	"math/bits"
	"slices"
)

type seen struct {
	clock int
	enter float64 // ns after the problem's base
	exit  float64
}

type row struct {
	class  class
	at     float64 // when it ended, on the timeline
	sigma  float64
	member []seen
}

// place is one member of one row.
type place struct{ row, member int }

// class groups meetings whose ends can be expected to spread alike.
type class struct {
	name  string
	scale int // log2 of bytes
	size  int
}

type problem struct {
	index map[string]int
	names []string
	rows  []row
	group []int
	theta []float64
	byMem [][]place // of each clock
	hard  *constraints
	base  int64
	hops  []int // meetings between each clock and its reference
	at    []int // scratch, as the next two are
	ends  []float64
	wants []weighted
}

func newProblem(meetings []Meeting, messages []Message, opt Options) *problem {
	p := &problem{index: map[string]int{}, base: firstStamp(meetings, messages)}
	for _, c := range opt.Clocks {
		p.clock(c)
	}
	for i := range meetings {
		p.addRow(&meetings[i])
	}
	res := opt.Resolution
	if res == 0 {
		res = DefaultResolution
	}
	p.hard = newConstraints(p, meetings, messages, float64(res))
	p.theta = make([]float64, len(p.names))
	p.byMem = make([][]place, len(p.names))
	for k := range p.rows {
		for n, m := range p.rows[k].member {
			p.byMem[m.clock] = append(p.byMem[m.clock], place{k, n})
		}
	}
	return p
}

func firstStamp(meetings []Meeting, messages []Message) int64 {
	for i := range meetings {
		if len(meetings[i].Arrivals) > 0 {
			return meetings[i].Arrivals[0].Enter
		}
	}
	if len(messages) > 0 {
		return messages[0].SendStart
	}
	return 0
}

func (p *problem) clock(name string) int {
	if i, ok := p.index[name]; ok {
		return i
	}
	p.index[name] = len(p.names)
	p.names = append(p.names, name)
	return len(p.names) - 1
}

func (p *problem) addRow(m *Meeting) {
	if !m.EndsCoincide {
		for _, a := range m.Arrivals {
			p.clock(a.Clock)
		}
		return
	}
	r := row{class: class{name: m.Name, scale: bits.Len64(uint64(max(0, m.Bytes))), size: len(m.Arrivals)}}
	r.sigma = priorSigma(m.Bytes)
	r.member = make([]seen, 0, len(m.Arrivals))
	for _, a := range m.Arrivals {
		if a.ExitUnknown {
			p.clock(a.Clock)
			continue
		}
		r.member = append(r.member, seen{clock: p.clock(a.Clock), enter: float64(a.Enter - p.base), exit: float64(a.Exit - p.base)})
	}
	// One clock alone, however many members it stamps, says nothing of others.
	if slices.ContainsFunc(r.member, func(m seen) bool { return m.clock != r.member[0].clock }) {
		p.rows = append(p.rows, r)
	}
}

// components labels clocks that meetings connect. A message bounds an offset on
// one side and estimates nothing.
func (p *problem) components() {
	parent := make(forest, len(p.names))
	for i := range parent {
		parent[i] = i
	}
	for k := range p.rows {
		for _, m := range p.rows[k].member[1:] {
			a, b := parent.root(p.rows[k].member[0].clock), parent.root(m.clock)
			// The earliest clock leads, so that it becomes the reference.
			parent[max(a, b)] = min(a, b)
		}
	}
	p.group = make([]int, len(parent))
	for i := range p.group {
		p.group[i] = parent.root(i)
	}
}

// forest is a union-find structure: each element names its parent.
type forest []int

func (f forest) root(i int) int {
	for f[i] != i {
		f[i] = f[f[i]]
		i = f[i]
	}
	return i
}

// countHops fills how many meetings lie between each clock and its reference:
// each adds its own error.
func (p *problem) countHops() {
	p.hops = make([]int, len(p.names))
	var frontier []int
	for i, g := range p.group {
		if i == g {
			frontier = append(frontier, i)
		}
	}
	done := make([]bool, len(p.rows))
	for hop := 1; len(frontier) > 0; hop++ {
		var next []int
		for _, i := range frontier {
			for _, at := range p.byMem[i] {
				if done[at.row] {
					continue
				}
				done[at.row] = true
				for _, m := range p.rows[at.row].member {
					if p.hops[m.clock] == 0 && m.clock != p.group[m.clock] {
						p.hops[m.clock] = hop
						next = append(next, m.clock)
					}
				}
			}
		}
		frontier = next
	}
}
