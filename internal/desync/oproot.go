// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// opRoot is an operation that all members that are known have joined, or that some are
// through and others not.
func (w *world) opRoot(v int32, confidence float64, found, open []root) ([]root, []root) {
	n := w.nodeAt(v)
	to := root{node: n, vertices: []int32{v}, confidence: confidence}
	if m := w.disagreement(n); m != nil {
		return append(found, w.mismatchRoot(to, m)), open
	}
	hidden := slices.Concat(w.hiddenMembers(n), w.guessed(n), w.unsure(n))
	if dead := w.deadOf(hidden); len(dead) > 0 {
		to.class, to.ranks, to.confidence = model.ClassProcessDead, dead, sureOne
		return append(found, to), open
	}
	if w.unlisted(n.group) && !n.passed() && !n.message && !n.local {
		to.class, to.candidates = model.ClassIncompleteEvidence, compact(append(hidden, w.cameOut(n)...))
		to.notes = append(to.notes, unlistedWhy+": somebody else may be missing in it")
		return found, append(open, to)
	}
	if len(hidden) > 0 || n.local {
		to.class, to.candidates = model.ClassIncompleteEvidence, compact(append(hidden, w.cameOut(n)...))
		if n.local {
			to.candidates = w.membersOf(n)
			to.notes = append(to.notes, "its numbers are counted by each process alone, and tell nothing of the others")
		}
		return found, append(open, to)
	}
	if in, out, uneven := w.imbalance(n); uneven {
		to.class, to.confidence, to.in, to.out = model.ClassSplitImbalance, sureMismatch, in, out
		return append(found, to), open
	}
	if hiding := w.hiding(n); len(hiding) > 0 && !n.passed() {
		to.class, to.candidates = model.ClassIncompleteEvidence, hiding
		to.notes = append(to.notes, "members may have open what their buffers do not hold any more")
		return found, append(open, to)
	}
	if len(n.done) > 0 && (w.unseenCalls(n) || n.message && w.sent(n, n.done[0]) == nil) {
		to.class = model.ClassIncompleteEvidence
		to.candidates = compact(append(slices.Clone(n.done), holdersOf(n, false)...))
		to.notes = append(to.notes, "what those that are through called is not recorded any more: it may have been another size")
		return found, append(open, to)
	}
	if late := w.late(n); slices.ContainsFunc(late, func(r int32) bool { return w.outran(n, r) }) {
		to.class, to.candidates = model.ClassIncompleteEvidence, compact(append(late, n.done...))
		to.notes = append(to.notes, "others are through more than it had enqueued: their states may not be of one time, nor of one run")
		return found, append(open, to)
	} else if len(late) > 0 {
		to.class, to.ranks, to.lag = model.ClassCompletionLag, late, w.lag(n, late)
		if to.lag < 2 {
			to.confidence = min(confidence, sureOne)
		}
		return append(found, to), open
	}
	if beside := slices.Concat(n.absent, n.unknown, w.guessedOf(n)); len(n.done) > 0 && len(beside) > 0 {
		to.class = model.ClassIncompleteEvidence
		to.candidates = compact(slices.Concat(beside, n.done, holdersOf(n, false)))
		to.notes = append(to.notes, "some are through and others not, and what all of them called was not seen")
		return found, append(open, to)
	}
	if ranks := w.unstarted(n); len(ranks) > 0 {
		to.class, to.ranks, to.unstarted, to.confidence = model.ClassCompletionLag, ranks, true, min(confidence, sureOne)
		return append(found, to), open
	}
	to.class = model.ClassStalledOp
	if wit := w.network(n); wit != nil {
		// That something is wrong with a way between members does not say that it holds this up.
		to.class, to.witness, to.confidence = model.ClassNetwork, wit, min(to.confidence, sureOne)
	}
	return append(found, to), open
}

func (w *world) mismatchRoot(to root, m *mismatch) root {
	w.disagreedIn(&to, m)
	to.class, to.mismatch, to.ranks, to.confidence = m.class, m, m.odd, sureMismatch
	if m.turns {
		to.confidence = sureOne
	}
	switch {
	case len(m.odd) > 0:
	case len(m.both) == w.bound(m.node.group) || m.node.message: // which side is wrong is not decided
		to.ranks, to.sides, to.confidence = m.both, true, sureCycle
	default: // those that were not seen would decide
		to.candidates, to.confidence = m.both, sureOne
	}
	return to
}

// disagreedIn makes a root one of the operation in which members disagree: who waits in a later one
// waits for that.
func (w *world) disagreedIn(to *root, m *mismatch) {
	if m.node.message || m.seq == m.node.key.seq {
		return
	}
	k := opKey{m.node.key.group, m.node.key.fn, m.seq}
	if n := w.nodeOf(k); n != nil {
		to.node, to.waited = n, m.node
	}
	if i, ok := w.byKey[nodeKey{opKey: k, src: none, dst: none}]; ok && len(to.cycle) == 0 {
		to.vertices = []int32{w.vertex(i)}
	}
}

