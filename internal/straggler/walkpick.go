// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
)

// A step of many thousand ranks is too large for a graph of all its operations, and a
// path passes few of them. So the path is sought over the meetings first, and the graph
// holds the ranks that it passes, those that came before them, and peers to compare them
// with. What the step would be without one of them is not to be told from that.

const (
	// pickedPeers is how many ranks of a role are compared with one on the path: their
	// median is then within a fifth of their spread of that of all.
	pickedPeers = 32
	// pickedBefore is how many of a rank's meetings before one on the path are followed:
	// of collectives that run beside computing, another one than the last may decide.
	pickedBefore = 4
)

// picker chooses ranks.
type picker struct {
	views    []*rankView
	meetings []*meeting
	of       [][]int32 // meetings of each view, by their exits
	keep     []bool
	room     int // operations that may still be taken
}

// onPath returns which views take part in a graph of at most budget operations.
func onPath(rec *record, views []*rankView, meetings []*meeting, budget int) []bool {
	p := picker{views: views, meetings: meetings, of: make([][]int32, len(views)), keep: make([]bool, len(views)), room: budget}
	for k, m := range meetings {
		for _, party := range m.parties {
			p.of[party.at.index] = append(p.of[party.at.index], int32(k))
		}
	}
	last := 0
	for i := range rec.ranks {
		if r := &rec.ranks[i]; r.met && (!rec.ranks[last].met || r.end > rec.ranks[last].end) {
			last = i
		}
	}
	p.follow(last, rec.ranks[last].end)
	p.peers()
	return p.keep
}

// take adds a rank, where there is room for it.
func (p *picker) take(i int) bool {
	if p.keep[i] {
		return true
	}
	if n := p.views[i].size(); n <= p.room {
		p.room -= n
		p.keep[i] = true
	}
	return p.keep[i]
}

// follow walks back over the meetings, from a rank at a time.
func (p *picker) follow(i int, at int64) {
	for hops := 0; hops < len(p.meetings) && p.take(i); hops++ {
		next, entered := -1, at
		for n, k := range p.before(i, at) {
			m := p.meetings[k]
			late := m.parties[m.last].at.index
			p.take(late)
			p.take(m.second())
			if n == 0 && m.arrived < at {
				next, entered = late, m.arrived
			}
		}
		if next < 0 {
			return
		}
		i, at = next, entered
	}
}

// before returns the attributed meetings that a rank left last before a time, the latest
// first.
func (p *picker) before(i int, at int64) []int32 {
	type left struct {
		exit int64
		k    int32
	}
	var out []left
	for _, k := range p.of[i] {
		m := p.meetings[k]
		if !m.attributed {
			continue
		}
		n, _ := slices.BinarySearchFunc(m.parties, i, func(q party, i int) int { return cmp.Compare(q.at.index, i) })
		if n < len(m.parties) && m.exit[n] <= at && m.arrived < at {
			out = append(out, left{m.exit[n], k})
		}
	}
	slices.SortFunc(out, func(a, b left) int { return cmp.Or(cmp.Compare(b.exit, a.exit), cmp.Compare(a.k, b.k)) })
	found := make([]int32, 0, pickedBefore)
	for _, l := range out[:min(len(out), pickedBefore)] {
		found = append(found, l.k)
	}
	return found
}

// second returns the view of who came last but one.
func (m *meeting) second() int {
	best := -1
	for n := range m.parties {
		if n != m.last && (best < 0 || m.enter[n] > m.enter[best]) {
			best = n
		}
	}
	return m.parties[best].at.index
}

// peers adds ranks of the roles that were taken, spread over all of them.
func (p *picker) peers() {
	roles := map[role][]int{}
	for i, v := range p.views {
		roles[v.role] = append(roles[v.role], i)
	}
	wanted := map[role]bool{}
	for i, v := range p.views {
		if !p.keep[i] || wanted[v.role] {
			continue
		}
		wanted[v.role] = true
		of := roles[v.role]
		for n := range min(pickedPeers, len(of)) {
			p.take(of[n*len(of)/min(pickedPeers, len(of))])
		}
	}
}
