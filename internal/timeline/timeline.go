// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Prefix begins the name of a timeline; the clock that it rests on follows, and, of
// one that was set anew, #2 and so on.
const Prefix = "timeline:"

// Provider is what gives a timeline to others: the timeline extension.
type Provider interface {
	Timeline() *Timeline
}

// Outcome is what an Advance changed.
type Outcome struct {
	Models   []model.ClockModel // of the clocks of which something new is known
	Findings []model.Finding
	// Edges are what this process has observed, for all gateways of a shared timeline; only a Feed has them.
	Edges []model.ClockEdge
}

// Timeline places readings of many clocks. It is safe for concurrent use.
type Timeline struct {
	opt   Options
	stats counters

	solving sync.Mutex // guards what follows, and is taken before mu
	solver  *graph.Solver
	rounds  int64                         // of solutions
	fresh   bool                          // edges came since the last solution
	paired  *bounded.Map[string, pairing] // by real-time clock, the one last seen longest ago first
	watch   *watch
	swept   time.Time // when all clocks were gone through last

	comparing sync.Mutex                       // guards what follows, and is taken last: a reading does not wait for a solution
	compared  *bounded.Map[string, comparison] // by clock of a host, the one last seen longest ago first

	shared *shared // nil: this timeline is that of one gateway

	inbox inbox // of edges that come during a solution
	edges atomic.Pointer[graph.Counters]

	mu       sync.RWMutex // guards what follows
	solution *graph.Solution
	tracks   map[string]*track
	scales   map[string]*scale // by reference
	hosts    map[string]string // host id to its current real-time clock
	rivals   map[string]string // host id to a real-time clock of another boot that lives on beside it
	aliases  map[string]*alias
	feeds    map[*Feed]bool
	births   int64
	waits    map[string]*wait // by reference
	newest   int64            // Unix ns, up to when any model has observed a clock
}

var _ clock.Placer = (*Timeline)(nil)

// counters count what no other part counts.
type counters struct {
	Refused, Overflowed, Forgotten, Solved, FeedsOverflowed, InboxOverflowed atomic.Int64
	Prompt, Unused, Old                                                      atomic.Int64
	AliasesOverflowed, AliasesAmbiguous, HostsAmbiguous                      atomic.Int64
}

// New returns a Timeline that knows no clock.
func New(opt Options) *Timeline {
	opt = opt.withDefaults()
	t := &Timeline{
		opt: opt, tracks: map[string]*track{}, scales: map[string]*scale{}, hosts: map[string]string{}, rivals: map[string]string{},
		aliases: map[string]*alias{}, paired: newLastSeen[pairing](&opt), compared: newLastSeen[comparison](&opt), feeds: map[*Feed]bool{}, watch: newWatch(&opt), waits: map[string]*wait{},
	}
	if opt.Shared {
		t.shared = newShared(&t.opt)
	}
	t.solver = t.newSolver(opt.Prefer)
	return t
}

// newLastSeen returns a map of at most MaxClocks clocks, the one last seen longest ago first. Its owner
// refuses further clocks.
func newLastSeen[V any](opt *Options) *bounded.Map[string, V] {
	return bounded.NewMap(bounded.MapConfig[string, V]{Entries: opt.MaxClocks, Order: bounded.ByUse})
}

func (t *Timeline) newSolver(prefer []string) *graph.Solver {
	return graph.New(graph.Options{Prefer: prefer, MaxClocks: t.opt.MaxClocks, MaxEdges: edgesOfClock * t.opt.MaxClocks})
}

// scalesOfClock bounds timelines: a clock stands on one, and its history on those before.
const scalesOfClock = 2

// farthest bounds readings and offsets: 146 years from either side of 1970.
const farthest = math.MaxInt64 / 2

// AddModel takes a model that another gateway solved; it counts at once. Of a clock
// that is solved here, models of others are left out and counted, as is one that is older than
// Options.Forget where the timeline is shared.
func (t *Timeline) AddModel(m model.ClockModel) error {
	if err := checkModel(&m); err != nil {
		t.stats.Refused.Add(1)
		return err
	}
	if s := t.shared; s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.passed(&m)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tr, heard := t.tracks[m.Clock], t.opt.Now()
	if tr != nil && !tr.foreign {
		t.stats.Solved.Add(1)
		return nil
	}
	on, err := t.foreign(&m)
	if err != nil {
		t.stats.Refused.Add(1)
		return err
	}
	if t.shared != nil {
		var ok bool
		if heard, ok = t.age(tr, on, &m); !ok {
			t.stats.Old.Add(1)
			return nil
		}
	}
	if tr == nil {
		if tr = t.newTrack(m.Clock); tr == nil {
			return fmt.Errorf("add clock model of %s: got clock %d; want at most %d", m.Clock, t.opt.MaxClocks+1, t.opt.MaxClocks)
		}
	}
	tr.foreign, tr.untrusted, tr.heard = true, m.Untrusted, heard
	if m.Untrusted && len(tr.segments) > 0 {
		return nil
	}
	w := window{
		from: m.From, until: m.Until, at: m.At, offset: m.Offset, drift: m.Drift, known: m.Time(m.Until),
		bound: m.Bound, growth: t.growth(tr.name, m.Growth), sigma: m.Sigma,
	}
	if t.settles(tr, &m) {
		return nil
	}
	if by, scale, ok := t.again(tr, &w); ok && scale == on {
		w = by
	}
	tr.learn(on, w, &t.opt)
	tr.expect(t.opt.Now())
	t.current(tr)
	return nil
}

