// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"
	"sort"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// rank is what is known of one rank.
type rank struct {
	id         int64
	host, hwid string
	process    model.ProcessState
	processAt  int64
	silent     model.Optional[float64]
	phase      string
	scope      string
	scopeFor   model.Optional[float64]
	scopeAt    int64
	view       *view   // the source that says most
	votes      []*view // what RAS says
}

// know takes what every source may say beside operations.
func (r *rank) know(s *model.RankState) {
	r.host, r.hwid = max(r.host, s.Rank.HostName), max(r.hwid, s.Rank.HWID)
	// A process that was seen dead does not come back in one incarnation.
	newer := s.Time > r.processAt || s.Time == r.processAt && s.Process > r.process
	if s.Process != "" && r.process != model.ProcessDead && (s.Process == model.ProcessDead || r.process == "" || newer) {
		r.process, r.processAt = s.Process, s.Time
	}
	if s.Silent.OK && (!r.silent.OK || s.Silent.V < r.silent.V) {
		r.silent = s.Silent
	}
	same := s.Time == r.scopeAt && s.Phase+s.Scope > r.phase+r.scope
	if (s.Scope != "" || s.Phase != "") && (r.phase+r.scope == "" || s.Time > r.scopeAt || same) {
		r.phase, r.scope, r.scopeFor, r.scopeAt = s.Phase, s.Scope, s.ScopeFor, s.Time
	}
}

// held reports whether the process cannot go on, whatever it waits for.
func (r *rank) held() bool {
	return r.gone() || r.process == model.ProcessStopped || r.process == model.ProcessTraced || r.process == model.ProcessFrozen
}

// gone reports whether the end of its process is why others wait. A rank whose dump shows it
// waiting lived when the hang was noticed: libraries end processes whose operations time out.
func (r *rank) gone() bool {
	if r.process != model.ProcessDead && r.process != model.ProcessEnded {
		return false
	}
	return r.view == nil || r.view.source != model.StateFlightRecorder || len(r.view.open) == 0
}

// view is one state, in short.
type view struct {
	source      model.StateSource
	name        string
	time        int64
	lastEnqueue int64
	partial     string
	onlyActive  bool
	untimed     bool // its source does not record that operations start
	lost        bool // what it waits in may have found no room
	// numbered: every message of the rank was recorded, and has its number.
	numbered bool
	comms    []comm // by group
	open     []op   // in the order of issue
	done     []op
	stacks   []string
	host     string // stack of its main thread
	// Of the operations that are open, while the world is made: those at the front of their
	// streams, and their keys.
	at   []int32
	keys []nodeKey
}

// comm is one communicator of a view.
type comm struct {
	group     int32
	p2pShared bool
	inferred  bool // which numbers are this communicator's was concluded
	gloo      bool // nothing but what was read says how far it is
	scope     model.SeqScope
	untracked string
	place     int64 // of the rank in it; none: unknown
	fronts    []front
}

// none stands for a number that is not known.
const none = int64(-1 << 62)

// front is how far a function has come.
type front struct {
	fn                        int32
	enqueued, completed, kept int64
}

// opKey is an operation over all ranks; of a message it is one rank's own.
type opKey struct {
	group, fn int32
	seq       int64
}

// op is one operation of a view.
type op struct {
	opKey
	sig        int32
	stack      int32 // place in stacks + 1
	order      int32 // of issue
	p2p        bool  // no collective
	sends      bool
	receives   bool
	enqueueing bool
	started    bool
	failed     bool  // its host came out of it: it may be over, or have failed
	batch      int64 // none: alone
	peer       int64 // none: unknown, or no message
	nth        int64 // of a message between its ends; none: not all were recorded
	created    int64
	send, recv *model.ProxyWait
}

func (o *op) message() bool { return o.p2p }

