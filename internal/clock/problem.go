// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
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

// problem is what is solved. What it fills is used again for the next one.
type problem struct {
	index map[string]int
	names []string
	rows  []row
	seen  []seen // members of all rows
	of    []int  // the clock of each arrival of all meetings
	group []int
	theta []float64
	byMem [][]place // of each clock
	held  []place   // by all of them
	hard  constraints
	base  int64
	hops  []int // meetings between each clock and its reference
	ends  []float64
	wants []stats.Weighted
	apart map[class][]float64 // scratch of learnSigmas
}

// read takes up what is to be solved.
func (p *problem) read(meetings []Meeting, messages []Message, opt Options) {
	if p.index == nil {
		p.index, p.apart = map[string]int{}, map[class][]float64{}
	}
	clear(p.index)
	p.names, p.rows, p.seen, p.of = p.names[:0], p.rows[:0], p.seen[:0], p.of[:0]
	p.base = firstStamp(meetings, messages)
	for _, c := range opt.Clocks {
		p.clock(c)
	}
	members := 0
	for i := range meetings {
		members += len(meetings[i].Arrivals)
	}
	p.seen, p.of = slices.Grow(p.seen, members), slices.Grow(p.of, members)
	for i := range meetings {
		p.addRow(&meetings[i])
	}
	p.hard.read(p, meetings, messages, float64(cmp.Or(opt.Resolution, DefaultResolution)))
	p.theta = resized(p.theta, len(p.names))
	clear(p.theta)
	p.holdRows()
}

// resized returns room for n values, which are as they were left.
func resized[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }

// holdRows fills the places of each clock.
func (p *problem) holdRows() {
	p.byMem = resized(p.byMem, len(p.names))
	p.hops = resized(p.hops, len(p.names)) // scratch
	clear(p.hops)
	n := 0
	for k := range p.rows {
		n += len(p.rows[k].member)
		for _, m := range p.rows[k].member {
			p.hops[m.clock]++
		}
	}
	p.held = resized(p.held, n)
	at := 0
	for i, n := range p.hops {
		p.byMem[i] = p.held[at : at : at+n]
		at += n
	}
	for k := range p.rows {
		for n, m := range p.rows[k].member {
			p.byMem[m.clock] = append(p.byMem[m.clock], place{k, n})
		}
	}
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

// clocks fills the clocks of a meeting's arrivals. They often follow those before them.
func (p *problem) clocks(m *Meeting) []int {
	from := len(p.of)
	for i := range m.Arrivals {
		if i > 0 && m.Arrivals[i].Clock == m.Arrivals[i-1].Clock {
			p.of = append(p.of, p.of[len(p.of)-1])
			continue
		}
		p.of = append(p.of, p.clock(m.Arrivals[i].Clock))
	}
	return p.of[from:]
}

func (p *problem) addRow(m *Meeting) {
	clocks := p.clocks(m)
	if !m.EndsCoincide {
		return
	}
	r := row{class: class{name: m.Name, scale: bits.Len64(uint64(max(0, m.Bytes))), size: len(m.Arrivals)}}
	r.sigma = priorSigma(m.Bytes)
	from, several := len(p.seen), false
	for i := range m.Arrivals {
		if a := &m.Arrivals[i]; !a.ExitUnknown {
			p.seen = append(p.seen, seen{clock: clocks[i], enter: float64(a.Enter - p.base), exit: float64(a.Exit - p.base)})
			several = several || clocks[i] != p.seen[from].clock
		}
	}
	// One clock alone, however many members it stamps, says nothing of others.
	if several {
		r.member = p.seen[from:len(p.seen):len(p.seen)]
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
	p.group = resized(p.group, len(parent))
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
	p.hops = resized(p.hops, len(p.names))
	clear(p.hops)
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
