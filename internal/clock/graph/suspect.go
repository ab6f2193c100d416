// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"math"
	"slices"
)

const (
	// fewestWitnesses is of how many neighbours the edges must be part of
	// contradictions before a clock is accused. With two, each of them can be the
	// one that lies.
	fewestWitnesses = 3
	// blameRounds bounds the search for clocks that contradict the others; in each
	// round any number of clocks is suspected.
	blameRounds = 64
	// mostSearches bounds the suspects whose contradictions are followed along the
	// shortest paths: each costs a search of the graph for each of its neighbours.
	mostSearches = 32
	// mostNeighbours bounds of how many neighbours of a suspect contradictions are
	// looked for.
	mostNeighbours = 16
	// mostEvidence bounds what is told of one clock.
	mostEvidence = 8
)

// suspect is a clock that is set aside until it is known whether the rest agrees
// without it.
type suspect struct {
	clock int32
	score float64
	// late: neighbours that were set aside before it count. These may be liars that it only
	// stands between, so that it is not accused where most of its neighbours agree.
	late bool
}

// blame sets aside what makes the hard constraints contradict one another. First
// it removes the clocks with most violated edges until the rest agrees, then it
// follows for each of them what it contradicts: a clock is cut off only if no
// single neighbour is part of all its contradictions. It reports whether anything
// was set aside.
func (p *problem) blame() bool {
	var suspects []suspect
	var dropped []int32
	for i := range p.links {
		l := &p.links[i]
		p.firstViolation[i] = p.violation(l)
		p.firstResidual[i] = l.r - (p.x[l.dst] - p.x[l.src])
	}
	for range blameRounds {
		if p.work.done() {
			return false
		}
		found := p.suspects(false)
		if len(found) == 0 {
			found = p.suspects(true)
		}
		for _, s := range found {
			p.setAside(s.clock, true)
		}
		suspects = append(suspects, found...)
		if len(found) == 0 {
			i := p.worstLink()
			if i < 0 {
				break
			}
			dropped = append(dropped, i)
			p.dropped[i], p.links[i].aside = true, true
			p.turn(i, false)
		}
		p.refit()
		p.potential = rounded(p.x)
		p.cycle = p.cycle[:0]
		if p.net.settle(p.potential, &p.cycle) {
			p.try(suspects)
			p.tryLinks(dropped)
			return len(p.pairs) > 0 || slices.Contains(p.cut, true)
		}
	}
	return false
}

// turn switches the arcs of a link.
func (p *problem) turn(i int32, on bool) {
	l := &p.links[i]
	for _, c := range [2]int32{l.src, l.dst} {
		for _, a := range p.net.outOf(c) {
			if p.net.link[a] == i {
				p.net.off[a] = !on
			}
		}
	}
}

// setAside takes the links of a clock out, or back in. Links that were left out
// for themselves stay out.
func (p *problem) setAside(c int32, aside bool) {
	p.away[c] = aside
	for _, i := range p.of(c) {
		l := &p.links[i]
		if p.left[i] || p.dropped[i] || p.away[l.other(c)] {
			continue
		}
		l.aside = aside
		p.turn(i, !aside)
	}
}

// violation is by how much the solution leaves a link's bounds.
func (p *problem) violation(l *link) int64 {
	x := int64(math.Round(p.x[l.dst] - p.x[l.src]))
	switch {
	case l.lo != noLo && x < l.lo:
		return l.lo - x
	case l.hi != noHi && x > l.hi:
		return x - l.hi
	}
	return 0
}

// suspects returns clocks with violated edges to two neighbours or more, none of
// them next to another: those whose share of violated neighbours is highest. Neighbours that
// were set aside before it count too, if asked for, by what was violated at first: they
// may be there only for what this one says of them.
func (p *problem) suspects(first bool) []suspect {
	votes, seen, still := map[int32]int{}, map[[2]int32]bool{}, map[int32]bool{}
	for i := range p.links {
		l := &p.links[i]
		pair := pairOf(l.src, l.dst)
		before := first && p.wentAside(int32(i)) && p.firstViolation[i] > 0
		if !p.together(l) || seen[pair] || !before && (l.aside || p.violation(l) <= 0) {
			continue
		}
		seen[pair] = true
		for _, c := range [2]int32{l.src, l.dst} {
			if !p.away[c] {
				votes[c]++
				still[c] = still[c] || !before
			}
		}
	}
	var found []suspect
	for c, v := range votes {
		if n := p.neighbours(c, first); v >= 2 && still[c] && n >= fewestWitnesses {
			found = append(found, suspect{c, float64(v*v) / float64(n), first})
		}
	}
	slices.SortFunc(found, func(a, b suspect) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.clock, b.clock))
	})
	blocked := map[int32]bool{}
	return slices.DeleteFunc(found, func(s suspect) bool {
		if blocked[s.clock] {
			return true
		}
		for _, i := range p.of(s.clock) {
			blocked[p.links[i].other(s.clock)] = true
		}
		return false
	})
}

