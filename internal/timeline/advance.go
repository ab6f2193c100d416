// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// sweepAfter is how often clocks are gone through when nothing came.
const sweepAfter = time.Second

// chunk is how many clocks are gone through while nobody can be placed.
const chunk = 256

// Advance solves what came since the last call. Without news it costs little.
// Readings are placed meanwhile, and edges taken for the next solution.
func (t *Timeline) Advance(now time.Time) Outcome {
	if t.shared != nil {
		return t.advanceShared(now)
	}
	t.solving.Lock()
	defer t.solving.Unlock()
	t.drain()
	t.count()
	var out Outcome
	solved := t.fresh
	if solved {
		t.fresh = false
		t.rounds++
		out.Models = t.integrate(t.solver.Solve(), now)
		t.count()
	}
	if solved || now.Sub(t.swept) >= sweepAfter || now.Before(t.swept) {
		t.swept = now
		t.unpair(now)
		ids := t.ids()
		t.forget(ids, now)
		out.Findings = t.watch.look(t, ids, now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feed(&out)
	return out
}

// integrate takes a solution over into scales and tracks: some clocks at a time, so
// that spans hardly wait.
func (t *Timeline) integrate(sol *graph.Solution, now time.Time) []model.ClockModel {
	solved, shifts := t.onScales(sol, now)
	raws := countRaws(solved)
	votes := t.votes(solved)
	t.mu.Lock()
	t.solution = sol
	for _, c := range sol.Components() {
		if t.waits[c.Reference] != nil {
			continue
		}
		s := t.scale(c, shifts[c.Reference])
		c.At += shifts[c.Reference]
		s.follow(c.At, votes[c.Reference])
		s.at, s.clocks, s.edges, s.misfit = c.At, c.Clocks, c.Edges, c.Misfit
		s.raws = raws[c.Reference]
	}
	t.mu.Unlock()
	var news []model.ClockModel
	for len(solved) > 0 {
		n := min(chunk, len(solved))
		t.mu.Lock()
		news = t.learnAll(solved[:n], news, now)
		t.mu.Unlock()
		solved = solved[n:]
	}
	return news
}

// countRaws returns how many raw clocks that nobody contradicts each reference has,
// itself among them.
func countRaws(solved []graph.Solved) map[string]int {
	raws := map[string]int{}
	for i := range solved {
		if !solved[i].Untrusted && parse(solved[i].Clock).raw {
			raws[solved[i].Reference]++
		}
	}
	return raws
}

func (t *Timeline) learnAll(solved []graph.Solved, news []model.ClockModel, now time.Time) []model.ClockModel {
	for i := range solved {
		s := t.scales[solved[i].Reference]
		if s == nil { // a clock that was cut off, and stands alone
			s = t.scale(graph.Component{Reference: solved[i].Reference, At: solved[i].At}, 0)
			s.follow(solved[i].At, nil)
		}
		if tr := t.learn(&solved[i], s, now); tr != nil {
			news = append(news, tr.model())
		}
	}
	return news
}

// scale returns the scale of a component. One with a new reference continues the
// scale on which the reference stood, or would stand by shift later had it not been set.
func (t *Timeline) scale(c graph.Component, shift int64) *scale {
	s := t.scales[c.Reference]
	if s != nil {
		s.turn = t.opt.turn()
		return s
	}
	s = &scale{name: Prefix + c.Reference, reference: c.Reference, root: c.Reference, turn: t.opt.turn()}
	s.asked.Store(c.At + shift)
	if tr := t.tracks[c.Reference]; tr != nil && !tr.untrusted && !tr.foreign && tr.last().scale.anchored {
		old := tr.last()
		ref := c.At + old.line.offset(c.At)
		pace := (1+old.line.piece(c.At).slope)*(1+old.scale.pace(ref)) - 1
		s.line.follow(c.At+shift, old.scale.time(ref)-c.At, clamp(pace), c.At+shift, maxScaleKnots)
		s.root = old.scale.root
		s.anchored, s.setBy, s.paired = true, old.scale.setBy, old.scale.paired
	}
	t.scales[c.Reference] = s
	return s
}

// learn updates the track of a solved clock, and returns it where that is news.
func (t *Timeline) learn(s *graph.Solved, on *scale, now time.Time) *track {
	tr := t.tracks[s.Clock]
	if tr == nil {
		if tr = t.newTrack(s.Clock); tr == nil {
			return nil
		}
	}
	was := tr.untrusted
	tr.untrusted, tr.undecided, tr.neighbours, tr.evidence = s.Untrusted || was && tr.restless(), s.Undecided, s.Neighbours, s.Evidence
	tr.foreign = false
	w := windowOf(s)
	w.growth = t.growth(tr.name, w.growth)
	if tr.doubt != nil && tr.doubt.first != nil && t.decided(tr, now) {
		t.decide(tr)
	}
	if d := tr.doubt; d != nil && d.first != nil && !s.Untrusted {
		news := !d.told
		d.told = true
		return keep(tr, news || was != tr.untrusted)
	}
	if len(tr.segments) > 0 && s.Untrusted {
		// What is wrong moves nothing; the clock may be trusted again.
		tr.heard = now
		return keep(tr, !was)
	}
	if len(tr.segments) > 0 && t.leftAlone(tr, on, &w) {
		tr.held = now
		return keep(tr, was != tr.untrusted)
	}
	if t.referenceMoved(tr, on, &w) {
		tr.held = now
		return keep(tr, was != tr.untrusted)
	}
	if w, on, ok := t.again(tr, &w); ok {
		news := w.by != tr.told
		tr.told = w.by
		return keep(tr, tr.learn(on, w, &t.opt) || news || was != tr.untrusted)
	}
	if !tr.heardOf(on, &w) || !tr.learn(on, w, &t.opt) {
		return keep(tr, was != tr.untrusted)
	}
	tr.heard, tr.untrusted = now, tr.restless()
	if d := tr.doubt; d != nil && d.waits && w.from > d.from {
		tr.doubt = nil
	}
	t.current(tr)
	return tr
}

// referenceMoved reports whether a clock jumps by what the reference can have been set by,
// as its own host tells: one that few neighbours compare with it stays where it is until
// enough of them do.
func (t *Timeline) referenceMoved(tr *track, on *scale, w *window) bool {
	ref := t.tracks[on.reference]
	if ref == nil || ref == tr || ref.doubt == nil || ref.doubt.waits || len(tr.segments) == 0 {
		return false
	}
	by, slack := tr.departs(on, w)
	jump := math.Abs(float64(by))
	return jump > slack && jump > float64(ref.doubt.by)/2 && jump < float64(ref.doubt.by)+slack
}

// leftAlone reports whether a clock that stood beside others is compared with nobody for
// a while: it stays where it is.
func (t *Timeline) leftAlone(tr *track, on *scale, w *window) bool {
	seg := tr.last()
	return on.reference == tr.id && on.clocks < 2 && seg.scale != on && float64(w.until)-float64(seg.last().until) < float64(t.opt.Forget)
}

// growth is by what a bound grows per ns outside of a window. A real-time clock is no
// oscillator: from any moment on it may be slewed.
func (t *Timeline) growth(n name, g float64) float64 {
	if n.realtime {
		return max(g, t.opt.Slew)
	}
	return g
}

func keep(tr *track, news bool) *track {
	if news {
		return tr
	}
	return nil
}

func (t *Timeline) newTrack(id string) *track {
	if len(t.tracks) >= t.opt.MaxClocks {
		t.stats.Overflowed.Add(1)
		return nil
	}
	tr := newTrack(id)
	t.births++
	tr.born, tr.begun = t.births, t.opt.Now()
	t.tracks[id] = tr
	return tr
}

// ids are all clocks, in order.
func (t *Timeline) ids() []string {
	t.mu.RLock()
	ids := slices.Collect(maps.Keys(t.tracks))
	t.mu.RUnlock()
	slices.Sort(ids)
	return ids
}

// forget drops the clocks of which nothing was heard for long, and scales that
// nothing stands on; the others are expected to have moved on. The caller holds
// solving.
func (t *Timeline) forget(ids []string, now time.Time) {
	for part := range slices.Chunk(ids, chunk) {
		t.mu.Lock()
		for _, id := range part {
			t.expire(id, now)
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetAliases(now)
	for ref, s := range t.scales {
		if !s.used {
			delete(t.scales, ref)
		}
		s.used = false
	}
}

func (t *Timeline) expire(id string, now time.Time) {
	tr := t.tracks[id]
	if now.Sub(tr.heard) > t.opt.Forget && now.Sub(tr.held) > t.opt.Forget || len(tr.segments) == 0 || t.outlived(tr) {
		if d := tr.doubt; d != nil && d.first != nil && t.tracks[d.first.raw] != nil {
			t.tracks[d.first.raw].doubt = nil
		}
		delete(t.tracks, id)
		t.stats.Forgotten.Add(1)
		t.forgetHost(tr)
		return
	}
	if d := tr.doubt; d != nil && d.first != nil && now.Sub(d.since) > undecidedFor {
		t.decide(tr)
	}
	tr.expect(now)
	for _, s := range tr.segments {
		s.scale.used = true
	}
}

// model is the newest window as others get it, straight to the timeline. Its bound
// has room for what the timeline itself bends between From and Until.
func (t *track) model() model.ClockModel {
	seg := t.last()
	w, s := seg.last(), seg.scale
	ref := w.at + w.offset
	m := model.ClockModel{
		Clock: t.id, Timeline: s.name, From: w.from, Until: w.until, At: w.at,
		Offset: s.time(ref) - w.at, Drift: (1+w.drift)*(1+s.pace(ref)) - 1,
		Bound: w.bound, Growth: w.growth, Sigma: w.sigma,
		Stepped: seg.steppedAtStart && len(seg.windows) == 1, Untrusted: t.untrusted, Undated: !s.anchored,
	}
	if t.untrusted {
		m.Bound = model.NoBound
	}
	if m.Bound == model.NoBound {
		return m
	}
	off := int64(0)
	for _, r := range append(s.bends(w), w.from, w.until) {
		off = max(off, distance(m.Time(r), s.time(r+w.offsetAt(r))))
	}
	m.Bound = t.doubt.widened(grow(m.Bound, off), math.MaxInt64)
	return m
}

// bends returns the readings of a clock, inside a window, at which the scale bends.
func (s *scale) bends(w *window) []int64 {
	var at []int64
	for _, k := range s.line.knots {
		if r := k.x - w.offsetAt(k.x-w.offset); !s.foreign && r > w.from && r < w.until {
			at = append(at, r)
		}
	}
	return at
}
