// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// accuse cuts a clock off if its contradictions make it guilty.
func (p *problem) accuse(c int32, conflicts []conflict) bool {
	with := witnesses(conflicts)
	if !p.guilty(c, with, conflicts) {
		return false
	}
	p.cut[c] = true
	p.evidence[c] = p.tell(c, with)
	return true
}

// witnesses are the neighbours in contradictions, and by how much at most.
func witnesses(conflicts []conflict) map[int32]int64 {
	with := map[int32]int64{}
	for _, f := range conflicts {
		with[f.a] = max(with[f.a], f.excess)
		with[f.b] = max(with[f.b], f.excess)
	}
	return with
}

// guilty reports whether contradictions involve three neighbours or more and no
// single one of them is part of all. Of a clock that is read together with another
// of its host (source pair) and that contradicts it by the traces of two others,
// the first is not the clock of its spans.
func (p *problem) guilty(c int32, with map[int32]int64, conflicts []conflict) bool {
	if len(with) < fewestWitnesses {
		return false
	}
	for w := range with {
		if inAll(conflicts, w) && !p.spansElsewhere(c, w, with) {
			return false
		}
	}
	return true
}

func inAll(conflicts []conflict, w int32) bool {
	return !slices.ContainsFunc(conflicts, func(f conflict) bool { return f.a != w && f.b != w })
}

// spansElsewhere reports whether a clock hangs on w by pairs read together, and
// its other witnesses know it by traces.
func (p *problem) spansElsewhere(c, w int32, witnesses map[int32]int64) bool {
	for _, i := range p.of(c) {
		l := &p.links[i]
		o := l.other(c)
		if _, ok := witnesses[o]; !ok {
			continue
		}
		if (o == w) != (l.Source == model.EdgePair) || (o != w && !ofTraces(l.Source)) {
			return false
		}
	}
	return true
}

func ofTraces(source string) bool {
	return source == model.EdgeMessage || source == model.EdgeCall || source == model.EdgeCollective
}

func (p *problem) tell(c int32, witnesses map[int32]int64) []Evidence {
	var out []Evidence
	for _, w := range sortedKeys(witnesses) {
		e := Evidence{Other: p.s.clocks[w].name, Excess: witnesses[w]}
		for _, i := range p.of(c) {
			if p.links[i].other(c) == w {
				e.Source = p.links[i].Source
			}
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Evidence) int { return cmp.Compare(b.Excess, a.Excess) })
	return out[:min(len(out), mostEvidence)]
}

// outnumbered are the neighbours that contradict what more than half of a clock's neighbours
// agree on, and by how much; nil where no such half agrees.
func (p *problem) outnumbered(c int32, conflicts []conflict) map[int32]int64 {
	out, in := p.arms(c)
	for o, v := range in {
		out[o] = v
	}
	clash := map[int32]map[int32]int64{}
	for _, f := range conflicts {
		for _, d := range [2][2]int32{{f.a, f.b}, {f.b, f.a}} {
			if clash[d[0]] == nil {
				clash[d[0]] = map[int32]int64{}
			}
			clash[d[0]][d[1]] = max(clash[d[0]][d[1]], f.excess)
		}
	}
	for _, o := range sortedKeys(out) {
		if _, self := clash[o][o]; !self && len(clash[o]) > 0 && 2*(len(out)-len(clash[o])) > len(out) {
			return clash[o]
		}
	}
	return nil
}

// odd are the neighbours whose edges make a clock contradict others although it cannot be
// accused: the one that is part of all contradictions, the one that the solution violates
// most where there are several, or else all that contradict.
func (p *problem) odd(c int32, conflicts []conflict) map[int32]int64 {
	involved := witnesses(conflicts)
	best, most := int32(-1), int64(-1)
	for _, w := range sortedKeys(involved) {
		if v := p.violationWith(c, w); inAll(conflicts, w) && v > most {
			best, most = w, v
		}
	}
	if best < 0 {
		return involved
	}
	return map[int32]int64{best: involved[best]}
}