// settles ends the doubt about the clock of a model, and reports whether the model is from before it: then the
// clock stays where it is.
func (t *Timeline) settles(tr *track, m *model.ClockModel) bool {
	d := tr.doubt
	if d == nil || d.first == nil {
		return false
	}
	if !m.Stepped && m.From <= d.wallFrom {
		return true
	}
	tr.doubt = nil
	if raw := t.tracks[d.first.raw]; raw != nil {
		raw.doubt = nil
	}
	return false
}

func checkModel(m *model.ClockModel) error {
	if m.Clock == "" || m.Timeline == "" {
		return fmt.Errorf("add clock model: clock %q, timeline %q: got an empty name; want two", m.Clock, m.Timeline)
	}
	if !strings.HasPrefix(m.Timeline, Prefix) {
		return fmt.Errorf("add clock model of %.80q: got timeline %.80q; want a name that begins with %q", m.Clock, m.Timeline, Prefix)
	}
	if err := errors.Join(model.CheckClockName(m.Clock), model.CheckTimelineName(m.Timeline)); err != nil {
		return fmt.Errorf("add clock model of %.80q: %w", m.Clock, err)
	}
	if m.From > m.Until || m.Bound < 0 {
		return fmt.Errorf("add clock model of %s: got from %d until %d with bound %d ns; want an order, and 0 or more", m.Clock, m.From, m.Until, m.Bound)
	}
	for _, v := range []int64{m.From, m.Until, m.At, m.Offset} {
		if v < -farthest || v > farthest {
			return fmt.Errorf("add clock model of %s: got %d ns; want at most %d", m.Clock, v, int64(farthest))
		}
	}
	// Written so that NaN fails.
	if !(math.Abs(m.Drift) <= 0.5 && m.Growth >= 0 && m.Growth <= 1 && m.Sigma >= 0 && m.Sigma <= farthest) {
		return fmt.Errorf("add clock model of %s: got drift %v, growth %v, sigma %v ns; want at most 0.5, 0 to 1, 0 to %g",
			m.Clock, m.Drift, m.Growth, m.Sigma, float64(farthest))
	}
	return nil
}

// undatedSuffix ends the reference of a foreign scale whose times are not Unix time. The scale of the same name that was
// dated since is another one, and no clock has such a name.
const undatedSuffix = "\x00undated"

// foreign returns the scale of a model that another gateway solved. The caller holds mu.
func (t *Timeline) foreign(m *model.ClockModel) (*scale, error) {
	key := m.Timeline
	if m.Undated {
		key += undatedSuffix
	}
	s := t.scales[key]
	if s == nil {
		if most := scalesOfClock * t.opt.MaxClocks; len(t.scales) >= most {
			return nil, fmt.Errorf("add clock model of %s: got timeline %d; want at most %d", m.Clock, len(t.scales)+1, most)
		}
		s = &scale{name: m.Timeline, reference: key, foreign: true, anchored: !m.Undated, newest: math.MinInt64, turn: t.opt.turn()}
		t.scales[key] = s
	}
	s.used = true // whatever forget has gone through already
	return s, nil
}

// Place implements clock.Placer. On an undated scale nothing is
// placed: times of that scale would not be Unix times.
func (t *Timeline) Place(id string, reading int64) (clock.Placement, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.placeOn(t.tracks[id], reading, true)
}

// PlaceAll implements clock.Placer.
func (t *Timeline) PlaceAll(id string, readings []int64, to []clock.Placement) []clock.Placement {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tr := t.tracks[id]
	for _, r := range readings {
		p, _ := t.placeOn(tr, r, true)
		to = append(to, p)
	}
	return to
}

// placeOn places a reading of a clock, nil for one that is not known. With dated false
// it may stand on a scale that is not dated.
func (t *Timeline) placeOn(tr *track, reading int64, dated bool) (clock.Placement, bool) {
	if tr == nil || len(tr.segments) == 0 || dated && !tr.dated(reading) {
		return clock.Placement{}, false
	}
	return tr.place(reading, t.opt.Forget)
}

// Between implements clock.Placer.
func (t *Timeline) Between(a string, readingA int64, b string, readingB int64) (int64, bool) {
	if a == b {
		return 0, true
	}
	t.mu.RLock()
	ta, tb := t.tracks[a], t.tracks[b]
	pa, okA := t.placeOn(ta, readingA, false)
	pb, okB := t.placeOn(tb, readingB, false)
	if !okA || !okB || !pa.Bounded || !pb.Bounded || pa.Timeline != pb.Timeline || ta.dated(readingA) != tb.dated(readingB) {
		t.mu.RUnlock()
		return 0, false
	}
	sum := pa.Bound + pb.Bound
	sol := t.solution
	if pa.Stepped || pb.Stepped || sol == nil || !ta.solved() || !tb.solved() {
		t.mu.RUnlock()
		return sum, true
	}
	a, readingA, wrongA := t.oscillator(sol, ta, readingA)
	b, readingB, wrongB := t.oscillator(sol, tb, readingB)
	t.mu.RUnlock()
	if max(wrongA, wrongB) == math.MaxInt64 {
		return sum, true
	}
	return min(sum, tight(sol, a, readingA, b, readingB, pb.Time-pa.Time, wrongA+wrongB)), true
}

// tight is what the shortest path between two clocks says of the difference of their
// times, which need not go through the reference, where their readings are wrong by so
// much together.
func tight(sol *graph.Solution, a string, readingA int64, b string, readingB int64, apart, wrong int64) int64 {
	lower, upper, ok := sol.Between(a, readingA, b, readingB)
	if !ok {
		return math.MaxInt64
	}
	return grow(max(distance(apart, lower), distance(apart, upper)), distance(apart, 0)/2000+wrong)
}
