// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxGroups bounds the communicators that are listed, those with something open first.
const maxGroups = 64

// ref names an operation over all ranks.
func (w *world) ref(n *node, seq int64) OpRef {
	o := OpRef{Name: n.name, Comm: n.group.comm, Ranks: n.group.members, Func: w.a.names.texts[n.key.fn], Seq: seq}
	if n.message {
		o.Name = n.messageName()
		if n.key.src != none && n.key.dst != none {
			o.Src, o.Dst = model.Some(n.key.src), model.Some(n.key.dst)
		}
	}
	return o
}

// members says what each rank did about the operation of a root, the odd ones first.
func (w *world) members(r *root) ([]Member, int) {
	n := r.node
	var out []Member
	state := func(ranks []int32, text string) {
		for _, v := range ranks {
			out = append(out, w.member(v, r, text))
		}
	}
	state(n.missing, "not enqueued")
	state(n.absent, "no state")
	state(n.unknown, "unknown")
	var waits, behind []int32
	for i := range n.holders {
		switch h := &n.holders[i]; {
		case w.ranks[h.rank].gone():
			state([]int32{h.rank}, "dead in it")
		case !h.head:
			behind = append(behind, h.rank)
		default:
			waits = append(waits, h.rank)
		}
	}
	state(behind, "enqueued behind another")
	state(waits, "waits in it")
	state(n.done, "through")
	odd := map[int64]bool{}
	for _, v := range slices.Concat(r.ranks, r.candidates) {
		odd[w.ranks[v].id] = true
	}
	slices.SortStableFunc(out, func(x, y Member) int {
		return cmp.Compare(place(odd[x.Rank]), place(odd[y.Rank]))
	})
	if len(out) > MaxMembers {
		return out[:MaxMembers], len(out) - MaxMembers
	}
	return out, 0
}

func place(odd bool) int {
	if odd {
		return 0
	}
	return 1
}

func (w *world) member(v int32, r *root, state string) Member {
	m := Member{Rank: w.ranks[v].id, Host: w.ranks[v].host, State: state}
	if slices.Contains(r.ranks, v) || slices.Contains(r.candidates, v) {
		m.Stack = w.lastStack(v, r.node)
		m.What = w.did(v, r)
	}
	return m
}

// did says what a rank that stands out called in the place of the operation, or last.
func (w *world) did(v int32, r *root) string {
	view := w.ranks[v].view
	if view == nil {
		if b, ok := w.a.absent[w.ranks[v].id]; ok {
			return string(b.Reason) + detail(b.Detail)
		}
		return ""
	}
	seq := r.seq()
	for _, list := range [][]op{view.open, view.done} {
		for i := range list {
			if o := &list[i]; o.group == r.node.key.group && o.fn == r.node.key.fn && o.seq == seq && !o.message() {
				return w.callText(o)
			}
		}
	}
	if o := newestOf(view); o != nil {
		return LastCall + w.callText(o)
	}
	return ""
}

