// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxEnqueueApart is how far the stamps of one operation are apart that the program's side
// and the library's side give it when the host enqueues it.
const maxEnqueueApart = int64(time.Second)

// maxJoined bounds the operations of one rank that are sought in its dump: the first ones
// are what it waits in.
const maxJoined = 64

// joiner joins what the dump of a rank says with what its ring says: the one knows lines of
// the program, sizes and the names of groups, the other is of now, and of ranks that leave no
// dump. Both number operations in their own ways, so that numbers are never compared.
type joiner struct {
	registry *model.Registry
	// byName are pairs of a communicator and a process group that their names join.
	byName map[[2]string]bool
	// digests are those of lists of members, which the ranks of a job share.
	digests map[list]string
}

// list is one list of members in memory.
type list struct {
	at *int64
	n  int
}

func newJoiner() *joiner {
	return &joiner{registry: model.NewRegistry(model.DefaultRegistryLimit), byName: map[[2]string]bool{}, digests: map[list]string{}}
}

// learn registers which of a rank's communicators and process groups are one: those alone of
// their ordered ranks, and where a dump does not say the ranks, as of Gloo, those of one name.
func (j *joiner) learn(live, dump *model.RankState) {
	j.learnNames(live, dump)
	groups := j.alone(dump)
	for digest, i := range j.alone(live) {
		k, ok := groups[digest]
		if i < 0 || !ok || k < 0 {
			continue
		}
		c, g := &live.Comms[i], &dump.Comms[k]
		j.registry.Add(model.Group{
			ID: c.Comm.ID, Hashes: []string{g.Comm.ID}, Name: g.Comm.ID, Description: g.Comm.Name, Ranks: g.Members,
		})
	}
}

func (j *joiner) learnNames(live, dump *model.RankState) {
	named := make(map[string]int, len(live.Comms))
	for i := range live.Comms {
		name := live.Comms[i].Comm.Name
		if _, twice := named[name]; twice {
			i = -1
		}
		named[name] = i
	}
	for k := range dump.Comms {
		g := &dump.Comms[k]
		i, ok := named[toldAs(g)]
		if !ok || i < 0 || g.Comm.ID == "" || j.digest(g) != "" {
			continue
		}
		c := &live.Comms[i]
		j.registry.Add(model.Group{ID: c.Comm.ID, Name: g.Comm.ID, Description: g.Comm.Name, Ranks: c.Members})
		j.byName[[2]string{c.Comm.ID, g.Comm.ID}] = true
	}
}

// toldAs is the name that lockstep_scope gives a process group: its name, description and
// backend.
func toldAs(g *model.CommState) string {
	return strings.Join(strings.Fields(g.Comm.ID+" "+g.Comm.Name+" "+g.Backend), " ")
}

// one reports whether a communicator and a process group are one.
func (j *joiner) one(c, g *model.CommState) bool {
	digest := j.digest(c)
	return digest != "" && j.digest(g) == digest || j.byName[[2]string{c.Comm.ID, g.Comm.ID}]
}

// alone finds the places of communicators by their ordered ranks; -1 where several have the same.
func (j *joiner) alone(s *model.RankState) map[string]int {
	places := make(map[string]int, len(s.Comms))
	for i := range s.Comms {
		digest := j.digest(&s.Comms[i])
		if _, twice := places[digest]; twice || digest == "" {
			i = -1
		}
		places[digest] = i
	}
	return places
}

func (j *joiner) digest(c *model.CommState) string {
	if len(c.Members) == 0 {
		return c.Comm.Digest
	}
	at := list{&c.Members[0], len(c.Members)}
	if d, ok := j.digests[at]; ok {
		return d
	}
	d := model.RanksDigest(c.Members)
	j.digests[at] = d
	return d
}

// join returns the live state with what the dump adds to its open operations.
func (j *joiner) join(live, dump *model.RankState) *model.RankState {
	s := *live
	s.Comms, s.Ops = slices.Clone(live.Comms), slices.Clone(live.Ops)
	for i := range s.Comms {
		if g := j.registry.Get(s.Comms[i].Comm.ID); g != nil && g.Description != "" {
			s.Comms[i].Comm.Name = g.Description
		}
	}
	if dump == nil {
		return &s
	}
	if s.HostStack == "" {
		s.HostStack = dump.HostStack
	}
	if s.LibVersion == "" {
		s.LibVersion = dump.LibVersion
	}
	taken := make([]bool, len(dump.Ops))
	for i := range s.Ops[:min(len(s.Ops), maxJoined)] {
		o := &s.Ops[i]
		if k := j.same(&s, o, dump, taken); k >= 0 {
			taken[k] = true
			add(&s, o, dump, &dump.Ops[k])
		}
	}
	return &s
}

// same finds the operation of the dump that was enqueued when o was; -1 where there is none.
func (j *joiner) same(s *model.RankState, o *model.StateOp, dump *model.RankState, taken []bool) int {
	best, apart := -1, maxEnqueueApart
	if o.Comm < 0 || o.Comm >= len(s.Comms) {
		return best
	}
	for k := range dump.Ops {
		d := &dump.Ops[k]
		if taken[k] || d.Name != o.Name || d.Comm < 0 || d.Comm >= len(dump.Comms) || o.Created == 0 {
			continue
		}
		if by := max(d.Created-o.Created, o.Created-d.Created); by < apart && j.one(&s.Comms[o.Comm], &dump.Comms[d.Comm]) {
			best, apart = k, by
		}
	}
	return best
}

// add takes over what only the dump says of an operation.
func add(s *model.RankState, o *model.StateOp, dump *model.RankState, d *model.StateOp) {
	if o.In == "" && o.Out == "" {
		o.In, o.Out, o.InElems, o.OutElems = d.In, d.Out, d.InElems, d.OutElems
	}
	if o.Thread == "" {
		o.Thread = d.Thread
	}
	if o.Timeout == (model.Optional[float64]{}) {
		o.Timeout = d.Timeout
	}
	if o.Stack == 0 && d.Stack > 0 && d.Stack <= len(dump.Stacks) {
		stack := dump.Stacks[d.Stack-1]
		at := slices.Index(s.Stacks, stack)
		if at < 0 {
			s.Stacks = append(slices.Clone(s.Stacks), stack)
			at = len(s.Stacks) - 1
		}
		o.Stack = at + 1
	}
}
