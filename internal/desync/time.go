// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// sameIncident is how far apart dumps of one incident are written: the ranks look for the
// order to dump every second, and those that symbolise stacks take up to 15 s.
const sameIncident = time.Minute

// lane is one function of one communicator, or all of them where they are counted together.
type lane struct{ group, fn int32 }

// outdated finds states that were taken before others. Nobody is through an operation that
// none can leave before all have entered it, unless all had entered it then: who had not in
// its own state moved on after that was taken. Where both are of one incident the job runs, or
// ran while they were taken; otherwise the older is one of before.
func (w *world) outdated() {
	through := w.through()
	for i := range w.ranks {
		w.outdatedRank(i, through)
	}
	w.outdatedMessages()
}

// outdatedRank compares one rank with who is the farthest; once its state is left out, what else is
// in it is nothing.
func (w *world) outdatedRank(i int, through map[lane]furthest) {
	v := w.ranks[i].view
	if v == nil {
		return
	}
	for j := range v.comms {
		c := &v.comms[j]
		if c.p2pShared || c.inferred {
			continue
		}
		for _, f := range c.fronts {
			t, ok := through[lane{c.group, f.fn}]
			if !ok || f.enqueued == none || f.enqueued >= t.seq || w.ranks[t.rank].view == nil || !v.counts(c, f) {
				continue
			}
			if w.contradicts(i, t, c.group); w.ranks[i].view == nil {
				return
			}
		}
	}
}

// counts reports whether a frontier is the library's own count: what was read of a torn file
// may be less.
func (v *view) counts(c *comm, f front) bool {
	return v.partial == "" || f.completed != none && c.untracked == "" && !c.gloo
}

// channel is a direction between two ranks on a communicator.
type channel struct {
	group    int32
	src, dst int64
}

// outdatedMessages finds senders that had not sent, in their states, what others had received.
func (w *world) outdatedMessages() {
	sent, received := map[channel]furthest{}, map[channel]furthest{}
	for i, r := range w.ranks {
		if r.view == nil || !r.view.numbered {
			continue
		}
		for k, list := range [][]op{r.view.open, r.view.done} {
			for j := range list {
				o := &list[j]
				switch {
				case !o.message() || o.peer == none:
				case o.sends:
					further(sent, channel{o.group, r.id, o.peer}, o.nth, i)
				case k == 1:
					further(received, channel{o.group, o.peer, r.id}, o.nth, i)
				}
			}
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(received), compareChannels) {
		t := received[c]
		i, ok := w.index[c.src]
		if s, sends := sent[c]; ok && w.ranks[i].view != nil && w.ranks[i].view.numbered && w.ranks[t.rank].view != nil && sends && s.seq < t.seq {
			w.contradicts(int(i), t, c.group)
		}
	}
}

func compareChannels(a, b channel) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst))
}

func further(all map[channel]furthest, c channel, seq int64, rank int) {
	if t, ok := all[c]; !ok || seq > t.seq {
		all[c] = furthest{seq, rank}
	}
}

type furthest struct {
	seq  int64
	rank int
}

// through is up to where somebody is through each lane: by operations that are recorded, as of one
// that was overwritten it is not known whether its members left it together, and by how many a
// member can be ahead of another at most.
func (w *world) through() map[lane]furthest {
	all, known := map[lane]furthest{}, w.synchronising()
	for i, r := range w.ranks {
		if r.view == nil {
			continue
		}
		for k := range r.view.done {
			o := &r.view.done[k]
			if o.message() || !w.compares(o.group) || !model.Synchronising(w.a.sigs.all[o.sig].Name) {
				continue
			}
			getTo(all, lane{o.group, o.fn}, o.seq, i)
		}
		for k := range r.view.comms {
			c := &r.view.comms[k]
			if !w.countsForAll(c) {
				continue
			}
			for _, f := range c.fronts {
				if f.completed != none {
					l := lane{c.group, f.fn}
					getTo(all, l, passed(known[l], f.completed), i)
				}
			}
		}
	}
	return all
}

func getTo(all map[lane]furthest, l lane, seq int64, rank int) {
	if t, ok := all[l]; !ok || seq > t.seq {
		all[l] = furthest{seq, rank}
	}
}

// compares reports whether ranks count a communicator's operations alike.
func (w *world) compares(group int32) bool {
	scope := w.a.groups.all[group].scope
	return scope != model.ScopeProcess && scope != model.ScopeOrdinal
}

func (w *world) contradicts(i int, t furthest, group int32) {
	r, other := w.ranks[i], w.ranks[t.rank]
	text := w.beyond(other.id, t.seq, group, r.id)
	apart := time.Duration(other.view.lastEnqueue - r.view.lastEnqueue)
	if apart.Abs() < sameIncident || r.view.lastEnqueue == 0 || other.view.lastEnqueue == 0 {
		switch {
		case r.view.tellsTime() != other.view.tellsTime():
			w.mixed = text + ": their states are not of one time, or not of one job"
		case w.mayHaveFailed(other, t, group):
			w.movedOrFailed = text + ": the job went on while its states were taken, or that operation failed"
		case w.moved == "":
			w.moved = text + ": the job went on while its states were taken"
		}
		return
	}
	if apart < 0 {
		return // its own state is the newer one: numbers of another run
	}
	w.a.problem("%s: its state is of before, and was left out", text)
	w.a.absent[r.id] = model.Absence{Rank: r.id, Reason: model.AbsentStale, Detail: text}
	r.view = nil
}
