// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Several gateways can have one timeline, where all of them get all edges and models by a log that they share. One of
// them leads: it solves for the clocks. All of them, the leader too, place spans by the models that come back from the
// log. So the models are all that a timeline needs to go on: a gateway that begins to lead goes on from them.

// shared is what a timeline of several gateways has beside the models of the leader.
type shared struct {
	ready chan struct{} // closed once what the others know was read

	mu     sync.Mutex // guards what follows, and is taken before the locks of both timelines
	caught bool       // ready is closed
	since  time.Time  // when it was
	leads  bool
	asked  bool      // whether it leads was said
	solver *Timeline // of the leader; nil: it begins with the next Advance
	edges  *bounded.Map[edgeKey, keptEdge]
	took   int64 // how often it began
}

// edgeKey names what an edge replaces: the one before of the same two clocks.
type edgeKey struct{ src, dst, source string }

// keptEdge is the newest edge of two clocks, and when it came.
type keptEdge struct {
	edge model.ClockEdge
	came time.Time
}

const (
	// keptFor is how old edges may be with which a gateway begins to lead: some windows of the slowest pairs.
	keptFor = 30 * time.Second
	// gathers is for how long edges come before the first solution: clocks of which none has come yet would be cut off.
	gathers = 5 * time.Second
	// newerBy is by how much later than a solution here a model must have observed a clock to be another leader's.
	newerBy = int64(time.Second)
	// maxTurn is how fast the pace of a shared scale changes, per ns: 1 ppm in a second. Others extrapolate it.
	maxTurn = 1e-15
	// turnsIn is in how many ns at most the pace changes at once: some solutions.
	turnsIn = int64(4 * time.Second)
)

func newShared(opt *Options) *shared {
	return &shared{
		ready: make(chan struct{}),
		edges: bounded.NewMap(bounded.MapConfig[edgeKey, keptEdge]{
			Entries: edgesOfClock * opt.MaxClocks, Bytes: edgesOfClock * opt.MaxClocks * bytesOfEdge, Order: bounded.ByUse,
			Size: func(k edgeKey, _ keptEdge) int { return len(k.src) + len(k.dst) + len(k.source) },
		}),
	}
}

// Ready returns a channel that is closed once what other gateways know was read; nil where the timeline is not shared.
func (t *Timeline) Ready() <-chan struct{} {
	if t.shared == nil {
		return nil
	}
	return t.shared.ready
}

// CaughtUp reports that everything that other gateways have written so far was given to AddEdge and AddModel. A timeline
// that solves without the last models sets the scale anew under the same name, so that clocks jump beyond their bounds:
// call it only once the log was read to its end. Edges that came before are not solved for: their age is unknown.
func (t *Timeline) CaughtUp() {
	s := t.shared
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.caught {
		s.caught, s.since = true, t.opt.Now()
		close(s.ready)
	}
}

// Lead has a shared timeline solve for the clocks from now on, or leave that to another gateway. It solves once CaughtUp
// was called.
func (t *Timeline) Lead(leads bool) {
	if s := t.shared; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.leads, s.asked = leads, true
	}
}

// Unasked reports whether what other gateways know was read some time ago, and nothing has said since whether this one
// solves: Lead was never called.
func (t *Timeline) Unasked(now time.Time, wait time.Duration) bool {
	s := t.shared
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caught && !s.asked && now.Sub(s.since) >= wait
}

// solvesBy returns the timeline that solves; nil where this one does not lead.
func (t *Timeline) solvesBy() *Timeline {
	s := t.shared
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leads {
		return nil
	}
	return s.solver
}

// Leads reports whether this timeline solves for the clocks: a shared one that follows does not.
func (t *Timeline) Leads() bool {
	s := t.shared
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads && s.solver != nil
}