// wentAside reports whether a link takes no part only because one of its clocks was set
// aside.
func (p *problem) wentAside(i int32) bool {
	l := &p.links[i]
	return l.aside && !p.left[i] && !p.dropped[i] && (p.away[l.src] || p.away[l.dst]) && !p.cut[l.src] && !p.cut[l.dst]
}

// neighbours counts the clocks with which a clock shares links that take part, or that did
// at first.
func (p *problem) neighbours(c int32, first bool) int {
	seen := make(map[int32]struct{}, len(p.of(c)))
	for _, i := range p.of(c) {
		if !p.links[i].aside || first && p.wentAside(i) {
			seen[p.links[i].other(c)] = struct{}{}
		}
	}
	return len(seen)
}

// worstLink is the link that is violated most, in widths of its bounds, or else
// the one of the contradiction that deviates most; -1 where there is none.
func (p *problem) worstLink() int32 {
	worst, most := int32(-1), 0.0
	for i := range p.links {
		l := &p.links[i]
		if l.aside || !p.together(l) {
			continue
		}
		if v := float64(p.violation(l)); v > 0 && v/p.scale(l) > most {
			worst, most = int32(i), v/p.scale(l)
		}
	}
	if worst >= 0 {
		return worst
	}
	for _, a := range p.cycle {
		i := p.net.link[a]
		l := &p.links[i]
		if v := math.Abs(l.r-(p.x[l.dst]-p.x[l.src])) / p.scale(l); !l.aside && (worst < 0 || v > most) {
			worst, most = i, v
		}
	}
	return worst
}

func (p *problem) scale(l *link) float64 {
	if l.lo == noLo || l.hi == noHi {
		return max(1, l.sigma)
	}
	return max(1, float64(l.hi-l.lo))
}

// conflict is a contradiction of a clock with two of its neighbours, or with one
// in two ways: the path from it to the first, on to the second and back is shorter
// than nothing.
type conflict struct {
	a, b   int32
	excess int64
}

// try decides on every suspect, the least suspected first, so that those who only
// met liars come back before these are judged.
func (p *problem) try(suspects []suspect) {
	slices.SortStableFunc(suspects, func(a, b suspect) int { return cmp.Compare(a.score, b.score) })
	p.viaThere, p.viaBack = p.viaReferences()
	p.searches = 0
	for _, s := range suspects {
		conflicts := p.conflicts(s.clock)
		odd := map[int32]int64(nil)
		if s.late {
			odd = p.outnumbered(s.clock, conflicts)
		}
		if odd == nil && p.accuse(s.clock, conflicts) {
			continue
		}
		if odd == nil {
			odd = p.odd(s.clock, conflicts)
		}
		p.leaveOut(s.clock, odd)
		p.takeBack(s.clock)
	}
}

// viaReferences are the distances from the references and to them, of the clocks
// that are not set aside. What comes back later only makes them shorter.
func (p *problem) viaReferences() (there, back []int64) {
	refs := slices.DeleteFunc(p.references(), func(r int32) bool { return p.away[r] })
	return p.net.distances(refs, p.potential, false), p.net.distances(refs, p.potential, true)
}

// takeBack puts a clock as late as its neighbours allow, so that few of them have
// to follow. Where not all that it contradicts was found, all its edges stay out.
func (p *problem) takeBack(c int32) {
	p.setAside(c, false)
	was := slices.Clone(p.potential)
	latest := int64(noHi)
	for _, a := range p.net.into(c) {
		if !p.net.off[a] {
			latest = min(latest, p.potential[p.net.from[a]]+p.net.weight[a])
		}
	}
	if latest != noHi {
		p.potential[c] = latest
	}
	if p.net.settle(p.potential, nil) {
		return
	}
	p.potential = was
	for _, i := range p.of(c) {
		p.leave(i, p.firstViolation[i])
	}
}

