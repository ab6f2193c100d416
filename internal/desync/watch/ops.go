// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// longest is the longest time between two completions that is believed: beyond it, a clock
// was set, or the job stood.
const longest = 24 * time.Hour

// AddOps takes operations that are over, of one rank: what it completed, and the gaps between.
func (w *Watch) AddOps(ops *model.RankOps, now time.Time) {
	w.stats.Ops += int64(len(ops.Ops))
	j := w.job(&ops.Rank, now)
	r := w.rank(j, &ops.Rank, now)
	if r == nil {
		return
	}
	latest := r.hearOps(ops.Ops, now)
	before := r.completed
	over := w.over[:0]
	for i := range ops.Ops {
		o := &ops.Ops[i]
		switch {
		case rawEnd(o) > latest:
			w.stats.TimesAhead++
		case o.Kind == model.KindScope:
			j.rhythm.stretch(stretch{o.Start, rawEnd(o), phaseOfScope(o.Phase, o.Name)})
		case o.Kind.IsComm() && o.Comm.ID != "" && !o.EndInferred && o.Collective.SeqScope != model.ScopeComm: // not of a dump
			over = append(over, o)
		}
	}
	// They come as they began. Of several at once, the later may have ended first.
	slices.SortStableFunc(over, func(x, y *model.Op) int { return cmp.Compare(rawEnd(x), rawEnd(y)) })
	for _, o := range over {
		w.completed(j, r, o, now)
	}
	clear(over)
	w.over = over[:0]
	if r.completed > before {
		j.replaced = false // another life has begun, and this one goes on as well
		r.came = now
		r.goOn(now)
		w.alive(r, now)
		j.countAbsence(r)
	}
	w.makeRoom()
}

// hearOps notes what the ends of operations that come now say of the clock of the rank's host, and
// returns the latest that is believed.
func (r *rank) hearOps(ops []model.Op, now time.Time) (latest int64) {
	latest = r.host.latest(now)
	newest, ahead := int64(0), int64(math.MaxInt64)
	for i := range ops {
		if end := rawEnd(&ops[i]); end <= latest {
			newest = max(newest, end)
		} else {
			ahead = min(ahead, end)
		}
	}
	switch {
	case newest > 0:
		r.hear(newest, now)
	case ahead < math.MaxInt64:
		r.hear(ahead, now)
	}
	if newest > r.newest || ahead < math.MaxInt64 {
		r.newest, r.worked = max(r.newest, newest), now
	}
	return r.host.latest(now)
}

// rawEnd is the end as the rank's own host has it: its states are of that clock.
func rawEnd(o *model.Op) int64 {
	if o.Clock.RawStart.OK {
		return o.Clock.RawStart.V + o.Duration()
	}
	return o.End
}

func (w *Watch) completed(j *job, r *rank, o *model.Op, now time.Time) {
	p := r.comms[o.Comm.ID]
	if p == nil {
		if len(r.comms) >= w.cfg.MaxComms {
			w.stats.CommsRefused++
			return
		}
		if r.comms == nil {
			r.comms = map[string]*progress{}
		}
		p = &progress{comm: o.Comm}
		r.comms[o.Comm.ID] = p
		j.grow(r, progressBytes+o.Comm.TextBytes())
	}
	end := rawEnd(o)
	j.grow(r, p.reach(o))
	if end <= p.ended {
		return // of another stream, or told before
	}
	if p.ended > 0 && end-p.ended < int64(longest) {
		j.rhythm.gap(p.ended, end, w.cfg.Floor/4, now)
	}
	p.ended, p.came = end, now
	r.completed = max(r.completed, end)
}

// maxFuncs bounds the functions of one communicator that are told apart: NCCL has a dozen.
const maxFuncs = 32

// reach notes how far a function is, and returns how many bytes that takes.
func (p *progress) reach(o *model.Op) (bytes int) {
	c := &o.Collective
	if !c.Seq.OK || o.Kind != model.KindCollective {
		return 0
	}
	f := p.funcs[c.Name]
	if f == nil {
		if len(p.funcs) >= maxFuncs {
			return 0
		}
		bytes = reachedBytes + len(c.Name)
		if p.funcs == nil {
			p.funcs = map[string]*reached{}
		}
		f = &reached{seq: c.Seq.V}
		p.funcs[c.Name] = f
	}
	f.scope, f.seq = c.SeqScope, max(f.seq, c.Seq.V)
	return bytes
}

// goOn notes that a rank that stood has completed something since.
func (r *rank) goOn(now time.Time) {
	for _, h := range r.states {
		if h.state.Time != 0 && r.completed > h.state.Time {
			r.moved, r.absence = now, nil
		}
	}
}

// alive takes back what others said of a rank that has completed something since; what it told
// before may come a little later. What its own process's end says stays.
func (w *Watch) alive(r *rank, now time.Time) {
	if r.absence == nil || r.ownEnd || now.Sub(r.absentAt) <= w.cfg.StateTTL {
		return
	}
	r.absence, r.gone, r.moved = nil, false, now
}

// fromSpans is the state of a rank of which nothing but what it completed is known: what it
// had enqueued beyond that, it would have told of once that did not end.
func (r *rank) fromSpans() *model.RankState {
	s := &model.RankState{Rank: r.of, Time: r.completed, Source: model.StateRankEvents, Name: fromEvents}
	for _, p := range r.comms {
		s.Comms = append(s.Comms, p.state())
	}
	sortComms(s.Comms)
	return s
}

// state is how far the rank is on a communicator.
func (p *progress) state() model.CommState {
	c := model.CommState{Comm: p.comm}
	for name, f := range p.funcs {
		c.Scope = f.scope
		to := model.Frontier{Enqueued: model.Some(f.seq), Completed: model.Some(f.seq)}
		if f.scope == model.ScopeCommFunc {
			to.Func = name
		} else if len(c.Frontiers) > 0 {
			at := &c.Frontiers[0]
			at.Enqueued.V, at.Completed.V = max(at.Enqueued.V, f.seq), max(at.Completed.V, f.seq)
			continue
		}
		c.Frontiers = append(c.Frontiers, to)
	}
	sortFrontiers(c.Frontiers)
	return c
}
