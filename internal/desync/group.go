// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"math"
	"slices"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// group is one communicator over all ranks.
type group struct {
	comm    model.Comm
	backend string
	members []int64 // ordered as in the communicator; inferred ones by rank
	sorted  []int64
	// inferred: no state says the members; they are who recorded operations here, and not known
	// to be as many as the communicator has.
	inferred bool
	scope    model.SeqScope
	// shared: numbers count messages, too. Who has no message left does not know it.
	shared bool
}

func (g *group) has(rank int64) bool {
	_, ok := slices.BinarySearch(g.sorted, rank)
	return ok
}

// label is what people call the communicator.
func (g *group) label() string {
	if g.comm.Name != "" {
		return g.comm.Name
	}
	return g.comm.ID
}

type groupKey struct {
	id, digest string
	scope      model.SeqScope // who counts otherwise is not compared
}

// groupTable joins what ranks say of communicators: equal ids with equal members are one.
type groupTable struct {
	limit   int
	all     []*group
	byKey   map[groupKey]int32
	pending groupsByID // those with members that are known
	// last finds the digest of a slice of members that was seen before, since a reader
	// that parses each list once hands out the same slice for all ranks.
	last *bounded.Map[*int64, string]
}

func newGroupTable(limit int) groupTable {
	return groupTable{
		limit: limit, byKey: map[groupKey]int32{}, pending: newGroupsByID(),
		last: bounded.NewMap(bounded.MapConfig[*int64, string]{Entries: maxLast}),
	}
}

// maxLast bounds the slices that are remembered: more than the groups of one rank.
const maxLast = 4096

func (t *groupTable) digest(members []int64) string {
	if len(members) == 0 {
		return ""
	}
	at := unsafe.SliceData(members)
	if d, ok := t.last.Peek(at); ok && t.same(d, members) {
		return d
	}
	s := slices.Clone(members)
	slices.Sort(s)
	d := model.RanksDigest(s)
	t.last.Set(at, d)
	return d
}

// same guards against a slice whose memory was used again: its ends must still agree with
// a group of that digest.
func (t *groupTable) same(digest string, members []int64) bool {
	i, ok := t.byKey[groupKey{digest: digest}]
	if !ok || len(t.all[i].members) != len(members) {
		return false
	}
	known, last := t.all[i].members, len(members)-1
	return known[0] == members[0] && known[last/2] == members[last/2] && known[last] == members[last]
}

// add returns the place of a communicator, and false where there is no room.
func (t *groupTable) add(c *model.CommState, self int64) (int32, bool) {
	members := c.Members
	key := groupKey{c.Comm.ID, t.digest(members), c.Scope}
	if i, ok := t.byKey[key]; ok && len(members) > 0 && t.all[i].has(self) {
		t.all[i].learn(c)
		return i, true
	}
	if len(members) > 0 && !slices.Contains(members, self) {
		members = nil // it cannot be true
		key.digest = ""
	}
	if i, ok := t.byKey[key]; ok {
		t.all[i].learn(c)
		return i, true
	}
	if len(t.all) >= t.limit {
		return 0, false
	}
	g := &group{comm: c.Comm, backend: c.Backend, scope: c.Scope, shared: c.P2PShared, inferred: len(members) == 0 || c.MembersInferred}
	g.comm.Rank = model.Optional[int64]{}
	g.members = slices.Clone(members)
	g.sorted = slices.Clone(members)
	slices.Sort(g.sorted)
	if len(members) > 0 {
		g.comm.Digest = model.RanksDigest(members)
		g.comm.Size = model.Some(int64(len(members)))
	}
	i := int32(len(t.all))
	t.all = append(t.all, g)
	t.byKey[key] = i
	if _, ok := t.byKey[groupKey{digest: key.digest}]; !ok && key.digest != "" {
		t.byKey[groupKey{digest: key.digest}] = i
	}
	if len(members) > 0 {
		t.pending.add(c.Comm.ID, i)
	}
	return i, true
}

func (g *group) learn(c *model.CommState) {
	g.comm.Name, g.backend = named(g.comm.Name, c.Comm.Name), named(g.backend, c.Backend)
	if !g.comm.Size.OK {
		g.comm.Size = c.Comm.Size
	}
	g.shared = g.shared || c.P2PShared
	g.inferred = g.inferred && (c.MembersInferred || len(c.Members) == 0)
}

// named returns the first by letters of two names, one of which may be empty: who came first
// must not matter.
func named(x, y string) string {
	if x == "" || y != "" && y < x {
		return y
	}
	return x
}

// settle gives the groups whose members nobody said those that one of the same name has, as
// far as the rank is in it; else who recorded operations there.
func (a *Analyzer) settleGroups(ranks []*rank) {
	observers := map[int32][]int64{}
	for _, r := range ranks {
		if r.view == nil {
			continue
		}
		moved := map[int32]int32{}
		for i := range r.view.comms {
			c := &r.view.comms[i]
			g := a.groups.all[c.group]
			if len(g.members) > 0 {
				continue
			}
			if to, ok := a.groups.known(g, r.id); ok {
				moved[c.group] = to
				c.group = to
				continue
			}
			observers[c.group] = append(observers[c.group], r.id)
		}
		r.view.move(moved)
	}
	for i, ids := range observers {
		g := a.groups.all[i]
		g.members, g.sorted = ids, ids // ranks come in order
		g.inferred = int64(len(ids)) < g.comm.Size.Or(math.MaxInt64)
	}
}

// known returns a group of that name that has the rank: of several the first by members.
func (t *groupTable) known(g *group, rank int64) (least int32, ok bool) {
	for _, i := range t.pending.of(t.all, g.comm.ID, rank) {
		if t.all[i].scope == g.scope && t.all[i].has(rank) && (!ok || slices.Compare(t.all[i].members, t.all[least].members) < 0) {
			least, ok = i, true
		}
	}
	return least, ok
}

// contradictions tells of ranks that list different members under one name.
func (a *Analyzer) contradictions(ranks []*rank) {
	for _, r := range ranks {
		if r.view == nil {
			continue
		}
		for i := range r.view.comms {
			g := a.groups.all[r.view.comms[i].group]
			for _, j := range a.groups.pending.of(a.groups.all, g.comm.ID, r.id) {
				if o := a.groups.all[j]; o != g && o.has(r.id) && len(g.members) > 0 && o.scope == g.scope {
					a.problem("communicator %s: rank %d lists %d members, others list it among %d", g.label(), r.id, len(g.members), len(o.members))
				}
			}
		}
	}
}