// conflicts follows paths of the rest between the neighbours of a clock that is set
// aside: first those through the reference, which cost nothing, and only where they
// do not suffice to accuse it the shortest ones.
func (p *problem) conflicts(c int32) []conflict {
	out, in := p.arms(c)
	found := around(out, in, func(j int32) func(k int32) int64 {
		return func(k int32) int64 {
			if j == k {
				return 0
			}
			if p.viaBack[j] == noHi || p.viaThere[k] == noHi {
				return noHi
			}
			return p.viaBack[j] + p.viaThere[k]
		}
	})
	if p.guilty(c, witnesses(found), found) || p.searches >= mostSearches {
		return found
	}
	if p.work.done() {
		return found
	}
	p.searches++
	return around(out, in, func(j int32) func(k int32) int64 {
		dist := p.net.distancesTo(j, p.potential, len(in), func(k int32) bool { _, ok := in[k]; return ok })
		return func(k int32) int64 { return dist[k] }
	})
}

// arms are the clock's own constraints, to its neighbours and from them.
func (p *problem) arms(c int32) (out, in map[int32]int64) {
	out, in = map[int32]int64{}, map[int32]int64{}
	kept := p.extremes(c)
	for _, a := range p.net.outOf(c) {
		if o := p.net.to[a]; kept[o] && p.reachable(a, o) {
			out[o] = least(out, o, p.net.weight[a])
		}
	}
	for _, a := range p.net.into(c) {
		if o := p.net.from[a]; kept[o] && p.reachable(a, o) {
			in[o] = least(in, o, p.net.weight[a])
		}
	}
	return out, in
}

// extremes are the neighbours that put a clock earliest and latest.
func (p *problem) extremes(c int32) map[int32]bool {
	links := slices.Clone(p.of(c))
	slices.SortStableFunc(links, func(a, b int32) int { return cmp.Compare(p.pull(a, c), p.pull(b, c)) })
	kept := map[int32]bool{}
	for k := 0; k < len(links)-k && len(kept) < mostNeighbours; k++ {
		kept[p.links[links[k]].other(c)] = true
		kept[p.links[links[len(links)-1-k]].other(c)] = true
	}
	return kept
}

// pull is by how much a link wants its clock c later than the first fit had it.
func (p *problem) pull(i, c int32) float64 {
	if p.links[i].dst == c {
		return p.firstResidual[i]
	}
	return -p.firstResidual[i]
}

// around finds the ways out of a clock and back to it that are shorter than
// nothing.
func around(out, in map[int32]int64, from func(j int32) func(k int32) int64) (found []conflict) {
	for _, j := range sortedKeys(out) {
		to := from(j)
		for _, k := range sortedKeys(in) {
			d := to(k)
			if d == noHi {
				continue
			}
			if round := out[j] + d + in[k]; round < 0 {
				found = append(found, conflict{j, k, -round})
			}
		}
	}
	return found
}

// reachable reports whether an arc of a clock that is set aside leads to one that
// is not.
func (p *problem) reachable(a, other int32) bool {
	i := p.net.link[a]
	return !p.left[i] && !p.dropped[i] && !p.away[other]
}

func least(m map[int32]int64, key int32, v int64) int64 {
	if old, ok := m[key]; ok {
		return min(old, v)
	}
	return v
}

func sortedKeys(m map[int32]int64) []int32 {
	keys := make([]int32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// leaveOut drops a clock's edges with some neighbours, by which it contradicts others.
func (p *problem) leaveOut(c int32, with map[int32]int64) {
	for _, i := range p.of(c) {
		if excess, ok := with[p.links[i].other(c)]; ok {
			p.leave(i, excess)
		}
	}
}

// violationWith is by how much the clock's edges with w leave their bounds where
// its other edges put it.
func (p *problem) violationWith(c, w int32) int64 {
	var most int64
	for _, i := range p.of(c) {
		if l := &p.links[i]; l.other(c) == w {
			most = max(most, p.firstViolation[i])
		}
	}
	return most
}

// leave leaves one link out for itself, and names its clocks.
func (p *problem) leave(i int32, excess int64) {
	if p.left[i] {
		return
	}
	l := &p.links[i]
	p.left[i], l.aside = true, true
	p.turn(i, false)
	p.pairs = append(p.pairs, Contradiction{A: l.Src, B: l.Dst, Source: l.Source, Excess: excess})
}

// tryLinks takes back what was dropped and contradicts nothing any more.
func (p *problem) tryLinks(dropped []int32) {
	for _, i := range dropped {
		l := &p.links[i]
		p.dropped[i] = false
		if p.left[i] || p.away[l.src] || p.away[l.dst] {
			continue
		}
		p.turn(i, true)
		was := slices.Clone(p.potential)
		if p.net.settle(p.potential, nil) {
			l.aside = false
			continue
		}
		p.potential = was
		p.leave(i, p.violation(l))
	}
}
