// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// rankRoot is a rank that waits for nothing, while others wait for it.
func (w *world) rankRoot(v int32, found, open *[]root) {
	r := w.ranks[v]
	n := w.wanted(v)
	to := root{ranks: []int32{v}, node: n, waited: n, vertices: []int32{v}}
	if n != nil && (n.misses(v) || slices.Contains(n.absent, v)) {
		to.node = w.firstLacking(v, n)
	}
	if n != nil && w.stuck[v] && n.misses(v) && !r.held() {
		to.class, to.candidates, to.ranks = model.ClassIncompleteEvidence, to.ranks, nil
		to.notes = append(to.notes, "it has operations open, which did not stop others that have the same open; "+
			"programs let some ranks wait for values to print, so that it may wait for them all the same")
		*open = append(*open, to)
		return
	}
	switch {
	case r.gone():
		to.class, to.confidence = model.ClassProcessDead, sureDead
		if r.process == model.ProcessEnded {
			to.notes = append(to.notes, "its process had ended in order")
		}
	case r.held():
		to.class, to.confidence = model.ClassProcessStopped, sureDead
		to.notes = append(to.notes, "its process is "+string(r.process))
	case r.view == nil, n == nil, !n.misses(v), r.view.hides():
		to.class, to.candidates, to.ranks = model.ClassIncompleteEvidence, to.ranks, nil
		*open = append(*open, to)
		return
	case w.alone(n):
		to.class, to.candidates, to.ranks, to.node = model.ClassIncompleteEvidence, w.bothSides(n), nil, n
		to.notes = append(to.notes, "fewer ranks are in it than have not come: either they are late, or who is in it should not be")
		*open = append(*open, to)
		return
	default:
		w.notScheduled(&to, r, n)
	}
	*found = append(*found, to)
}

// wanted returns the operation that most ranks wait in for a rank.
func (w *world) wanted(v int32) *node {
	var best *node
	for _, i := range w.nodesOf(v) {
		n := w.nodes[i]
		if best == nil || preferred(n, best, v) {
			best = n
		}
	}
	return best
}

// misses reports whether a rank has not come to an operation.
func (n *node) misses(rank int32) bool {
	_, ok := slices.BinarySearch(n.missing, rank)
	return ok
}

// preferred orders operations by how much they tell of rank v: what it certainly misses
// first, then by who waits, then by the order of issue.
func preferred(n, best *node, v int32) bool {
	a, b := n.misses(v), best.misses(v)
	if a != b {
		return a
	}
	if len(n.holders) != len(best.holders) {
		return len(n.holders) > len(best.holders)
	}
	return compareKeys(n.key, best.key) < 0
}

func compareKeys(x, y nodeKey) int {
	return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.fn, y.fn), cmp.Compare(x.seq, y.seq),
		cmp.Compare(x.src, y.src), cmp.Compare(x.dst, y.dst))
}

// alone reports whether most members have not come to an operation, and wait for nothing:
// then who is in it may be who went wrong.
func (w *world) alone(n *node) bool {
	if n.message {
		return false
	}
	if n.idle < 0 {
		n.idle = 0
		for _, r := range n.missing {
			if len(w.heads[r]) == 0 {
				n.idle++
			}
		}
	}
	return n.idle >= 2 && n.idle > len(n.holders)+len(n.done)
}

func (w *world) bothSides(n *node) []int32 {
	all := slices.Clone(n.missing)
	for i := range n.holders {
		all = append(all, n.holders[i].rank)
	}
	slices.Sort(all)
	return all
}

func (w *world) notScheduled(to *root, r *rank, n *node) {
	to.class, to.confidence = model.ClassNotScheduled, sureTwo
	c := r.view.comm(n.key.group)
	switch {
	case c == nil && !n.message && n.key.seq <= 1:
		to.class = model.ClassInitIncomplete
	case c != nil && (c.p2pShared || r.view.onlyActive && c.front(n.key.fn, false) == nil):
		to.confidence = sureOne
	}
	if !n.message && len(n.group.members) == 2 && !w.missed(r, n) {
		to.confidence = min(to.confidence, sureOne)
		to.notes = append(to.notes, "of two ranks one is in it: the other may be right, and this call one too many")
	}
	if c != nil && c.gloo {
		to.confidence = min(to.confidence, sureUntold)
		to.notes = append(to.notes, "Gloo records no messages: it may wait in one")
	}
	if u := r.view.untracked(); u != "" {
		to.confidence = min(to.confidence, sureUntold)
		to.notes = append(to.notes, "it may wait in what is not recorded: "+u)
	}
	if w.votesAgree(r, n) {
		to.confidence = sureDead
		to.notes = append(to.notes, "RAS counts fewer launches of it than of the others, too")
	}
	to.cause = causeOf(r)
}

// missed reports whether a rank has not come to anything else that others wait in.
func (w *world) missed(r *rank, but *node) bool {
	v := w.index[r.id]
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return n != but && n.misses(v) })
}

// scopeCauses and phaseCauses are the findings' causes by what a host is in.
var (
	scopeCauses = map[string]string{
		model.ScopeDataLoading: model.CauseDataLoader, model.ScopeGarbageCollection: model.CauseGC, model.ScopeCompile: model.CauseCompile,
		model.ScopeCheckpointSave: model.CauseCheckpoint, model.ScopeCheckpointLoad: model.CauseCheckpoint,
	}
	phaseCauses = map[string]string{model.PhaseCheckpoint: model.CauseCheckpoint, model.PhaseCompile: model.CauseCompile}
)

func causeOf(r *rank) string {
	if c, ok := scopeCauses[r.scope]; ok {
		return c
	}
	return phaseCauses[r.phase]
}
