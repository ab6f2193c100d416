// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// reader reads one rank's row.
type reader struct {
	p      *parser
	s      model.RankState
	places []*group // by place in s.Comms
	told   map[string]string
}

// calls are the short names of collectives.
var calls = map[string]string{
	"ar": model.AllReduce, "ag": model.AllGather, "rs": model.ReduceScatter, "bc": model.Broadcast,
	"re": model.Reduce, "a2a": model.AllToAll, "bar": model.Barrier,
	"ga": "gather", "sc": "scatter",
}

func (r *reader) item(s string) error {
	if s == "" {
		return nil
	}
	words := strings.Fields(s)
	if name, front, ok := strings.Cut(words[0], "="); ok {
		if r.told == nil {
			r.told = map[string]string{}
		}
		r.told[name] = front
		return nil
	}
	if len(words) < 2 {
		return fmt.Errorf("got %q; want a group and a call", s)
	}
	g := r.p.find(words[0])
	if g == nil {
		return fmt.Errorf("got group %q; want one that was declared", words[0])
	}
	return r.call(g, words[1], words[2:])
}

func (p *parser) find(name string) *group {
	i := slices.IndexFunc(p.groups, func(g *group) bool { return g.name == name })
	if i < 0 {
		return nil
	}
	return p.groups[i]
}

func (r *reader) place(g *group) int {
	i := slices.Index(r.places, g)
	if i < 0 {
		i = len(r.places)
		r.places = append(r.places, g)
	}
	return i
}

func (r *reader) call(g *group, what string, rest []string) error {
	o := model.StateOp{Kind: model.KindCollective, Name: calls[what], Comm: r.place(g)}
	size := int64(1024)
	if len(rest) > 0 {
		if n, err := strconv.ParseInt(rest[0], 10, 64); err == nil {
			o.Seq, rest = n, rest[1:]
		}
	}
	for mark, kind := range map[string]model.OpKind{">": model.KindSend, "<": model.KindRecv} {
		name, peer, ok := strings.Cut(what, mark)
		if !ok {
			continue
		}
		o.Kind, o.Name = kind, name
		if n, err := strconv.ParseInt(peer, 10, 64); err == nil {
			o.Peer = model.Some(n)
		}
	}
	if o.Name == "" {
		o.Name = what
	}
	o.Recorded = "nccl:" + o.Name
	with := flags(rest)
	if n := integer(with, "n"); n.OK {
		size = n.V
	}
	sizes(&o, size, int64(len(g.members)))
	r.set(&o, with)
	r.s.Ops = append(r.s.Ops, o)
	return nil
}

// sizes are what a call of size elements hands in and gets.
func sizes(o *model.StateOp, size, members int64) {
	in, out := size, size
	switch o.Name {
	case model.AllGather:
		out *= members
	case model.ReduceScatter:
		in *= members
	case model.Barrier:
		in, out = 1, 1
	}
	o.InElems, o.OutElems = model.Some(in), model.Some(out)
	o.InType, o.OutType = "float32", "float32"
}

func (r *reader) set(o *model.StateOp, with map[string]string) {
	_, o.Done = with["done"]
	_, o.Started = with["started"]
	if n := integer(with, "in"); n.OK {
		o.InElems = n
	}
	if n := integer(with, "out"); n.OK {
		o.OutElems = n
	}
	o.In, o.Out = fmt.Sprintf("[[%d]]", o.InElems.V), fmt.Sprintf("[[%d]]", o.OutElems.V)
	if t, ok := with["type"]; ok {
		o.InType, o.OutType = t, t
	}
	for flag, to := range map[string]*string{"intype": &o.InType, "outtype": &o.OutType, "recorded": &o.Recorded} {
		if text, ok := with[flag]; ok {
			*to = text
		}
	}
	o.Root, o.Batch, o.Nth = integer(with, "root"), integer(with, "batch"), integer(with, "nth")
	if at, ok := with["at"]; ok {
		o.Created = seconds(at)
		r.s.LastEnqueue = max(r.s.LastEnqueue, o.Created)
	}
	if n := integer(with, "limit"); n.OK {
		o.Timeout = model.Some(float64(n.V))
	}
	if text, ok := with["stack"]; ok {
		r.s.Stacks = append(r.s.Stacks, text)
		o.Stack = len(r.s.Stacks)
	}
	if n := integer(with, "wire"); n.OK {
		o.Send = model.ProxyWait{State: "send_wire", Peer: n}
	}
}

func integer(with map[string]string, key string) model.Optional[int64] {
	n, err := strconv.ParseInt(with[key], 10, 64)
	if err != nil {
		return model.Optional[int64]{}
	}
	return model.Some(n)
}

// comms lists the communicators that the rank is in, and how far it is on each.
func (r *reader) comms() {
	for _, g := range r.p.groups {
		if slices.Contains(g.members, r.s.Rank.Rank) && r.told[g.name] != "-" && !hidden(g) {
			r.place(g)
		}
	}
	for _, g := range r.places {
		c := model.CommState{Comm: model.Comm{ID: g.id(), Name: g.name}, Backend: "nccl", Scope: model.ScopeComm}
		if !hidden(g) {
			c.Members = g.members
		} else {
			c.Backend = "gloo"
		}
		for flag, scope := range map[string]model.SeqScope{"func": model.ScopeCommFunc, "process": model.ScopeProcess} {
			if _, ok := g.flags[flag]; ok {
				c.Scope = scope
			}
		}
		_, c.P2PShared = g.flags["shared"]
		if _, ok := g.flags["untracked"]; ok {
			c.Untracked = "replayed graphs"
		}
		c.Frontiers = r.frontiers(g, &c)
		r.s.Comms = append(r.s.Comms, c)
	}
}

// hidden reports whether members are not recorded: a rank then knows only the groups in
// which it called something.
func hidden(g *group) bool {
	_, ok := g.flags["gloo"]
	return ok
}

func (r *reader) frontiers(g *group, c *model.CommState) (out []model.Frontier) {
	if c.Scope == model.ScopeCommFunc {
		for _, fn := range r.functions(g) {
			f := r.shown(g, fn)
			f.Func = fn
			out = append(out, f)
		}
		return out
	}
	if told, ok := r.told[g.name]; ok {
		return []model.Frontier{frontier(told)}
	}
	if f := r.shown(g, ""); f != (model.Frontier{}) {
		return []model.Frontier{f}
	}
	return nil
}

func (r *reader) functions(g *group) (names []string) {
	for i := range r.s.Ops {
		if o := &r.s.Ops[i]; r.places[o.Comm] == g && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// shown is how far the collectives of a row have come: up to the first that is open.
func (r *reader) shown(g *group, fn string) (f model.Frontier) {
	for i := range r.s.Ops {
		o := &r.s.Ops[i]
		if r.places[o.Comm] != g || o.Kind != model.KindCollective || fn != "" && o.Name != fn {
			continue
		}
		f.Enqueued = model.Some(max(o.Seq, f.Enqueued.Or(o.Seq)))
		done := o.Seq
		if !o.Done {
			done--
		}
		switch {
		case !o.Done && (!f.Completed.OK || done < f.Completed.V), o.Done && !f.Completed.OK:
			f.Completed = model.Some(done)
		case o.Done && done == f.Completed.V+1:
			f.Completed = model.Some(done)
		}
	}
	return f
}

// frontier reads 42/41/12.
func frontier(s string) (f model.Frontier) {
	for i, part := range strings.Split(s, "/") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || i > 2 {
			continue
		}
		*[]*model.Optional[int64]{&f.Enqueued, &f.Completed, &f.FirstKept}[i] = model.Some(n)
	}
	return f
}
