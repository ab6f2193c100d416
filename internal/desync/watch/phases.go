// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// phaseHeld is what a rank is in that a person or a signal holds.
const phaseHeld = "held"

// phaseUnknown is what a rank is in of which nothing was ever heard: no gaps are of it.
const phaseUnknown = "unknown"

// phaseHang is what the time of a hang that was told is filed under: it is no rhythm.
const phaseHang = "hang"

// scopeDebugger is the scope of a rank that stands at a breakpoint.
const scopeDebugger = "debugger"

// phaseOf is in which phase a rank stands, and so whose limit holds for it.
func phaseOf(s *model.RankState) string {
	if heldProcess(s.Process) || s.Scope == scopeDebugger {
		return phaseHeld
	}
	return phaseOfScope(s.Phase, s.Scope)
}

func phaseOfScope(phase, scope string) string {
	switch phase {
	case model.PhaseInit, model.PhaseCompile, model.PhaseEval, model.PhaseCheckpoint:
		return phase
	}
	switch scope {
	case model.ScopeCompile:
		return model.PhaseCompile
	case model.ScopeCheckpointSave, model.ScopeCheckpointLoad:
		return model.PhaseCheckpoint
	case model.ScopeProcessGroup:
		return model.PhaseInit
	case scopeDebugger:
		return phaseHeld
	}
	return model.PhaseTrain
}

// stretch is a time, Unix ns, in which some rank of the job was in a phase other than
// training: the others' gaps are then of that phase, too.
type stretch struct {
	from, to int64
	phase    string
}

// maxStretches bounds those that are remembered: gaps are filed soon after they end.
const maxStretches = 256

// fileAfter is for how long a gap waits until what it was is known: scopes come with their
// end, by way of other agents.
const fileAfter = 10 * time.Second

// maxPending bounds the gaps that wait; what comes beyond is filed at once.
const maxPending = 1 << 15

type pendingGap struct {
	from, to int64
	due      time.Time
}

// rhythm is what a job's gaps are, by phase.
type rhythm struct {
	phases    map[string]*stats.LogLinear
	stretches []stretch
	pending   []pendingGap // in order of due
	hurried   int64
}

// gap files the time between two completions of a rank on a communicator. Only a long one can
// be of another phase than training, and waits until that is known.
func (r *rhythm) gap(from, to int64, long time.Duration, now time.Time) {
	switch {
	case time.Duration(to-from) < long:
		r.file(model.PhaseTrain, to-from)
	case len(r.pending) >= maxPending:
		r.hurried++
		r.file(r.phaseOf(from, to), to-from)
	default:
		r.pending = append(r.pending, pendingGap{from, to, now.Add(fileAfter)})
	}
}

func (r *rhythm) file(phase string, ns int64) {
	if r.phases == nil {
		r.phases = map[string]*stats.LogLinear{}
	}
	h := r.phases[phase]
	if h == nil {
		h = &stats.LogLinear{}
		r.phases[phase] = h
	}
	h.Add(uint64(max(ns, 0)))
}

// settle files the gaps that have waited.
func (r *rhythm) settle(now time.Time) {
	n := 0
	for ; n < len(r.pending) && !now.Before(r.pending[n].due); n++ {
		p := &r.pending[n]
		r.file(r.phaseOf(p.from, p.to), p.to-p.from)
	}
	if n > 0 {
		r.pending = append(r.pending[:0], r.pending[n:]...)
	}
}

// phaseOf is the phase that the greatest part of a gap was in, where that is at least half.
func (r *rhythm) phaseOf(from, to int64) string {
	phase, most := model.PhaseTrain, (to-from)/2
	for i := range r.stretches {
		s := &r.stretches[i]
		if both := min(to, s.to) - max(from, s.from); both >= most {
			phase, most = s.phase, both
		}
	}
	return phase
}

// stretch notes a phase; equal ones that touch are one.
func (r *rhythm) stretch(s stretch) {
	if s.phase == model.PhaseTrain || s.to <= s.from {
		return
	}
	for i := len(r.stretches) - 1; i >= 0; i-- {
		k := &r.stretches[i]
		if k.phase == s.phase && s.from <= k.to && k.from <= s.to {
			k.from, k.to = min(k.from, s.from), max(k.to, s.to)
			return
		}
	}
	if len(r.stretches) >= maxStretches {
		r.stretches = append(r.stretches[:0], r.stretches[1:]...)
	}
	r.stretches = append(r.stretches, s)
}
