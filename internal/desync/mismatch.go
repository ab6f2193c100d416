// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// opGather and opScatter are names of the data model.
const (
	opGather  = "gather"
	opScatter = "scatter"
)

// mismatch is a disagreement of members about one operation.
type mismatch struct {
	class string
	node  *node // the operation in question; seq may be an earlier one of its communicator
	seq   int64
	// odd are the ranks that differ from what most members do; empty where no side is
	// most. both are all that disagree then.
	odd, both []int32
	want, got string
	// turns: those of whom there is nothing could turn who is in the majority.
	turns bool
}

// call is what one member called.
type call struct {
	rank int32
	sig  *signature
	open bool
}

// disagreements finds what members disagree about anywhere at or before what somebody waits
// in: such an operation cannot end, whoever else is at fault. One is told of each communicator.
func (w *world) disagreements() (found []root) {
	last := map[lane]*node{}
	for _, n := range w.nodes {
		if n.message {
			if m := w.messageMismatch(n); m != nil {
				found = append(found, w.mismatchRoot(w.rootAt(n), m))
			}
			continue
		}
		l := lane{n.key.group, n.key.fn}
		if of := last[l]; w.waited(n) && !n.local && (of == nil || of.key.seq < n.key.seq) {
			last[l] = n
		}
	}
	var lasts []*node
	for _, n := range w.nodes {
		if last[lane{n.key.group, n.key.fn}] == n && !n.message {
			lasts = append(lasts, n)
		}
	}
	of := make([]*mismatch, len(lasts))
	each(len(lasts), func(i int) { of[i] = w.disagreement(lasts[i]) })
	for i, m := range of {
		if m != nil {
			found = append(found, w.mismatchRoot(w.rootAt(lasts[i]), m))
		}
	}
	return found
}

func (w *world) rootAt(n *node) root {
	return root{node: n, vertices: []int32{w.vertex(w.byKey[n.key])}}
}

// waited reports whether an operation is at the front of somebody's stream.
func (w *world) waited(n *node) bool {
	return slices.ContainsFunc(n.holders, func(h holder) bool { return h.head })
}

// disagreement finds the first operation of n's communicator, up to n, about which members
// disagree; nil where there is none. What all are through counts only by its name: sizes that
// were compatible enough to end did not hang.
func (w *world) disagreement(n *node) *mismatch {
	if n.message {
		return w.messageMismatch(n)
	}
	if n.local {
		return nil
	}
	bySeq := map[int64][]call{}
	for _, id := range n.group.members {
		r := w.index[id]
		if v := w.ranks[r].view; v != nil {
			w.collect(bySeq, r, v, n)
		}
	}
	seqs := make([]int64, 0, len(bySeq))
	for seq := range bySeq {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		if m := w.compare(n, seq, bySeq[seq]); m != nil {
			return m
		}
	}
	return nil
}

func (w *world) collect(bySeq map[int64][]call, r int32, v *view, n *node) {
	for k, list := range [][]op{v.done, v.open} {
		for i := range list {
			o := &list[i]
			if o.group == n.key.group && o.fn == n.key.fn && !o.message() && o.seq <= n.key.seq {
				bySeq[o.seq] = append(bySeq[o.seq], call{r, &w.a.sigs.all[o.sig], k == 1})
			}
		}
	}
}

// aspects are what members must agree on, in the order in which a library would fail.
var aspects = []struct {
	class string
	of    func(*signature) string
	over  bool // counts where all are through, too
}{
	{model.ClassMismatchOp, func(s *signature) string { return cmp.Or(s.Name, s.Recorded) }, true},
	{model.ClassMismatchDType, inTypeOf, false},
	{model.ClassMismatchDType, outTypeOf, false},
	{model.ClassMismatchRoot, rootOf, false},
	{model.ClassMismatchSize, sizeOf, false},
	{model.ClassMismatchSize, otherSizeOf, false},
}

func (w *world) compare(n *node, seq int64, calls []call) *mismatch {
	open := slices.ContainsFunc(calls, func(c call) bool { return c.open })
	for _, a := range aspects {
		if !open && !a.over {
			continue
		}
		if m := disagree(calls, a.of, w.bound(n.group)); m != nil {
			m.class, m.node, m.seq = a.class, n, seq
			return m
		}
	}
	return nil
}

// bound is how many members a communicator has at most: of inferred ones those alone are known
// that recorded something.
func (w *world) bound(g *group) int {
	switch {
	case w.unlisted(g):
		return math.MaxInt32
	case g.inferred:
		return len(w.ranks)
	}
	return len(g.members)
}