// cameOut are holders whose hosts came out of n: where it did not fail, they are late for
// what follows.
func (w *world) cameOut(n *node) (out []int32) {
	for i := range n.holders {
		if n.holders[i].op.failed {
			out = append(out, n.holders[i].rank)
		}
	}
	return out
}

// hiding are holders that may have something else open before it.
func (w *world) hiding(n *node) (out []int32) {
	for i := range n.holders {
		if r := n.holders[i].rank; w.ranks[r].view.hides() {
			out = append(out, r)
		}
	}
	return out
}

// unseenCalls reports whether what those called who are through with n, and with nothing after
// it, or those who are in it, is not among what they tell: who called a smaller size may be
// through.
func (w *world) unseenCalls(n *node) bool {
	if n.message || w.lag(n, holdersOf(n, true)) >= 2 {
		return false
	}
	if len(w.guessedOf(n)) > 0 && 2*len(n.done) <= len(n.group.members) {
		return true
	}
	for _, r := range n.done {
		if w.ranks[r].view.over(n.key.opKey) {
			return false
		}
	}
	return true
}

// hiddenMembers are ranks that may be members of an operation and of which nothing tells
// whether they have joined.
func (w *world) hiddenMembers(n *node) []int32 {
	if n.message || !n.group.inferred || n.passed() {
		return nil
	}
	var out []int32
	for i, r := range w.ranks {
		if (r.view == nil || len(w.heads[i]) == 0) && !n.group.has(r.id) {
			out = append(out, int32(i))
		}
	}
	return out
}

// unsure are those of which an older message of the same stream may have been overwritten: a
// message is at the front for certain where one before it is known to be over.
func (w *world) unsure(n *node) (out []int32) {
	if !n.message {
		return nil
	}
	for i := range n.holders {
		h := &n.holders[i]
		v := w.ranks[h.rank].view
		c := v.comm(n.key.group)
		if c == nil || !slices.ContainsFunc(c.fronts, func(f front) bool { return f.kept != none }) {
			continue
		}
		if !slices.ContainsFunc(v.done, func(o op) bool { return o.group == h.op.group && o.stream() == h.op.stream() && o.order < h.op.order }) {
			out = append(out, h.rank)
		}
	}
	return out
}

// guessed are those of which it is concluded that they are in an operation, but not recorded
// what they called.
func (w *world) guessed(n *node) (out []int32) {
	if n.passed() {
		return nil
	}
	return w.guessedOf(n)
}

func (w *world) guessedOf(n *node) (out []int32) {
	for i := range n.holders {
		if n.holders[i].op.guessed() {
			out = append(out, n.holders[i].rank)
		}
	}
	return out
}

func (w *world) deadOf(ranks []int32) (dead []int32) {
	for _, r := range ranks {
		if w.ranks[r].process == model.ProcessDead {
			dead = append(dead, r)
		}
	}
	return dead
}

func (w *world) membersOf(n *node) []int32 {
	var out []int32
	for _, id := range n.group.members {
		out = append(out, w.index[id])
	}
	slices.Sort(out)
	return out
}

// late returns who has not completed what at least as many others are through.
func (w *world) late(n *node) []int32 {
	if !n.passed() || len(n.done) < len(n.holders) {
		return nil
	}
	var out []int32
	for i := range n.holders {
		if n.holders[i].head {
			out = append(out, n.holders[i].rank)
		}
	}
	return out
}

// outran reports whether others are through more operations of the communicator than a rank has
// enqueued: a device that is late alone does not show that.
func (w *world) outran(n *node, rank int32) bool {
	enqueued := func(r int32, completed bool) int64 {
		v := w.ranks[r].view
		if v == nil {
			return none
		}
		c := v.comm(n.key.group)
		if c == nil || c.p2pShared {
			return none
		}
		f := c.front(n.key.fn, false)
		switch {
		case f == nil:
			return none
		case completed:
			return f.completed
		}
		return f.enqueued
	}
	own := enqueued(rank, false)
	return own != none && slices.ContainsFunc(n.done, func(r int32) bool { return enqueued(r, true) > own })
}

// lag is by how many operations of the communicator the late ones are behind at least.
func (w *world) lag(n *node, late []int32) int64 {
	reached := func(r int32) int64 {
		v := w.ranks[r].view
		if v == nil {
			return none
		}
		c := v.comm(n.key.group)
		if c == nil || c.p2pShared {
			return none
		}
		if f := c.front(n.key.fn, false); f != nil {
			return f.completed
		}
		return none
	}
	furthest := n.key.seq
	for _, r := range n.done {
		furthest = max(furthest, reached(r))
	}
	if len(late) == 0 {
		return 0
	}
	return furthest - n.key.seq + 1
}
