package timeline

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
}

// Timeline places readings of many clocks. It is safe for concurrent use.
type Timeline struct {
	opt   Options
	stats counters

	solving sync.Mutex // guards what follows, and is taken before mu
	solver  *graph.Solver
	fresh   bool               // edges came since the last solution
	paired  map[string]pairing // by real-time clock
	watch   *watch
	swept   time.Time // when all clocks were gone through last

	inbox inbox // of edges that come during a solution
	edges atomic.Pointer[graph.Counters]

	mu       sync.RWMutex // guards what follows
	solution *graph.Solution
	tracks   map[string]*track
	scales   map[string]*scale // by reference; foreign ones by their name
	hosts    map[string]string // host id to its current real-time clock
	aliases  map[string]*alias
	feeds    map[*Feed]bool
	births   int64
}

var _ clock.Placer = (*Timeline)(nil)

// counters count what nobody else does.
type counters struct {
	Refused, Overflowed, Forgotten, Solved, FeedsOverflowed, InboxOverflowed atomic.Int64
	AliasesOverflowed, AliasesAmbiguous                                      atomic.Int64
}

// New returns a Timeline that knows no clock.
func New(opt Options) *Timeline {
	opt = opt.withDefaults()
	t := &Timeline{
		opt: opt, tracks: map[string]*track{}, scales: map[string]*scale{}, hosts: map[string]string{},
		aliases: map[string]*alias{}, paired: map[string]pairing{}, feeds: map[*Feed]bool{}, watch: newWatch(&opt),
	}
	t.solver = t.newSolver(opt.Prefer)
	return t
}

func (t *Timeline) newSolver(prefer []string) *graph.Solver {
	return graph.New(graph.Options{Prefer: prefer, MaxClocks: t.opt.MaxClocks})
}

// farthest bounds readings and offsets: 146 years from either side of 1970.
const farthest = math.MaxInt64 / 2

// AddModel takes a model that another gateway solved; it counts at once. Of a clock
// that is solved here, models of others are left out and counted.
func (t *Timeline) AddModel(m model.ClockModel) error {
	if err := checkModel(&m); err != nil {
		t.stats.Refused.Add(1)
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.tracks[m.Clock]
	if tr != nil && !tr.foreign {
		t.stats.Solved.Add(1)
		return nil
	}
	if tr == nil {
		if tr = t.newTrack(m.Clock); tr == nil {
			return fmt.Errorf("add clock model of %s: got clock %d; want at most %d", m.Clock, t.opt.MaxClocks+1, t.opt.MaxClocks)
		}
	}
	tr.foreign, tr.untrusted, tr.heard = true, m.Untrusted, t.opt.Now()
	if m.Untrusted && len(tr.segments) > 0 {
		return nil
	}
	tr.learn(t.foreign(m.Timeline), window{
		from: m.From, until: m.Until, at: m.At, offset: m.Offset, drift: m.Drift,
		bound: m.Bound, growth: t.growth(tr.name, m.Growth), sigma: m.Sigma,
	}, &t.opt)
	tr.expect(tr.heard)
	t.current(tr)
	return nil
}

func checkModel(m *model.ClockModel) error {
	if m.Clock == "" || m.Timeline == "" {
		return fmt.Errorf("add clock model: clock %q, timeline %q: got an empty name; want two", m.Clock, m.Timeline)
	}
	if !strings.HasPrefix(m.Timeline, Prefix) {
		return fmt.Errorf("add clock model of %.80q: got timeline %.80q; want a name that begins with %q", m.Clock, m.Timeline, Prefix)
	}
	if len(m.Clock) > maxName || len(m.Timeline) > maxName+len(Prefix)+maxEpoch {
		return fmt.Errorf("add clock model of %.80q: got names of %d and %d bytes; want at most %d", m.Clock, len(m.Clock), len(m.Timeline), maxName)
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

func (t *Timeline) foreign(name string) *scale {
	s := t.scales[name]
	if s == nil {
		s = &scale{name: name, reference: name, foreign: true, anchored: true}
		t.scales[name] = s
	}
	s.used = true // whatever forget has gone through already
	return s
}

// Place implements clock.Placer. Before a real-time clock told the date nothing is
// placed: times of that scale would not be Unix times.
func (t *Timeline) Place(id string, reading int64) (clock.Placement, bool) {
	return t.place(id, reading, true)
}

func (t *Timeline) place(id string, reading int64, dated bool) (clock.Placement, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tr := t.tracks[id]
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
	pa, okA := t.place(a, readingA, false)
	pb, okB := t.place(b, readingB, false)
	if !okA || !okB || !pa.Bounded || !pb.Bounded || pa.Timeline != pb.Timeline {
		return 0, false
	}
	bound := pa.Bound + pb.Bound
	if pa.Stepped || pb.Stepped {
		return bound, true
	}
	return min(bound, t.tight(a, readingA, pa.Time, b, readingB, pb.Time)), true
}

// unseen is how far a real-time clock can have been slewed at a reading, since it was
// observed or until it was: the graph takes all clocks for oscillators.
func (t *Timeline) unseen(tr *track, reading int64) int64 {
	if !tr.name.realtime {
		return 0
	}
	w := tr.last().last()
	return int64(math.Ceil(t.opt.Slew * max(0, float64(w.from)-float64(reading), float64(reading)-float64(w.until))))
}

// tight is what the shortest path between two clocks says of the difference of their
// times, which need not go through the reference.
func (t *Timeline) tight(a string, readingA, timeA int64, b string, readingB, timeB int64) int64 {
	t.mu.RLock()
	sol := t.solution
	ta, tb := t.tracks[a], t.tracks[b]
	own := ta != nil && tb != nil && !ta.foreign && !tb.foreign
	unseen := int64(0)
	if own {
		unseen = t.unseen(ta, readingA) + t.unseen(tb, readingB)
	}
	t.mu.RUnlock()
	if sol == nil || !own {
		return math.MaxInt64
	}
	lower, upper, ok := sol.Between(a, readingA, b, readingB)
	if !ok {
		return math.MaxInt64
	}
	return grow(max(distance(timeB-timeA, lower), distance(timeB-timeA, upper)), distance(timeB, timeA)/2000+unseen)
}
