// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// comm is a process group and what its entries say.
type comm struct {
	state model.CommState
	place int   // in RankState.Comms
	pg    int64 // the process's own number; -1 unknown

	gloo          bool
	retiredIsDone bool
	shared        bool // messages were counted, too

	entries                 int
	minColl, maxColl        int64 // of all entries; -1 none
	maxDone, firstOpen      int64 // collectives; -1 none
	minP2P, maxP2P, numbers int64 // of the messages that are there
	batches                 bool  // some of them are of one batch
	lastOp                  int64
	gap                     bool
	status                  *Status
	doneLeft                int  // operations that are over and are shown
	rootedKept              int  // and besides
	together                bool // one of those was left by its members together
}

// Backends of PyTorch that record when an operation is over. To them "retired" says that
// the watchdog has let go of it, be it over or given up.
var recordsEnd = map[string]bool{"nccl": true, "ncclx": true, "rccl": true, "xccl": true, "hccl": true, "mccl": true, "bccl": true}

func (t *stater) comm(e *Entry) *comm {
	if e.tag != 0 {
		return t.byTag[e.tag]
	}
	return t.byPG[e.PG]
}

// addComms makes a communicator of every process group that is named anywhere.
func (t *stater) addComms() {
	named := map[string]bool{}
	for i := range t.d.Groups {
		name := t.d.Groups[i].Name
		t.groups[name] = append(t.groups[name], i)
	}
	for i := range t.d.Entries {
		e := &t.d.Entries[i]
		if c := t.comm(e); c != nil {
			if c.pg < 0 {
				c.pg = e.PG
			}
			continue
		}
		c := t.newComm(t.d.Tag(e), e)
		if e.tag != 0 {
			t.byTag[e.tag] = c
		} else {
			t.byPG[e.PG] = c
		}
		named[c.state.Comm.ID] = true
	}
	for i := range t.d.Groups {
		if g := &t.d.Groups[i]; g.Name != "" && !named[g.Name] {
			named[g.Name] = true
			t.newComm(g.Tag, nil)
		}
	}
	t.joinStatus()
}

func (t *stater) newComm(tag Tag, e *Entry) *comm {
	c := &comm{place: len(t.comms), pg: -1, minColl: -1, maxColl: -1, maxDone: -1, firstOpen: -1, lastOp: -1, doneLeft: t.o.Done}
	c.state.Comm = model.Comm{ID: tag.Name, Name: tag.Desc}
	c.state.Scope = model.ScopeComm
	if e != nil {
		c.pg = e.PG
		c.state.Backend = t.info(e).backend
		c.gloo = c.state.Backend == glooBackend
		c.retiredIsDone = c.gloo || !recordsEnd[c.state.Backend] && len(t.d.Status) == 0
		if tag.Desc != "" && tag.Desc == c.state.Backend && len(t.d.Status) == 0 {
			// torchcomms: one counter for all communicators of the process.
			c.state.Scope = model.ScopeProcess
			c.retiredIsDone = false
		}
		if tag == (Tag{}) {
			t.nameless(c, e)
		}
	}
	t.members(c, tag)
	t.comms = append(t.comms, c)
	return c
}

// nameless names a group of before 2.0. Processes number their groups themselves; only
// the first is the same for all.
func (t *stater) nameless(c *comm, e *Entry) {
	c.state.Comm.ID = strconv.FormatInt(e.PG, 10)
	if e.PG != 0 {
		c.state.Comm.ID = "pg_id " + c.state.Comm.ID
		c.state.Scope = model.ScopeProcess
	}
}

// members takes the ranks of a group from pg_config.
func (t *stater) members(c *comm, tag Tag) {
	for _, i := range t.groups[c.state.Comm.ID] {
		g := &t.d.Groups[i]
		if g.Name == "" || tag.Desc != "" && g.Desc != "" && g.Desc != tag.Desc {
			continue
		}
		if c.state.Comm.Name == "" {
			c.state.Comm.Name = g.Desc
		}
		if len(g.Ranks) == 0 {
			continue
		}
		c.state.Members = g.Ranks
		c.state.Comm.Digest = g.Digest()
		c.state.Comm.Size = model.Some(int64(len(g.Ranks)))
		at, ok := t.places[&g.Ranks[0]]
		if !ok {
			at = slices.Index(g.Ranks, t.rank)
			t.places[&g.Ranks[0]] = at
		}
		if at >= 0 {
			c.state.Comm.Rank = model.Some(int64(at))
		}
		return
	}
}

// note takes what entry i says of its group.
func (c *comm) note(t *stater, i int) {
	e := &t.d.Entries[i]
	c.entries++
	c.shared = c.shared || e.P2P > 0 || e.IsP2P
	if c.lastOp >= 0 && e.Op > c.lastOp+1 {
		c.gap = true
	}
	c.lastOp = max(c.lastOp, e.Op)
	if e.Coll >= 0 {
		if c.minColl < 0 || e.Coll < c.minColl {
			c.minColl = e.Coll
		}
		c.maxColl = max(c.maxColl, e.Coll)
	}
	if e.IsP2P || e.Coll < 0 || t.role(i) == closing {
		return
	}
	if t.done(i) {
		c.maxDone = max(c.maxDone, e.Coll)
	} else if c.firstOpen < 0 || e.Coll < c.firstOpen {
		c.firstOpen = e.Coll
	}
}
