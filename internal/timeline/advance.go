package timeline

import (
	"maps"
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
	t.solving.Lock()
	defer t.solving.Unlock()
	t.drain()
	t.count()
	var out Outcome
	solved := t.fresh
	if solved {
		t.fresh = false
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
	solved := sol.Models()
	votes := t.votes(solved)
	t.mu.Lock()
	t.solution = sol
	for _, c := range sol.Components() {
		s := t.scale(c)
		s.follow(c.At, votes[c.Reference])
		s.at, s.clocks, s.edges, s.misfit = c.At, c.Clocks, c.Edges, c.Misfit
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

func (t *Timeline) learnAll(solved []graph.Solved, news []model.ClockModel, now time.Time) []model.ClockModel {
	for i := range solved {
		s := t.scales[solved[i].Reference]
		if s == nil { // a clock that was cut off, and stands alone
			s = t.scale(graph.Component{Reference: solved[i].Reference, At: solved[i].At})
			s.follow(solved[i].At, nil)
		}
		if tr := t.learn(&solved[i], s, now); tr != nil {
			news = append(news, tr.model())
		}
	}
	return news
}

// scale returns the scale of a component. One with a new reference continues the
// scale on which the reference stood.
func (t *Timeline) scale(c graph.Component) *scale {
	s := t.scales[c.Reference]
	if s != nil {
		return s
	}
	s = &scale{name: Prefix + c.Reference, reference: c.Reference}
	s.asked.Store(c.At)
	if tr := t.tracks[c.Reference]; tr != nil && !tr.untrusted && !tr.foreign && tr.last().scale.anchored {
		old := tr.last()
		ref := c.At + old.line.offset(c.At)
		pace := (1+old.line.piece(c.At).slope)*(1+old.scale.pace(ref)) - 1
		s.line.follow(c.At, old.scale.time(ref)-c.At, clamp(pace), c.At, maxScaleKnots)
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
	tr.untrusted, tr.undecided, tr.neighbours, tr.evidence = s.Untrusted, s.Undecided, s.Neighbours, s.Evidence
	tr.foreign = false
	w := window{
		from: s.From, until: s.Until, at: s.At, offset: s.Offset, drift: s.Drift,
		bound: model.NoBound, growth: t.growth(tr.name, s.Growth), sigma: min(s.Sigma, float64(farthest)),
	}
	if s.Bounded {
		w.bound = s.Bound
	}
	if s.Untrusted && len(tr.segments) > 0 {
		// What is wrong moves nothing; the clock may be trusted again.
		tr.heard = now
		return keep(tr, !was)
	}
	if !tr.anew(on, &w) || !tr.learn(on, w, &t.opt) {
		return keep(tr, was != s.Untrusted)
	}
	tr.heard = now
	t.current(tr)
	return tr
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

// current makes the clock the one that its host's name resolves to, unless the host
// has booted since: the solver knows the old clock for a while yet.
func (t *Timeline) current(tr *track) {
	if !tr.name.realtime || tr.name.host == "" {
		return
	}
	if now := t.tracks[t.hosts[tr.name.host]]; now == nil || tr.born > now.born {
		t.hosts[tr.name.host] = tr.id
	}
}

func (t *Timeline) newTrack(id string) *track {
	if len(t.tracks) >= t.opt.MaxClocks {
		t.stats.Overflowed.Add(1)
		return nil
	}
	tr := newTrack(id)
	t.births++
	tr.born = t.births
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
	if now.Sub(tr.heard) > t.opt.Forget || len(tr.segments) == 0 {
		delete(t.tracks, id)
		t.stats.Forgotten.Add(1)
		if t.hosts[tr.name.host] == id {
			delete(t.hosts, tr.name.host)
		}
		return
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
		Stepped: seg.steppedAtStart && len(seg.windows) == 1, Untrusted: t.untrusted,
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
	m.Bound = grow(m.Bound, off)
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
