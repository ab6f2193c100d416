// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// joinStatus finds the lines of pg_status that are of each group. They are keyed by the
// process's own number, which entries say. Groups without entries get theirs by order,
// where names are numbers: both grow as groups are created.
func (t *stater) joinStatus() {
	byID := map[int64]*Status{}
	for i := range t.d.Status {
		byID[t.d.Status[i].ID] = &t.d.Status[i]
	}
	for _, c := range t.comms {
		if !c.gloo && c.pg >= 0 { // Gloo counts something else there
			c.status = byID[c.pg]
		}
	}
	defer t.addNameless()
	order := t.creationOrder()
	if len(order) != len(t.d.Status) || len(byID) != len(order) {
		return
	}
	for i, c := range order {
		if c.pg >= 0 && c.pg != t.d.Status[i].ID {
			return // not in the order of creation, after all
		}
	}
	for i, c := range order {
		if c.status == nil && !c.gloo {
			c.status = &t.d.Status[i]
			c.state.FrontiersInferred = true
		}
	}
}

// addNameless adds a communicator for each line of pg_status that is of no known group and says that
// operations are not over: which they are was overwritten.
func (t *stater) addNameless() {
	joined := map[*Status]bool{}
	for _, c := range t.comms {
		if c.gloo { // it counts something else there
			return
		}
		joined[c.status] = true
	}
	for i := range t.d.Status {
		s := &t.d.Status[i]
		if joined[s] || s.Enqueued <= s.Completed {
			continue
		}
		c := &comm{place: len(t.comms), pg: s.ID, minColl: -1, maxColl: -1, maxDone: -1, firstOpen: -1, lastOp: -1, status: s}
		c.state = model.CommState{Comm: model.Comm{ID: "pg_id " + strconv.FormatInt(s.ID, 10)}, Scope: model.ScopeProcess, Members: []int64{t.rank}}
		t.comms = append(t.comms, c)
	}
}

// creationOrder returns the communicators by their names' numbers; nil where a name is
// none.
func (t *stater) creationOrder() []*comm {
	type numbered struct {
		n int64
		c *comm
	}
	var all []numbered
	for _, c := range t.comms {
		n, err := strconv.ParseInt(c.state.Comm.ID, 10, 64)
		if err != nil {
			return nil
		}
		all = append(all, numbered{n, c})
	}
	slices.SortFunc(all, func(x, y numbered) int { return cmp.Compare(x.n, y.n) })
	out := make([]*comm, len(all))
	for i, a := range all {
		out[i] = a.c
	}
	return out
}

// frontiers says how far the rank had come on each communicator.
func (t *stater) frontiers() {
	for _, c := range t.comms {
		f := t.ofEntries(c)
		switch {
		case c.status == nil:
		case c.shared && !t.s.OnlyActive && !t.d.lacksNewest():
			// The status counts messages, too; the entries tell more.
		case c.shared:
			f = model.Frontier{Enqueued: model.Some(c.status.Enqueued), Completed: model.Some(c.status.Completed)}
			c.state.P2PShared = true
		default:
			f.Enqueued = later(f.Enqueued, c.status.Enqueued)
			f.Completed = later(f.Completed, c.status.Completed)
			if c.status.Started >= 0 {
				f.Started = model.Some(c.status.Started)
			}
		}
		t.kept(c, &f)
		if f != (model.Frontier{}) {
			c.state.Frontiers = []model.Frontier{f}
		}
		if c.gap && !c.gloo && !t.s.OnlyActive {
			c.state.Untracked = "the numbers of its operations have gaps: some were captured into a graph, whose replays are not recorded"
		}
	}
}

// ofEntries returns the frontiers that the entries prove: all of them, since each entry
// carries the counter of collectives.
func (t *stater) ofEntries(c *comm) (f model.Frontier) {
	if c.entries == 0 || c.maxColl < 0 {
		return f
	}
	exact := !t.d.lacksNewest() && (!t.s.OnlyActive || !c.shared)
	if exact {
		f.Enqueued = model.Some(c.maxColl)
	}
	switch {
	case c.maxDone >= 0:
		f.Completed = model.Some(c.maxDone)
	case c.firstOpen >= 0 && c.status == nil && (t.s.OnlyActive || !t.d.wrapped()):
		// Where there is a status, it knows of those that were open and overwritten, too.
		f.Completed = model.Some(c.firstOpen - 1)
	}
	return f
}

// kept notes from which number on a group's collectives are still there.
func (t *stater) kept(c *comm, f *model.Frontier) {
	switch {
	case t.s.OnlyActive || !t.d.wrapped():
	case c.minColl >= 0:
		f.FirstKept = model.Some(c.minColl)
	case f.Enqueued.OK:
		f.FirstKept = model.Some(f.Enqueued.V + 1)
	}
}

func later(o model.Optional[int64], n int64) model.Optional[int64] {
	if o.OK && o.V > n {
		return o
	}
	return model.Some(n)
}