// view takes a state over.
func (a *Analyzer) view(s *model.RankState) *view {
	v := &view{
		source: s.Source, name: s.Name, time: s.Time, lastEnqueue: s.LastEnqueue, partial: s.Partial,
		onlyActive: s.OnlyActive, stacks: slices.Clone(s.Stacks), host: s.HostStack,
	}
	if s.Dropped > 0 && v.partial == "" {
		v.partial = "operations found no room"
	}
	v.comms = make([]comm, 0, len(s.Comms))
	places := make([]int32, len(s.Comms))
	for i := range s.Comms {
		places[i] = a.comm(v, &s.Comms[i], s.Rank.Rank)
	}
	done := 0
	for i := range s.Ops {
		if s.Ops[i].Done {
			done++
		}
	}
	v.done, v.open = make([]op, 0, done), make([]op, 0, min(len(s.Ops)-done, a.cfg.MaxOpen))
	for i := range s.Ops {
		a.op(v, &s.Ops[i], places, int32(i))
	}
	v.reach()
	v.untimed = untimedStarts(s)
	v.numbered = v.numbers()
	sort.Slice(v.comms, func(i, j int) bool { return v.comms[i].group < v.comms[j].group })
	return v
}

// comm adds a communicator, and returns its group; -1 where there is no room.
func (a *Analyzer) comm(v *view, c *model.CommState, self int64) int32 {
	g, ok := a.groups.add(c, self)
	if !ok {
		a.stats.GroupsDropped++
		v.partial, v.lost = "communicators found no room", true
		return -1
	}
	for i := range v.comms {
		if v.comms[i].group == g {
			return g // listed twice
		}
	}
	to := comm{
		fronts: make([]front, 0, len(c.Frontiers)), group: g, scope: c.Scope, p2pShared: c.P2PShared, inferred: c.FrontiersInferred, untracked: c.Untracked, gloo: c.Backend == gloo, place: c.Comm.Rank.Or(none),
	}
	for i := range c.Frontiers {
		f := &c.Frontiers[i]
		to.raise(front{
			fn: a.names.of(f.Func), enqueued: f.Enqueued.Or(none), completed: f.Completed.Or(none), kept: f.FirstKept.Or(none),
		})
	}
	v.comms = append(v.comms, to)
	return g
}

func (a *Analyzer) op(v *view, o *model.StateOp, places []int32, order int32) {
	if o.Comm < 0 || o.Comm >= len(places) || places[o.Comm] < 0 {
		a.stats.OpsDropped++
		return
	}
	if !o.Done && len(v.open) >= a.cfg.MaxOpen {
		a.stats.OpsDropped++
		v.partial = "operations found no room"
		return
	}
	g := places[o.Comm]
	collective := o.Kind == model.KindCollective || o.Kind == ""
	to := op{
		opKey: opKey{group: g, seq: o.Seq}, p2p: !collective, sends: o.Kind == model.KindSend, receives: o.Kind == model.KindRecv,
		sig: a.sigs.of(o), stack: int32(max(0, o.Stack)), order: order,
		batch: o.Batch.Or(none), peer: o.Peer.Or(none), nth: o.Nth.Or(none), created: o.Created, enqueueing: o.Enqueueing, started: o.Started,
	}
	if a.groups.all[g].scope == model.ScopeCommFunc && collective {
		to.fn = a.names.of(o.Name)
	}
	if o.Send.State != "" {
		w := o.Send
		to.send = &w
	}
	if o.Receive.State != "" {
		w := o.Receive
		to.recv = &w
	}
	if o.Done {
		v.done = append(v.done, to)
	} else {
		v.open = append(v.open, to)
	}
}

// numbers reports whether messages that are not among the operations never were.
func (v *view) numbers() bool {
	if v.onlyActive || v.partial != "" {
		return false
	}
	for i := range v.comms {
		for _, f := range v.comms[i].fronts {
			if f.kept != none {
				return false
			}
		}
	}
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			if list[i].message() && list[i].nth == none {
				return false
			}
		}
	}
	return true
}

// reach raises frontiers to what the operations themselves show.
func (v *view) reach() {
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			o := &list[i]
			if o.message() {
				continue
			}
			f := v.comm(o.group).front(o.fn, true)
			f.enqueued = max(f.enqueued, o.seq)
		}
	}
}

