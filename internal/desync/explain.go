// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// explained leaves out what something else that was found is the reason of: an operation
// that all have joined, one of whom a device holds up; a host that is behind the others, whose
// device does not end what it has joined; the same disagreement seen twice.
func (w *world) explained(found, open []root) []root {
	culprits := culprits(found)
	late := lateMaybe(open)
	var out []root
	seen := map[string]bool{}
	for _, f := range found {
		if f.mismatch != nil {
			key := f.class + " " + f.node.group.comm.ID + f.node.group.comm.Digest
			if f.node.message {
				key += number(f.node.key.src) + ">" + number(f.node.key.dst)
			}
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		if len(f.cycle) > 0 && f.mismatch == nil && w.heldUp(f.cycle, culprits) {
			continue
		}
		if f.class == model.ClassStalledOp && slices.ContainsFunc(f.node.holders, func(h holder) bool { return culprits[h.rank] || late[h.rank] }) {
			continue
		}
		if f.class == model.ClassNotScheduled && len(f.ranks) == 1 && w.onlySentTo(f.ranks[0], culprits) {
			continue
		}
		if len(f.vertices) == 1 && w.isRank(f.vertices[0]) && w.stuck[f.vertices[0]] && !w.heldByOthers(f.vertices[0], culprits) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// heldUp reports whether a device that is at fault takes part in a cycle.
func (w *world) heldUp(cycle []int32, culprits map[int32]bool) bool {
	return slices.ContainsFunc(cycle, func(v int32) bool {
		if w.isRank(v) {
			return culprits[v]
		}
		return slices.ContainsFunc(w.nodeAt(v).holders, func(h holder) bool { return culprits[h.rank] })
	})
}

// lateMaybe are the ranks whose devices may be late in what is not decided.
func lateMaybe(open []root) map[int32]bool {
	out := map[int32]bool{}
	for _, o := range open {
		if o.node == nil || !o.node.passed() {
			continue
		}
		for _, r := range holdersOf(o.node, true) {
			out[r] = true
		}
	}
	return out
}

// onlySentTo reports whether nobody waits for a rank but with messages of a device that is at
// fault: what it sent may have come, though it was not seen to end.
func (w *world) onlySentTo(r int32, culprits map[int32]bool) bool {
	sent := false
	for _, n := range w.nodes {
		if !slices.Contains(n.missing, r) {
			continue
		}
		if sent = n.message && n.key.dst == w.ranks[r].id && !slices.ContainsFunc(n.holders, func(h holder) bool { return !culprits[h.rank] }); !sent {
			return false
		}
	}
	return sent
}

// skewed drops who is not through what others are through, where its host had not come further
// either and something else is at fault: its state was taken a little earlier. The host of a
// device that stands still goes on. Where it is not known whether something else is, the rank
// is a candidate.
func (w *world) skewed(found, open []root) (kept, undecided []root) {
	other := slices.ContainsFunc(found, func(r root) bool { return r.class != model.ClassCompletionLag })
	if !other && len(open) == 0 && w.timed() {
		return found, open
	}
	for _, r := range found {
		switch {
		case r.class != model.ClassCompletionLag, slices.ContainsFunc(r.ranks, func(v int32) bool { return w.hostWentOn(v, r.node) }):
			kept = append(kept, r)
		case !other:
			r.candidates, r.ranks = r.ranks, nil
			open = append(open, r)
		}
	}
	return kept, open
}

// hostWentOn reports whether a rank has enqueued what follows n on its communicator, as far as
// anybody has.
func (w *world) hostWentOn(v int32, n *node) bool {
	c := w.ranks[v].view.comm(n.key.group)
	if c == nil || c.p2pShared {
		return true
	}
	if f := c.front(n.key.fn, false); f != nil && f.enqueued > n.key.seq {
		return true
	}
	return !slices.ContainsFunc(w.nodes, func(o *node) bool {
		return o.key.group == n.key.group && o.key.fn == n.key.fn && !o.message && o.key.seq > n.key.seq
	})
}

// culprits are ranks whose device or process is at fault.
func culprits(found []root) map[int32]bool {
	out := map[int32]bool{}
	for i := range found {
		if f := &found[i]; f.class == model.ClassCompletionLag || f.class == model.ClassProcessDead {
			for _, r := range f.ranks {
				out[r] = true
			}
		}
	}
	return out
}

// heldByOthers reports whether somebody else is the reason for everything that a rank waits
// in. Otherwise it may be its own device, which its host waits for then.
func (w *world) heldByOthers(r int32, culprits map[int32]bool) bool {
	for _, h := range w.heads[r] {
		n := w.nodes[h]
		if len(n.missing) == 0 && !slices.ContainsFunc(n.holders, func(h holder) bool { return h.rank != r && culprits[h.rank] }) {
			return false
		}
	}
	return true
}

// stillOpen leaves out what a device that is at fault explains.
func (w *world) stillOpen(open, found []root) (out []root) {
	culprits := culprits(found)
	for _, o := range open {
		if o.node == nil || len(o.candidates) == 0 || w.isRank(o.vertices[0]) || !slices.ContainsFunc(o.node.holders, func(h holder) bool { return culprits[h.rank] }) {
			out = append(out, o)
		}
	}
	return out
}

// once tells of each rank that is late where that shows best: by how far it is behind, then
// by what it was to do first. A device that stands still is late on all of its communicators.
func (w *world) once(found []root) []root {
	best := map[int32]int{}
	for i := range found {
		if found[i].class != model.ClassCompletionLag {
			continue
		}
		for _, r := range found[i].ranks {
			if j, ok := best[r]; !ok || w.showsBetter(&found[i], &found[j], r) {
				best[r] = i
			}
		}
	}
	vertices := map[int32][]int32{}
	for i := range found {
		if found[i].class == model.ClassCompletionLag {
			for _, r := range found[i].ranks {
				vertices[r] = append(vertices[r], found[i].vertices...)
			}
		}
	}
	var out []root
	for i, f := range found {
		if f.class == model.ClassCompletionLag {
			f.ranks = slices.DeleteFunc(slices.Clone(f.ranks), func(r int32) bool { return best[r] != i })
			if len(f.ranks) == 0 {
				continue
			}
			f.vertices = slices.Clone(f.vertices)
			for _, r := range f.ranks {
				f.vertices = append(f.vertices, vertices[r]...)
			}
			f.vertices = compact(f.vertices)
		}
		out = append(out, f)
	}
	return out
}

func (w *world) showsBetter(x, y *root, r int32) bool {
	if x.lag != y.lag {
		return x.lag > y.lag
	}
	if a, b := x.node.holds(r).op.order, y.node.holds(r).op.order; a != b {
		return a < b
	}
	return compareKeys(x.node.key, y.node.key) < 0
}

// fewRoots are told one by one, each with its own operation and stack.
const fewRoots = 8

// together makes one root of ranks that miss the same operation for the same reason, where
// they are many: a node, a stage.
func (w *world) together(found []root) []root {
	if len(found) <= fewRoots {
		return found
	}
	var out []root
	joined := map[int]bool{}
	for _, f := range found {
		i := slices.IndexFunc(out, func(o root) bool {
			return o.class == f.class && (o.node == f.node || o.waited != nil && o.waited == f.waited) && o.cause == f.cause && len(f.ranks) > 0 && f.mismatch == nil && len(f.cycle) == 0 &&
				slices.Equal(o.notes, f.notes)
		})
		if i < 0 {
			out = append(out, f)
			continue
		}
		o := &out[i]
		if !joined[i] {
			o.ranks, o.vertices, joined[i] = slices.Clone(o.ranks), slices.Clone(o.vertices), true
		}
		if o.node != f.node { // each lacks another one first, and all of them this one
			o.node = o.waited
		}
		o.ranks, o.vertices = append(o.ranks, f.ranks...), append(o.vertices, f.vertices...)
		o.confidence = min(o.confidence, f.confidence)
	}
	for i := range joined {
		out[i].ranks, out[i].vertices = compact(out[i].ranks), compact(out[i].vertices)
	}
	return out
}
