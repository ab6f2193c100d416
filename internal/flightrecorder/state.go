// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"github.com/lockstep-otel/lockstep/internal/model"
)

// StateOptions bound a State. Zero limits mean the defaults.
type StateOptions struct {
	Done   int // operations that are over, of each communicator
	Open   int // operations that are open
	Stacks int // distinct call stacks
}

const (
	// 8 operations show what a rank did before it stood still.
	defaultDone = 8
	// 4,096 open operations: hosts run tens ahead of their devices, seldom hundreds.
	defaultOpen = 4096
	// 256 places of the program.
	defaultStacks = 256
)

func (o StateOptions) withDefaults() StateOptions {
	for _, p := range []struct {
		to  *int
		def int
	}{{&o.Done, defaultDone}, {&o.Open, defaultOpen}, {&o.Stacks, defaultStacks}} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	return o
}

// stater makes the state of one dump.
type stater struct {
	d     *Dump
	o     StateOptions
	rank  int64
	s     model.RankState
	comms []*comm
	byTag []*comm         // of entries that name their group
	byPG  map[int64]*comm // of those that do not
	names []nameInfo      // by Entry.name, filled as they are met
	// groups are the places of pg_config by name; places is where the rank stands in lists
	// of members, by their first: groups share lists.
	groups map[string][]int
	places map[*int64]int
	roles  []role  // of entries; nil where all are plain
	end    []int32 // the entry that ends the batch of an entry, + 1
	batch  []int32 // the first entry of the batch of an entry, + 1

	endless []endlessRun
	newest  map[int32]int64 // last record of each thread
	stacks  map[int32]int
}

// role is what an entry is besides an operation.
type role uint8

const (
	plain   role = iota
	closing      // it ends a batch, and is no operation itself
	closed       // a member of a batch that is over, whose end was left out
	unended      // a message whose state may stand in what was cut off
)

// State returns what the dump says of its rank, and of where it came from, for people.
func (d *Dump) State(rank model.Rank, name string, o StateOptions) model.RankState {
	t := &stater{
		d: d, o: o.withDefaults(), rank: rank.Rank,
		byTag: make([]*comm, len(d.tags)), byPG: map[int64]*comm{}, names: make([]nameInfo, len(d.texts)),
		groups: map[string][]int{}, places: map[*int64]int{},
	}
	t.s = model.RankState{
		Rank: rank, Source: model.StateFlightRecorder, Name: name, Partial: d.Partial, LibVersion: d.LibVersion,
		OnlyActive: d.onlyActive(),
	}
	t.addComms()
	t.addBatches()
	t.lookOver()
	t.frontiers()
	t.addOps()
	for _, c := range t.comms {
		t.s.Comms = append(t.s.Comms, c.state)
	}
	return t.s
}

// smallestRing is how many operations the smallest buffers hold that anybody sets. Fewer
// are not all that a full one has.
const smallestRing = 32

// onlyActive reports whether operations that were over were left out: of those that are
// there none is, although older ones were. Many in a row without a gap can as well be a
// full buffer whose every operation is open: that is taken for what is safe, a buffer from
// which older ones were overwritten.
func (d *Dump) onlyActive() bool {
	gap := false
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.State == Completed || e.Retired && !d.timesOut(e) {
			return false
		}
		gap = gap || i > 0 && e.Record != d.Entries[i-1].Record+1
	}
	if gap || d.wrapped() && len(d.Entries) < smallestRing {
		return true
	}
	for _, s := range d.Status {
		if s.Completed > 0 {
			return len(d.Entries) == 0
		}
	}
	return false
}

// timesOut reports whether an operation that is retired, and not completed, was given up: so
// it is with libraries that record the end.
func (d *Dump) timesOut(e *Entry) bool {
	return recordsEnd[parseName(d.Name(e)).backend]
}

// wrapped reports whether older operations may have been overwritten.
func (d *Dump) wrapped() bool {
	return len(d.Entries) > 0 && d.Entries[0].Record != 0
}

// lacksNewest reports whether the newest operations are not there.
func (d *Dump) lacksNewest() bool {
	return d.truncated || d.Stats.EntriesDropped > 0
}

// lookOver notes what every entry says of its communicator.
func (t *stater) lookOver() {
	for i := range t.d.Entries {
		e := &t.d.Entries[i]
		t.s.LastEnqueue = max(t.s.LastEnqueue, e.Created)
		t.comm(e).note(t, i)
	}
}

func (t *stater) role(i int) role {
	if i >= len(t.roles) {
		return plain
	}
	return t.roles[i]
}

// done reports whether entry i was over.
func (t *stater) done(i int) bool {
	if t.role(i) == closed {
		return true
	}
	if i < len(t.end) && t.end[i] > 0 {
		i = int(t.end[i] - 1)
	}
	e := &t.d.Entries[i]
	return e.State == Completed || e.Retired && t.comm(e).retiredIsDone
}
