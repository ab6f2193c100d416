// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// run is a group's last entries that carry the same numbers: the members of one batch, or
// a single operation.
type run struct {
	begun     bool
	coll, p2p int64
	before    int64 // the counter of collectives before it; -1 unknown
	members   []int32
}

// addBatches finds which entries are members of a batch. They are recorded without an end
// of their own and stay scheduled for ever; the entry "coalesced" behind them carries the
// state of all.
func (t *stater) addBatches() {
	runs := make([]run, len(t.comms))
	for i := range t.d.Entries {
		e := &t.d.Entries[i]
		c := t.comm(e)
		r := &runs[c.place]
		if !r.begun || r.coll != e.Coll || r.p2p != e.P2P {
			t.closeRun(c, r)
			before := int64(-1)
			if r.begun {
				before = r.coll
			}
			*r = run{true, e.Coll, e.P2P, before, r.members[:0]}
		}
		if t.info(e).ends {
			t.endRun(r, i)
			r.members = r.members[:0]
			continue
		}
		r.members = append(r.members, int32(i))
	}
	for _, c := range t.comms {
		t.closeRun(c, &runs[c.place])
		t.cutRun(&runs[c.place])
	}
	for _, r := range t.endless {
		if t.outlived(r) {
			t.makeRoles()
			for _, m := range r.members {
				t.roles[m] = closed
			}
		}
	}
}

// endRun gives the members of a batch the state of its end. An end without members is an
// operation itself where it counts as a collective (their members are recorded since 2.7);
// else its messages have been overwritten.
func (t *stater) endRun(r *run, end int) {
	if len(r.members) == 0 && r.before >= 0 && r.before < r.coll {
		return
	}
	t.makeRoles()
	t.roles[end] = closing
	if len(r.members) > 0 {
		t.comm(&t.d.Entries[end]).countMessages(r)
	}
	for _, m := range r.members {
		t.end[m], t.batch[m] = int32(end+1), r.members[0]+1
	}
}

func (t *stater) makeRoles() {
	if t.roles == nil {
		n := len(t.d.Entries)
		t.roles, t.end, t.batch = make([]role, n), make([]int32, n), make([]int32, n)
	}
}

// cutRun leaves out the last messages of a file that is cut behind them: the end of their
// batch, which alone carries their state, may be what is lost.
func (t *stater) cutRun(r *run) {
	newest := len(t.d.Entries) - 1
	if t.d.Partial == "" || len(r.members) == 0 || r.members[len(r.members)-1] != int32(newest) {
		return
	}
	if e := &t.d.Entries[newest]; !e.IsP2P || t.done(newest) {
		return
	}
	t.makeRoles()
	for _, m := range r.members {
		t.roles[m] = unended
	}
}

// endlessRun is messages behind which no end stands.
type endlessRun struct {
	c       *comm
	members []int32
}

// closeRun looks at messages behind which no end stands: single ones, a batch that the
// host is still in, or one whose end was left out because it was over.
func (t *stater) closeRun(c *comm, r *run) {
	if len(r.members) == 0 || !t.d.Entries[r.members[0]].IsP2P {
		return
	}
	c.countMessages(r)
	if len(r.members) > 1 {
		t.makeRoles()
		for _, m := range r.members {
			t.batch[m] = r.members[0] + 1
		}
	}
	if t.s.OnlyActive {
		t.endless = append(t.endless, endlessRun{c, slices.Clone(r.members)})
	}
}

// countMessages notes the number of a batch or message that is there.
func (c *comm) countMessages(r *run) {
	if c.numbers == 0 || r.p2p < c.minP2P {
		c.minP2P = r.p2p
	}
	c.maxP2P = max(c.maxP2P, r.p2p)
	c.numbers++
	c.batches = c.batches || len(r.members) > 1
}

// allBatched reports whether all messages of a group are sent in batches: some are, and of
// all numbers there are entries, while single messages vanish when they are over.
func (c *comm) allBatched() bool { return c.batches && c.maxP2P-c.minP2P+1 == c.numbers }

// outlived reports whether messages that look open are those of a batch that is over: in
// a dump of what is active the batch's end would stand behind them, had it been open.
func (t *stater) outlived(r endlessRun) bool {
	last := &t.d.Entries[r.members[len(r.members)-1]]
	if len(r.members) > 1 || r.c.allBatched() {
		return t.newestOf(last.threadID) > last.Record+1 || r.c.counted(last, func(s *Status) int64 { return s.Enqueued }) || r.c.collectiveBehind(last)
	}
	if age := t.s.LastEnqueue - last.Created; last.Timeout > 0 && last.Created > 0 && age/1e6 > last.Timeout {
		return true // the watchdog would have given it up
	}
	// Between two ranks there is one stream: what is over is over up to its number.
	return len(r.c.state.Members) == 2 && r.c.counted(last, func(s *Status) int64 { return s.Completed })
}

// collectiveBehind reports whether the status says that a collective was enqueued behind a batch. It
// counts both as one: a number that collectives had not come to, and messages left behind before the
// batch that precedes this one, is of a collective.
func (c *comm) collectiveBehind(e *Entry) bool {
	return c.status != nil && c.status.Enqueued > e.Coll && c.status.Enqueued < e.P2P-1
}

// counted reports whether the status, where it counts messages, has come to a message.
func (c *comm) counted(e *Entry, of func(*Status) int64) bool {
	return c.status != nil && e.P2P > 0 && of(c.status) >= e.P2P && of(c.status) > e.Coll
}

func (t *stater) newestOf(thread int32) int64 {
	if t.newest == nil {
		t.newest = map[int32]int64{}
		for i := range t.d.Entries {
			e := &t.d.Entries[i]
			t.newest[e.threadID] = max(t.newest[e.threadID], e.Record)
		}
	}
	return t.newest[thread]
}

// batchOf returns the number of an entry's batch.
func (t *stater) batchOf(i int) model.Optional[int64] {
	if i >= len(t.batch) || t.batch[i] == 0 {
		return model.Optional[int64]{}
	}
	return model.Some(t.d.Entries[t.batch[i]-1].Record)
}
