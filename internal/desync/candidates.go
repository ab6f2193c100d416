// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// undecided makes one of all that is open: who can be at fault, together. Where nothing is
// decided, those count, too, who would be at fault if nobody were missing.
func (w *world) undecided(open, found []root) []root {
	to := open[0]
	to.vertices, to.notes = nil, nil
	seen := map[int32]bool{}
	for _, o := range open {
		if o.node != nil && (to.node == nil || len(o.node.holders) > len(to.node.holders)) {
			to.node = o.node
		}
		for _, r := range o.candidates {
			seen[r] = true
		}
		to.vertices, to.notes = append(to.vertices, o.vertices...), append(to.notes, o.notes...)
	}
	w.closeOver(seen)
	if len(found) == 0 {
		w.otherwise(seen)
	}
	for i := range found { // who is at fault is told already
		for _, r := range found[i].ranks {
			delete(seen, r)
		}
	}
	if len(seen) == 0 && len(found) > 0 {
		return nil
	}
	to.class, to.candidates, to.vertices, to.confidence = model.ClassIncompleteEvidence, nil, compact(to.vertices), 0
	slices.Sort(to.notes)
	to.notes = slices.Compact(to.notes)
	for r := range seen {
		to.candidates = append(to.candidates, r)
	}
	slices.Sort(to.candidates)
	to.node = w.lacking(w.firstUnseen(to.node, to.candidates), to.candidates)
	to.notes = append(to.notes, w.lackElsewhere(to.node, to.candidates)...)
	if len(to.candidates) == 1 && w.ranks[to.candidates[0]].view == nil && (to.node == nil || !w.unlisted(to.node.group)) {
		to.class, to.confidence = model.ClassDumpMissing, sureAbsent
	}
	return []root{to}
}

// lacking is the operation to tell of where n may be over, as its host came out of it: one that
// others wait in for a candidate.
func (w *world) lacking(n *node, candidates []int32) *node {
	if n == nil || !n.maybeOver() {
		return n
	}
	for _, r := range candidates {
		if other := w.wanted(r); other != nil && other.misses(r) {
			return w.firstLacking(r, other)
		}
	}
	return n
}

// maxConcerned is of how many members an operation that all have joined makes candidates.
const maxConcerned = 8

// otherwise adds who would be at fault if those that were not seen only waited: the turns of
// every cycle, the members of what all have joined, where nobody else can be one, and those whose devices have not started what
// others have.
func (w *world) otherwise(seen map[int32]bool) {
	all := w.both()
	out := func(v int32) []int32 { return all[v] }
	c := tarjan(len(w.edges), out, everything)
	sets := make([][]int32, c.count)
	for v := range int32(len(w.edges)) {
		sets[c.comp[v]] = append(sets[c.comp[v]], v)
	}
	for _, set := range sets {
		if len(set) < 2 {
			continue
		}
		round := w.shortest(set, w.edges)
		if len(round) == 0 {
			round = w.shortest(set, all)
		}
		for _, by := range w.turns(round) {
			for _, r := range by {
				seen[r] = true
			}
		}
	}
	for _, n := range w.nodes {
		w.besideUnseen(n, seen)
		for _, r := range w.unstarted(n) {
			seen[r] = true
		}
		if len(n.missing)+len(n.absent)+len(n.unknown)+len(n.done) > 0 || len(n.holders) > maxConcerned || w.unlisted(n.group) && !n.message {
			continue
		}
		for i := range n.holders {
			seen[n.holders[i].rank] = true
		}
	}
}

// besideUnseen adds members of an operation of which some were not seen: who has not come to
// it, too, since it may be the reason why those have not, and who is in it where they are no
// more than those.
func (w *world) besideUnseen(n *node, seen map[int32]bool) {
	dark := len(n.absent) + len(n.unknown)
	if dark == 0 || len(n.group.members) > maxConcerned && !n.message {
		return
	}
	for _, r := range n.missing {
		seen[r] = true
	}
	for i := range n.holders {
		if h := &n.holders[i]; !h.head || len(n.holders) <= dark {
			seen[h.rank] = true
		}
	}
	for _, r := range n.unknown {
		seen[r] = true
	}
}

// closeOver adds to candidates of which nothing is known whoever they can wait for themselves:
// other ranks of which nothing is known, since those can share communicators that nobody seen
// is in, and ranks of their communicators that were seen and wait for nothing.
func (w *world) closeOver(seen map[int32]bool) {
	blind := false
	for r := range seen {
		blind = blind || w.ranks[r].blind()
	}
	if !blind {
		return
	}
	for i, r := range w.ranks {
		if r.view == nil && r.process != model.ProcessDead {
			seen[int32(i)] = true
		}
	}
	for _, g := range w.a.groups.all {
		if !slices.ContainsFunc(g.members, func(id int64) bool { return seen[w.index[id]] && w.ranks[w.index[id]].blind() }) {
			continue
		}
		for _, id := range g.members {
			if r, ok := w.index[id]; ok && w.ranks[r].view != nil && (len(w.heads[r]) == 0 || w.ranks[r].held() || w.ranks[r].view.guesses()) {
				seen[r] = true
			}
		}
	}
}

// blind reports whether a rank may wait for what nothing tells.
func (r *rank) blind() bool { return r.view == nil || r.view.partial != "" || r.view.hides() }

// unseen: nothing that is recorded hangs, but not all is recorded.
func (w *world) unseen() []root {
	to := root{class: model.ClassIncompleteEvidence}
	for i, r := range w.ranks {
		if r.view != nil && r.view.hides() {
			to.candidates = append(to.candidates, int32(i))
		}
	}
	if len(to.candidates) == 0 {
		return nil
	}
	to.notes = []string{"operations were enqueued that are neither over nor recorded any more"}
	switch n, few := w.behindEvicted(); {
	case n == nil:
	case few:
		to.node, to.candidates = n, n.missing
		to.notes = append(to.notes, "others have enqueued more of the communicator than the candidates have")
	default:
		to.node, to.candidates = n, compact(append(to.candidates, n.missing...))
		to.notes = append(to.notes, fmt.Sprintf("%d members have not enqueued it, no fewer than have: either these are late, or the others enqueued one too many", len(n.missing)))
	}
	return []root{to}
}