func detail(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// callText is one call as its source spells it, with its sizes.
func (w *world) callText(o *op) string {
	s := &w.a.sigs.all[o.sig]
	text := cmp.Or(s.Recorded, s.Name)
	if !o.message() {
		text += " " + number(o.seq)
	}
	if s.In != "" {
		text += " " + s.In
	}
	if s.InType != "" {
		text += " " + s.InType
	}
	return text + " of " + w.a.groups.all[o.group].label()
}

// maxPath bounds the hops that are told.
const maxPath = 12

// path is the way from the farthest victim to the root.
func (w *world) path(by *reach) []Hop {
	if len(by.all) == 0 {
		return nil
	}
	far, depth := by.all[0], -1
	for _, v := range by.all {
		if d := w.distance(v, by); d > depth {
			far, depth = v, d
		}
	}
	var out []Hop
	for v := far; len(out) < maxPath; {
		n, ok := by.next[v]
		if !ok || w.isRank(n) {
			break
		}
		first := w.nodeAt(n)
		hop := Hop{Rank: w.ranks[v].id, Op: w.ref(first, first.key.seq), For: -1, Why: w.enteredText(first)}
		// From an operation the way leads to a rank, or by other operations to one.
		to, ok := by.next[n]
		for ok && !w.isRank(to) {
			n = to
			to, ok = by.next[n]
		}
		last := w.nodeAt(n)
		if ok {
			hop.For, hop.Why = w.ranks[to].id, w.why(last, to)
		}
		if last != first {
			hop.Why = "which stands behind " + last.opText(last.key.seq) + " of " + last.group.label() + ", " + hop.Why
		}
		out = append(out, hop)
		if !ok {
			break
		}
		v = to
	}
	return out
}

func (w *world) distance(v int32, by *reach) (d int) {
	for {
		to, ok := by.next[v]
		if !ok {
			return d
		}
		v = to
		d++
	}
}

// why says why rank r holds up n, as a clause that follows its name.
func (w *world) why(n *node, r int32) string {
	who := "rank " + number(w.ranks[r].id)
	switch {
	case w.ranks[r].gone():
		return "and the process of " + who + " is dead"
	case w.ranks[r].held():
		return "and the process of " + who + " is " + string(w.ranks[r].process)
	case slices.Contains(n.missing, r) && n.message:
		return "whose other end " + who + " has not enqueued"
	case slices.Contains(n.missing, r):
		return "which " + who + " has not enqueued"
	case slices.Contains(n.absent, r):
		return "and of " + who + " there is no state"
	case n.holds(r) != nil:
		return "which " + who + " has behind another"
	}
	return "which " + who + " is not known to have enqueued"
}

// groupTable lists the communicators, those with something open and the largest first.
func (w *world) groupTable() ([]Group, int) {
	byGroup := make([]*Group, len(w.a.groups.all))
	for _, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for i := range r.view.comms {
			c := &r.view.comms[i]
			g := byGroup[c.group]
			if g == nil {
				of := w.a.groups.all[c.group]
				g = &Group{Comm: of.comm, Ranks: of.members, Members: len(of.members)}
				if of.inferred {
					g.Note = "members inferred"
				}
				byGroup[c.group] = g
			}
			g.see(c)
		}
		for i := range r.view.open {
			if g := byGroup[r.view.open[i].group]; g != nil && !r.view.open[i].failed {
				g.Open++
			}
		}
	}
	w.groupHeads(byGroup)
	var out []Group
	for _, g := range byGroup {
		if g != nil {
			out = append(out, *g)
		}
	}
	slices.SortStableFunc(out, func(x, y Group) int {
		return cmp.Or(place(x.HasHead)-place(y.HasHead), cmp.Compare(len(y.Absent), len(x.Absent)), cmp.Compare(y.Open, x.Open),
			cmp.Compare(y.Members, x.Members), cmp.Compare(x.Comm.ID, y.Comm.ID), slices.Compare(x.Ranks, y.Ranks))
	})
	if len(out) > maxGroups {
		return out[:maxGroups], len(out) - maxGroups
	}
	return out, 0
}

func (g *Group) see(c *comm) {
	g.Seen++
	if c.p2pShared {
		return
	}
	for i := range c.fronts {
		f := &c.fronts[i]
		extend(&g.EnqueuedMin, &g.EnqueuedMax, f.enqueued)
		extend(&g.CompletedMin, &g.CompletedMax, f.completed)
	}
}

func extend(least, most *model.Optional[int64], v int64) {
	if v == none {
		return
	}
	if !least.OK || v < least.V {
		*least = model.Some(v)
	}
	if !most.OK || v > most.V {
		*most = model.Some(v)
	}
}

func (w *world) groupHeads(byGroup []*Group) {
	best := map[int32]*node{}
	for _, n := range w.nodes {
		if n.maybeOver() {
			continue
		}
		if b := best[n.key.group]; b == nil || compareKeys(n.key, b.key) < 0 {
			best[n.key.group] = n
		}
	}
	for i, n := range best {
		g := byGroup[i]
		if g == nil {
			continue
		}
		g.Head, g.HasHead = w.ref(n, n.key.seq), true
		g.Absent, _ = w.list(compact(slices.Concat(n.missing, n.absent, n.unknown)))
	}
}

func (w *world) enteredText(n *node) string {
	if w.unlisted(n.group) {
		return "which all that are known have entered"
	}
	return "which all have entered"
}