// disagree divides members by a value; those that do not say one agree with all.
func disagree(calls []call, of func(*signature) string, members int) *mismatch {
	count, texts := map[string]int{}, []string(nil)
	for _, c := range calls {
		if v := of(c.sig); v != "" {
			if count[v] == 0 {
				texts = append(texts, v)
			}
			count[v]++
		}
	}
	if len(texts) < 2 {
		return nil
	}
	slices.SortFunc(texts, func(x, y string) int {
		return cmp.Or(count[y]-count[x], cmp.Compare(x, y))
	})
	most, others := count[texts[0]], 0
	for _, t := range texts[1:] {
		others += count[t]
	}
	m := &mismatch{want: texts[0], got: texts[1]}
	for _, c := range calls {
		v := of(c.sig)
		if v == "" {
			continue
		}
		m.both = append(m.both, c.rank)
		if v != texts[0] {
			m.odd = append(m.odd, c.rank)
		}
	}
	m.turns = 2*most <= members
	if !decides(most, others, members) {
		m.odd = nil
	}
	return m
}

// decides reports whether so many that agree outweigh the others: those of whom there is
// nothing could not turn it, or three at least outweigh the others two to one. Two against one
// do not, where others were not seen: two that went wrong together leave the same.
func decides(most, others, members int) bool {
	return 2*most > members && most > others || most >= 2*others && most >= 3
}

func rootOf(s *signature) string {
	if s.Root < 0 {
		return ""
	}
	return number(s.Root)
}

// inTypeOf is the type of what goes in: to a scatter the root alone hands something in.
func inTypeOf(s *signature) string {
	if s.Name == opScatter {
		return ""
	}
	return s.InType
}

// outTypeOf is the type of what comes out, where every member gets something: of reductions and
// gathers the root alone does.
func outTypeOf(s *signature) string {
	switch s.Name {
	case model.Reduce, opGather:
		return ""
	}
	return s.OutType
}

// sizeOf is the amount that members must agree on; empty where they need not: what each has of an
// all_to_all, a gather or a scatter is its own.
func sizeOf(s *signature) string {
	var amount int64
	switch s.Name {
	case model.AllReduce, model.Reduce, model.AllGather:
		amount = s.InElems
	case model.Broadcast:
		if amount = s.InElems; outOfPlace(s) {
			amount = s.OutElems
		}
	case model.ReduceScatter:
		amount = s.OutElems
	default:
		return ""
	}
	switch {
	case amount >= 0:
		return number(amount)
	case s.InElems < 0 && s.OutElems < 0 && s.Bytes >= 0:
		return number(s.Bytes) + " bytes"
	}
	return ""
}

// otherSizeOf is the amount on the other side, where members must agree on that, too.
func otherSizeOf(s *signature) string {
	amount := int64(-1)
	switch s.Name {
	case model.AllReduce, model.AllGather, model.Broadcast:
		amount = s.OutElems
	case model.ReduceScatter:
		amount = s.InElems
	}
	if amount < 0 {
		return ""
	}
	return number(amount)
}

// outOfPlace reports whether the members of a broadcast that are not its root hand nothing in.
func outOfPlace(s *signature) bool { return strings.Contains(s.Recorded, "oop") }

// messageMismatch compares the two ends of a message: neither is more right than the other.
func (w *world) messageMismatch(n *node) *mismatch {
	var calls []call
	for i := range n.holders {
		h := &n.holders[i]
		calls = append(calls, call{h.rank, &w.a.sigs.all[h.op.sig], true})
	}
	for _, r := range n.done {
		if o := w.sent(n, r); o != nil {
			calls = append(calls, call{r, &w.a.sigs.all[o.sig], false})
		}
	}
	if len(calls) < 2 {
		return nil
	}
	for _, a := range []struct {
		class string
		of    func(*signature) string
	}{
		{model.ClassMismatchDType, func(s *signature) string { return s.InType }},
		{model.ClassMismatchSize, amountText},
	} {
		if m := disagree(calls, a.of, 2); m != nil {
			m.class, m.node, m.odd = a.class, n, nil
			return m
		}
	}
	return nil
}

// sent finds the send of a message that its sender is through with.
func (w *world) sent(n *node, r int32) *op {
	v := w.ranks[r].view
	how := w.numberingOf(v, n.key.group, n.key.dst)
	for i := range v.done {
		o := &v.done[i]
		if !o.sends || o.group != n.key.group || o.peer != n.key.dst {
			continue
		}
		if how == byNth && o.nth == n.key.seq || how == bySeq && o.seq == n.key.seq>>seqShift {
			return o
		}
	}
	return nil
}

func amountText(s *signature) string {
	switch {
	case s.InElems >= 0:
		return number(s.InElems)
	case s.OutElems >= 0:
		return number(s.OutElems)
	case s.Bytes >= 0:
		return number(s.Bytes) + " bytes"
	}
	return ""
}

// imbalance reports whether what the members of an all_to_all send is not what they receive:
// that needs all of them.
func (w *world) imbalance(n *node) (in, out int64, uneven bool) {
	if n.name != model.AllToAll || len(n.holders) != len(n.group.members) || n.group.inferred {
		return 0, 0, false
	}
	for i := range n.holders {
		s := &w.a.sigs.all[n.holders[i].op.sig]
		if s.InElems < 0 || s.OutElems < 0 {
			return 0, 0, false
		}
		in, out = in+s.InElems, out+s.OutElems
	}
	return in, out, in != out
}
