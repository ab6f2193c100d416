// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// maxGroups bounds the group launches that wait for their last message, and
	// maxGroupRanks the communicators that they are rebuilt on: 2,048 records of
	// 128 B each.
	maxGroups     = 32
	maxGroupRanks = 1024
)

// groupKey names a group launch: its number counts per process.
type groupKey struct {
	comm  uint16
	group uint32
}

// messages gathers the messages of one group launch on one communicator.
type messages struct {
	key          groupKey
	step         int64
	stepped      bool
	recs         []ring.Record
	sends, recvs int    // to and from others
	pass         uint64 // in which the last of them was read
	since        uint64 // and the first
}

// groupTable are the group launches that are not complete.
type groupTable struct {
	open []*messages
	free []*messages
	done [maxGroups]groupKey // the latest that were complete, for messages to oneself
	next int
}

func (t *groupTable) of(key groupKey) *messages {
	for _, g := range t.open {
		if g.key == key {
			return g
		}
	}
	return nil
}

// remove takes an open group launch out.
func (t *groupTable) remove(i int) *messages {
	g := t.open[i]
	t.open = append(t.open[:i], t.open[i+1:]...)
	return g
}

func (t *groupTable) recycle(g *messages) {
	*g = messages{recs: g.recs[:0]}
	t.free = append(t.free, g)
}

func (t *groupTable) wasDone(key groupKey) bool {
	for _, k := range t.done {
		if k == key {
			return true
		}
	}
	return false
}

// group keeps a message that may be part of an all_to_all; false where it cannot
// be.
func (r *Rank) group(rec *ring.Record, c *commState, n int64, stepped bool) bool {
	size := c.comm.Ranks
	if size < 2 || size > maxGroupRanks || rec.Group() == 0 {
		return false
	}
	t := &r.groups
	key := groupKey{rec.Comm(), rec.Group()}
	self := rec.Peer() == c.comm.Rank
	if self && t.wasDone(key) {
		return true // part of what was handed on
	}
	g := t.of(key)
	if g == nil {
		g = r.openGroup(key, n, stepped)
	}
	g.recs = append(g.recs, *rec)
	g.pass, g.since = r.pass, min(g.since, r.steps.pass)
	switch {
	case self:
	case rec.Flags()&ring.FlagSend != 0:
		g.sends++
	default:
		g.recvs++
	}
	if others := int(size) - 1; g.sends >= others && g.recvs >= others {
		r.endGroup(g, c)
	}
	return true
}

func (r *Rank) openGroup(key groupKey, n int64, stepped bool) *messages {
	t := &r.groups
	if len(t.open) >= maxGroups {
		r.scatter(t.remove(0))
	}
	g := &messages{}
	if i := len(t.free); i > 0 {
		g, t.free = t.free[i-1], t.free[:i-1]
	}
	g.key, g.step, g.stepped, g.since = key, n, stepped, r.steps.pass
	t.open = append(t.open, g)
	return g
}

// endGroup takes a group launch that has as many messages as an all_to_all.
func (r *Rank) endGroup(g *messages, c *commState) {
	t := &r.groups
	for i, o := range t.open {
		if o == g {
			t.remove(i)
			break
		}
	}
	if !g.allToAll(c) {
		r.scatter(g)
		return
	}
	t.done[t.next%maxGroups] = g.key
	t.next++
	r.stats.GroupsRebuilt++
	r.rebuild(g, c)
	t.recycle(g)
}

// allToAll reports whether there is one message to and one from each other rank.
func (g *messages) allToAll(c *commState) bool {
	var seen [2][maxGroupRanks]bool
	for i := range g.recs {
		rec := &g.recs[i]
		peer, way := rec.Peer(), 0
		if rec.Flags()&ring.FlagRecv != 0 {
			way = 1
		}
		if peer < 0 || peer >= c.comm.Ranks || seen[way][peer] {
			return false
		}
		seen[way][peer] = true
	}
	return true
}