// Observe takes an edge that this process has observed. A shared timeline gives it to the readers of feeds, which send
// it to all gateways: it counts once it comes back.
func (t *Timeline) Observe(e model.ClockEdge) error {
	if t.shared == nil {
		return t.AddEdge(e)
	}
	if err := checkNames(&e); err != nil {
		t.stats.Refused.Add(1)
		return err
	}
	// Bounds that cross are evidence of both clocks.
	if err := graph.Check(&e); err != nil && e.Lower <= e.Upper {
		t.stats.Refused.Add(1)
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feed(&Outcome{Edges: []model.ClockEdge{e}})
	return nil
}

// addShared takes an edge that all gateways get.
func (t *Timeline) addShared(e *model.ClockEdge) error {
	err := graph.Check(e)
	s := t.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.caught {
		return err
	}
	if s.leads && s.solver != nil {
		err = s.solver.AddEdge(*e)
	}
	if err == nil && !e.Prompt {
		s.edges.Set(edgeKey{e.Src, e.Dst, e.Source}, keptEdge{edge: *e, came: t.opt.Now()})
	}
	return err
}

// advanceShared solves where this timeline leads, and goes through the clocks of the models.
func (t *Timeline) advanceShared(now time.Time) Outcome {
	var out Outcome
	if solver := t.leading(now); solver != nil {
		out = solver.Advance(now)
	}
	t.solving.Lock()
	defer t.solving.Unlock()
	if now.Sub(t.swept) >= sweepAfter || now.Before(t.swept) {
		t.swept = now
		t.forget(t.ids(), now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.feed(&out)
	return out
}

// leading returns the timeline that solves; nil where another gateway's does.
func (t *Timeline) leading(now time.Time) *Timeline {
	s := t.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edges.DropOldest(func(_ edgeKey, k keptEdge) bool { return now.Sub(k.came) > keptFor })
	if !s.leads || !s.caught || now.Sub(s.since) < gathers {
		return nil
	}
	if s.solver == nil {
		s.took++
		s.solver = t.takeOver()
		for _, k := range s.edges.All() {
			_ = s.solver.AddEdge(k.edge) // refused edges are counted
		}
	}
	return s.solver
}

// age judges a model of the leader by when it observed its clock last, ns on its timeline. It reports false for one
// that is too old, or older than what is known. Models of an undated timeline are compared among themselves: its times
// have another origin. The caller holds mu.
func (t *Timeline) age(tr *track, on *scale, m *model.ClockModel) (heard time.Time, ok bool) {
	now, end := t.opt.Now(), m.Time(m.Until)
	if tr != nil && len(tr.segments) > 0 && !on.anchored && tr.last().scale.anchored && tr.last().scale.name == on.name {
		return time.Time{}, false // a timeline that has a date keeps it
	}
	if on.anchored {
		t.newest = max(t.newest, min(end, now.UnixNano()))
	} else {
		on.newest = max(on.newest, end)
	}
	age := time.Duration(max(0, t.newestOn(on)-end))
	if age > t.opt.Forget {
		return time.Time{}, false
	}
	if tr != nil && len(tr.segments) > 0 && tr.last().scale == on && end < tr.last().last().known-newerBy {
		return time.Time{}, false
	}
	return now.Add(-age), true
}

// newestOn is up to when any model has observed a clock, by the time of a scale. The caller holds mu.
func (t *Timeline) newestOn(s *scale) int64 {
	if s.anchored {
		return t.newest
	}
	return s.newest
}

// passed forgets the solution here where another gateway has solved later: this one goes on from there. The caller
// holds shared.mu.
func (s *shared) passed(m *model.ClockModel) {
	if s.solver == nil {
		return
	}
	s.solver.mu.RLock()
	tr := s.solver.tracks[m.Clock]
	passed := false
	if tr != nil && len(tr.segments) > 0 {
		own := tr.model()
		later := m.Undated == own.Undated && m.Time(m.Until) > own.Time(own.Until)+newerBy
		passed = m.Timeline == own.Timeline && (later || own.Undated && !m.Undated)
	}
	s.solver.mu.RUnlock()
	if passed {
		s.solver = nil
	}
}

// counted returns what the timeline that solves has counted of edges.
func (s *shared) counted() graph.Counters {
	s.mu.Lock()
	solver := s.solver
	s.mu.Unlock()
	if solver == nil {
		return graph.Counters{}
	}
	return solver.counted()
}

// refusedShared counts an edge that cannot be used.
func (t *Timeline) refusedShared(err error) error {
	if err != nil {
		t.stats.Refused.Add(1)
	}
	return err
}

// outlived reports whether a clock was not observed for long, by the time of the timeline: a model of it was read before
// newer ones of other clocks. The caller holds mu.
func (t *Timeline) outlived(tr *track) bool {
	return t.shared != nil && tr.foreign && t.newestOn(tr.last().scale)-tr.last().last().known > t.opt.Forget.Nanoseconds()
}
