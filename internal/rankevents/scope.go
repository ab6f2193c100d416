// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// scope takes a phase of the host.
func (r *Rank) scope(rec *ring.Record) {
	sc := rec.Scope()
	sc.End = max(sc.Begin, sc.End)
	if sc.End > r.now+future {
		r.stats.BadTimes++
		return
	}
	name := firstOf(r.src.String(sc.Name), "scope")
	var s *step
	if sc.InStep {
		r.enterMarked()
		if s = r.room(int64(sc.Step)); s == nil {
			r.stats.Late++
		}
	}
	var seq int64
	if s != nil {
		seq = s.addScope(r.keys.id(name), &sc, &r.steps.pages)
	}
	if r.node.cfg.Level < ring.LevelCollectives {
		return
	}
	op := r.hostOp(s, model.KindScope, name, sc.Begin, sc.End, sc.TID)
	op.Seq, op.Phase = seq, phaseName(sc.Phase)
	if sc.InStep {
		op.Step = model.Some(int64(sc.Step))
	}
}

// addScope folds a scope and returns its number among those of its name. The
// phase of a step is that of its longest outermost scope.
func (s *step) addScope(key int, sc *ring.Scope, pool *stats.Pool) int64 {
	took := sc.End - sc.Begin
	k := s.key(key)
	k.hist.Add(took, pool)
	k.seq++
	s.lastEnd = max(s.lastEnd, sc.End)
	if sc.Depth == 0 && sc.Phase != ring.PhaseNone && took > s.phaseTook {
		s.phase, s.phaseTook = sc.Phase, took
	}
	return k.seq - 1
}

// call takes a call into the library.
func (r *Rank) call(rec *ring.Record) {
	if r.node.cfg.Level < ring.LevelAll {
		return
	}
	a := rec.API()
	name := firstOf(r.src.String(a.Name), "nccl call")
	var s *step
	if a.InStep {
		s = r.room(int64(a.Step))
	}
	op := r.hostOp(s, model.KindHost, name, a.Begin, max(a.Begin, a.End), a.TID)
	op.GraphCaptured = a.GraphCaptured
	if a.InStep {
		op.Step = model.Some(int64(a.Step))
	}
	if s != nil {
		k := s.key(r.keys.id(name))
		op.Seq = k.seq
		k.seq++
	}
}

func (r *Rank) hostOp(s *step, kind model.OpKind, name string, begin, end uint64, tid uint32) *model.Op {
	op := r.next()
	op.Kind, op.Name = kind, name
	op.Start, op.End = r.unix(begin), r.unix(end)
	op.ThreadID = model.Some(int64(tid))
	if s != nil {
		s.emitted++
	}
	return op
}