// rebuild folds the messages as one collective. Messages are numbered per pair
// and direction: where all of them have one number, every other member's have it
// too, and it joins them. Else nothing that this rank knows does.
func (r *Rank) rebuild(g *messages, c *commState) {
	all := g.recs[0]
	t := r.timesOf(&all, c)
	var sent uint64
	alike := true
	for i := range g.recs {
		rec := &g.recs[i]
		if i > 0 {
			u := r.timesOf(rec, c)
			t.origin &= u.origin | fromGPU
			t.launch, t.start, t.end = min(t.launch, u.launch), min(t.start, u.start), max(t.end, u.end)
			addWaits(&all, rec)
		}
		if rec.Flags()&ring.FlagSend != 0 {
			sent += rec.Bytes()
		}
		if rec.Peer() != c.comm.Rank {
			alike = alike && rec.Seq() == g.first(c).Seq()
		}
	}
	all[4] = sent
	all[3] = g.first(c).Seq()
	if !t.measured() && all.CompletedAt() != 0 {
		all[1] |= uint64(ring.FlagInferred) << 16 // of any message is of all
	}
	all[1] &^= uint64(ring.FlagSend|ring.FlagRecv) << 16
	f := r.allToAllOf(c)
	emitted := len(r.batch.Ops)
	was := r.steps.pass
	r.steps.pass = g.since
	r.count(&all, c, f, t, g.step, g.stepped)
	r.steps.pass = was
	if len(r.batch.Ops) > 0 && len(r.batch.Ops) != emitted && !alike {
		r.batch.Ops[len(r.batch.Ops)-1].Collective.SeqScope = model.ScopeProcess
	}
}

// first returns the first message that is not to oneself.
func (g *messages) first(c *commState) *ring.Record {
	for i := range g.recs {
		if g.recs[i].Peer() != c.comm.Rank {
			return &g.recs[i]
		}
	}
	return &g.recs[0]
}

// addWaits adds the waits of one message to those of all, and keeps the peer of
// the longest wire wait.
func addWaits(all, rec *ring.Record) {
	if rec.Flags()&ring.FlagWaits == 0 {
		return
	}
	if uint32(rec[15]) > uint32(all[15]) || all.Flags()&ring.FlagWaits == 0 {
		all[10] = all[10]&0xffffffff | uint64(uint32(rec.Peer()))<<32
	}
	all[1] |= uint64(ring.FlagWaits) << 16
	all.AddSendSteps(rec)
	for _, w := range []int{14, 15} {
		low := min(uint64(uint32(all[w]))+uint64(uint32(rec[w])), 0xffffffff)
		high := min(all[w]>>32+rec[w]>>32, 0xffffffff)
		all[w] = low | high<<32
	}
}

func (r *Rank) allToAllOf(c *commState) *funcState {
	if c.allToAll == nil {
		c.allToAll = &funcState{name: model.AllToAll}
		c.allToAll.key, c.allToAll.text = r.keys.of(model.AllToAll, c.comm.Name)
	}
	return c.allToAll
}

// scatter folds the messages of a group launch that is no all_to_all one by one.
func (r *Rank) scatter(g *messages) {
	was := r.steps.pass
	r.steps.pass = g.since
	for i := range g.recs {
		rec := &g.recs[i]
		c := r.comm(rec.Comm())
		r.count(rec, c, r.fn(c, rec.Func()), r.timesOf(rec, c), g.step, g.stepped)
	}
	r.steps.pass = was
	r.groups.recycle(g)
}

// flushGroups folds the group launches that nothing more can come of: none of
// their messages was in flight when this pass began, and all that had ended by
// then have been read.
func (r *Rank) flushGroups(all bool) {
	t := &r.groups
	for i := 0; i < len(t.open); {
		if g := t.open[i]; all || (g.pass < r.pass && !r.groupInFlight(g.key)) {
			r.scatter(t.remove(i))
			continue
		}
		i++
	}
}

// forget takes out the group launches that a reader before had folded: all but those that it kept
// open.
func (t *groupTable) forget(kept []OpenGroup, fold func(*messages)) {
	for i := 0; i < len(t.open); {
		if g := t.open[i]; !slices.Contains(kept, OpenGroup{uint32(g.key.comm), g.key.group}) {
			fold(t.remove(i))
			continue
		}
		i++
	}
}

func (r *Rank) groupInFlight(key groupKey) bool {
	for i := range r.slots {
		rec := &r.slots[i].Record
		if rec.Comm() == key.comm && rec.Group() == key.group {
			return true
		}
	}
	return false
}

// flushGroupsOf folds the group launches of a step that is about to close.
func (r *Rank) flushGroupsOf(n int64) {
	t := &r.groups
	for i := 0; i < len(t.open); {
		if g := t.open[i]; g.stepped && g.step <= n {
			r.scatter(t.remove(i))
			continue
		}
		i++
	}
}
