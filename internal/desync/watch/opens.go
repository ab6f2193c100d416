// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// fromEvents is the name of states that nobody sent: they are made of spans and of
// operations that do not end.
const fromEvents = "events of operations"

// openRepeat is how often it is said again that an operation has not ended.
const openRepeat = 30 * time.Second

// maxOpens bounds the operations in flight of one rank that are held: each is the first of its
// communicator.
const maxOpens = 256

type openKey struct {
	comm, name string
	seq        int64
}

// AddOpen takes an operation that does not end, or has at last. Of a rank that sends its
// state, that says more.
func (w *Watch) AddOpen(of *model.Rank, o *model.OpenOp, now time.Time) {
	w.stats.Opens++
	if o.Op.Collective.SeqScope == model.ScopeComm {
		return // of a dump, which has a state that says more
	}
	j := w.job(of, now)
	r := w.rank(j, of, now)
	if r == nil {
		return
	}
	if h := r.states[model.StateRankEvents]; h != nil && h.state.Name != fromEvents {
		return
	}
	key := openKey{o.Op.Comm.ID, o.Op.Name, o.Op.Collective.Seq.Or(-1)}
	switch {
	case o.Status == model.StatusClosed:
		j.over(r, key)
		r.worked = now
	case r.opens[key] == nil && len(r.opens) >= maxOpens:
		w.stats.OpensDropped++
	default:
		if r.opens == nil {
			r.opens = map[openKey]*model.OpenOp{}
		}
		copied := *o
		j.over(r, key)
		r.opens[key] = &copied
		j.grow(r, openBytes+copied.Bytes())
	}
	r.opened = &opened{came: now, last: model.OpenOp{
		Time: o.Time, Silent: o.Silent, Scope: o.Scope, ScopeFor: o.ScopeFor, ProcessDied: o.ProcessDied,
	}}
	if o.ProcessDied { // who starts in its place may come with the next
		w.settleOpens(j, r)
	} else {
		if j.opened == nil {
			j.opened = map[int64]*rank{}
		}
		j.opened[of.Rank] = r
	}
	w.makeRoom()
}

// over forgets an operation in flight.
func (j *job) over(r *rank, key openKey) {
	if o := r.opens[key]; o != nil {
		delete(r.opens, key)
		j.grow(r, -openBytes-o.Bytes())
	}
}

// opened is what the newest event of an operation told, of which no state is made yet: a rank
// tells of many at a time, and one state of them all is enough.
type opened struct {
	last model.OpenOp
	came time.Time
}

// settleOpens makes the state of a rank of what its operations have told since the last time.
func (w *Watch) settleOpens(j *job, r *rank) {
	o := r.opened
	r.opened = nil
	if h := r.states[model.StateRankEvents]; o == nil || h != nil && h.state.Name != fromEvents {
		return
	}
	w.take(j, r, j.fromOpens(r, &o.last), o.came)
}

// settleAllOpens does so for the ranks of a job.
func (w *Watch) settleAllOpens(j *job) {
	for _, of := range slices.Sorted(maps.Keys(j.opened)) {
		w.settleOpens(j, j.opened[of])
	}
	clear(j.opened)
}

// fromOpens is the state of a rank as its operations that do not end tell it; last is the
// newest of them.
func (j *job) fromOpens(r *rank, last *model.OpenOp) *model.RankState {
	s := r.fromSpans()
	s.Time, s.Silent, s.Scope, s.ScopeFor = last.Time, last.Silent, last.Scope, last.ScopeFor
	if last.ProcessDied {
		s.Process = model.ProcessDead
	}
	opens := make([]*model.OpenOp, 0, len(r.opens))
	for key, o := range r.opens {
		if p := r.comms[key.comm]; p != nil && p.over(o) {
			j.over(r, key) // it ended, but no source reported the end
			continue
		}
		opens = append(opens, o)
	}
	slices.SortFunc(opens, func(a, b *model.OpenOp) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Op.Collective.Seq.V, b.Op.Collective.Seq.V))
	})
	for _, o := range opens {
		addOpenTo(s, o)
	}
	return s
}

// over reports whether the operation has completed, as spans say.
func (p *progress) over(o *model.OpenOp) bool {
	f := p.funcs[o.Op.Collective.Name]
	return f != nil && o.Op.Kind == model.KindCollective && o.Op.Collective.Seq.OK && f.seq >= o.Op.Collective.Seq.V
}

// addOpenTo adds an operation in flight to a state, and raises the frontier that it shows.
func addOpenTo(s *model.RankState, o *model.OpenOp) {
	at := slices.IndexFunc(s.Comms, func(c model.CommState) bool { return c.Comm.ID == o.Op.Comm.ID })
	if at < 0 {
		s.Comms = append(s.Comms, model.CommState{Comm: o.Op.Comm, Scope: o.Op.Collective.SeqScope})
		at = len(s.Comms) - 1
	}
	c := &s.Comms[at]
	c.Scope = cmp.Or(c.Scope, o.Op.Collective.SeqScope)
	created := o.Time - int64(o.Age*float64(time.Second))
	s.LastEnqueue = max(s.LastEnqueue, created)
	name := o.Op.Collective.Name
	switch o.Op.Kind {
	case model.KindSend:
		name = model.OpSend
	case model.KindRecv:
		name = model.OpRecv
	default:
		raise(c, name, o)
	}
	s.Ops = append(s.Ops, model.StateOp{
		Kind: o.Op.Kind, Name: name, Recorded: o.Op.Name, Comm: at, Seq: o.Op.Collective.Seq.Or(0), Batch: o.Op.Group,
		Peer: peerOf(o), PeerLocal: o.Op.PeerLocal, Root: o.Op.Collective.Root, Bytes: o.Op.Collective.Bytes,
		InType: o.Op.Collective.DType, OutType: o.Op.Collective.DType, Created: created,
		Started: o.Op.Collective.State == "started", Enqueueing: o.Enqueueing, Send: o.Send, Receive: o.Receive,
	})
}

// peerOf is the other side of a message; of a collective, Peer is with whom a proxy waits.
func peerOf(o *model.OpenOp) model.Optional[int64] {
	if o.Op.Kind == model.KindCollective {
		return model.Optional[int64]{}
	}
	return o.Op.Peer
}

func raise(c *model.CommState, name string, o *model.OpenOp) {
	if c.Scope != model.ScopeCommFunc {
		name = ""
	}
	i := slices.IndexFunc(c.Frontiers, func(f model.Frontier) bool { return f.Func == name })
	if i < 0 {
		c.Frontiers = append(c.Frontiers, model.Frontier{Func: name})
		i = len(c.Frontiers) - 1
	}
	f := &c.Frontiers[i]
	for _, v := range []model.Optional[int64]{o.Enqueued, o.Op.Collective.Seq} {
		if v.OK {
			f.Enqueued = model.Some(max(f.Enqueued.Or(v.V), v.V))
		}
	}
	if o.Completed.OK {
		f.Completed = model.Some(max(f.Completed.Or(o.Completed.V), o.Completed.V))
	}
}

func sortComms(comms []model.CommState) {
	slices.SortFunc(comms, func(a, b model.CommState) int { return strings.Compare(a.Comm.ID, b.Comm.ID) })
}

func sortFrontiers(list []model.Frontier) {
	slices.SortFunc(list, func(a, b model.Frontier) int { return strings.Compare(a.Func, b.Func) })
}