// move gives operations the groups that their communicators have now. A rank may list a communicator
// both with and without its members: they are one.
func (v *view) move(to map[int32]int32) {
	if len(to) == 0 {
		return
	}
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			if g, ok := to[list[i].group]; ok {
				list[i].group = g
			}
		}
	}
	sort.Slice(v.comms, func(i, j int) bool { return v.comms[i].group < v.comms[j].group })
	last := 0
	for i := 1; i < len(v.comms); i++ {
		if v.comms[i].group == v.comms[last].group {
			v.comms[last].join(&v.comms[i])
			continue
		}
		last++
		v.comms[last] = v.comms[i]
	}
	v.comms = v.comms[:last+1]
}

// join adds what another list of the same communicator has.
func (c *comm) join(o *comm) {
	c.p2pShared, c.inferred, c.gloo = c.p2pShared || o.p2pShared, c.inferred || o.inferred, c.gloo || o.gloo
	c.untracked, c.place = named(c.untracked, o.untracked), max(c.place, o.place)
	for _, f := range o.fronts {
		c.raise(f)
	}
}

// raise adds a frontier; of a function that is listed twice, the higher numbers count.
func (c *comm) raise(f front) {
	to := c.front(f.fn, true)
	to.enqueued, to.completed, to.kept = max(to.enqueued, f.enqueued), max(to.completed, f.completed), max(to.kept, f.kept)
}

// comm returns the communicator of a group; nil where the view does not know it.
func (v *view) comm(g int32) *comm {
	for i := range v.comms {
		if v.comms[i].group == g {
			return &v.comms[i]
		}
	}
	return nil
}

// front returns the frontier of a function; nil where there is none and none is made.
func (c *comm) front(fn int32, make bool) *front {
	for i := range c.fronts {
		if c.fronts[i].fn == fn {
			return &c.fronts[i]
		}
	}
	if !make {
		return nil
	}
	c.fronts = append(c.fronts, front{fn: fn, enqueued: none, completed: none, kept: none})
	return &c.fronts[len(c.fronts)-1]
}

// hides reports whether the rank may have open, before what it shows, what it does not show:
// a buffer that was overwritten, a torn file.
func (v *view) hides() bool {
	if v.lost {
		return true
	}
	for i := range v.comms {
		c := &v.comms[i]
		for j := range c.fronts {
			if v.hidesIn(c, &c.fronts[j]) {
				return true
			}
		}
	}
	return v.partial != "" && len(v.comms) == 0
}

func (v *view) hidesIn(c *comm, f *front) bool {
	if c.p2pShared || f.enqueued == none || f.completed == none {
		return v.partial != "" || f.enqueued != f.completed && v.wrapped() && v.beginsOpen(c.group)
	}
	if f.enqueued <= f.completed {
		return v.partial != "" && c.gloo // numbers are only those of what was read
	}
	lowest := v.lowestOpen(c.group, f.fn)
	return lowest == none || lowest > f.completed+1 && (v.partial != "" || f.kept != none && f.kept > f.completed+1)
}

// wrapped reports whether older operations were overwritten.
func (v *view) wrapped() bool {
	for i := range v.comms {
		for _, f := range v.comms[i].fronts {
			if f.kept != none {
				return !v.onlyActive
			}
		}
	}
	return false
}

// beginsOpen reports whether the first operation that is told of a communicator is open, so
// that those before may be, too.
func (v *view) beginsOpen(group int32) bool {
	first, open := int32(-1), true
	for k, list := range [][]op{v.open, v.done} {
		for i := range list {
			if o := &list[i]; o.group == group && (first < 0 || o.order < first) {
				first, open = o.order, k == 0
			}
		}
	}
	return open
}

func (v *view) lowestOpen(group, fn int32) int64 {
	lowest := none
	for i := range v.open {
		if o := &v.open[i]; o.group == group && o.fn == fn && !o.message() && (lowest == none || o.seq < lowest) {
			lowest = o.seq
		}
	}
	return lowest
}

// untracked returns why a rank may wait for what was never recorded; empty where not.
func (v *view) untracked() string {
	for i := range v.comms {
		if u := v.comms[i].untracked; u != "" {
			return u
		}
	}
	return ""
}
