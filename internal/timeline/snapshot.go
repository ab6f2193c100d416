// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// snapshotVersion counts up with every change that an older reader would get wrong.
// versionWithoutBook, the one before, had findings in another form.
const (
	snapshotVersion    = 2
	versionWithoutBook = 1
)

// maxSnapshot bounds what Restore reads: 1 KiB for each of 65,536 clocks.
const maxSnapshot = 64 << 20

// The format of docs/format/timeline.md.
type snapshot struct {
	Version  int               `json:"version"`
	Taken    int64             `json:"taken_unix_nano"`
	Scales   []savedScale      `json:"scales"`
	Clocks   []savedClock      `json:"clocks"`
	Aliases  map[string]string `json:"aliases,omitempty"`
	Findings json.RawMessage   `json:"findings,omitempty"` // of the book
	Counts   []savedCount      `json:"counts,omitempty"`
}

type savedScale struct {
	Reference string      `json:"reference"`
	Name      string      `json:"name"`
	Foreign   bool        `json:"foreign,omitempty"`
	Anchored  bool        `json:"anchored,omitempty"`
	Epoch     int         `json:"epoch,omitempty"`
	SetBy     int         `json:"set_by,omitempty"`
	Paired    bool        `json:"paired,omitempty"`
	Asked     int64       `json:"asked"`
	Settled   int64       `json:"settled"`
	Knots     []savedKnot `json:"knots,omitempty"`
}

type savedKnot struct {
	At     int64   `json:"at"`
	Offset int64   `json:"offset"`
	Slope  float64 `json:"slope"`
}

type savedClock struct {
	Clock     string      `json:"clock"`
	Scale     string      `json:"scale"` // its reference, or the name of a foreign one
	Heard     int64       `json:"heard_unix_nano"`
	Asked     int64       `json:"asked"`
	Settled   int64       `json:"settled"`
	Knots     []savedKnot `json:"knots"`
	Window    savedWindow `json:"window"`
	Untrusted bool        `json:"untrusted,omitempty"`
	Foreign   bool        `json:"foreign,omitempty"`
	Steps     int64       `json:"steps,omitempty"`
	Restless  int         `json:"restless,omitempty"` // windows for which it is still taken for several machines
}

type savedWindow struct {
	From   int64   `json:"from"`
	Until  int64   `json:"until"`
	At     int64   `json:"at"`
	Offset int64   `json:"offset"`
	Drift  float64 `json:"drift"`
	Bound  *int64  `json:"bound,omitempty"` // absent where nothing bounds the clock
	Growth float64 `json:"growth"`
	Sigma  float64 `json:"sigma"`
}

// savedKnots is how many knots of each line survive: those that readings of the last
// seconds stand on.
const savedKnots = 4

// Snapshot returns the state as docs/format/timeline.md describes it. History and
// segments before the last step are left out. With an error it may be a part: without the findings that were not found for
// longest.
func (t *Timeline) Snapshot() ([]byte, error) {
	t.solving.Lock()
	t.mu.RLock()
	now := t.opt.Now()
	s := snapshot{Version: snapshotVersion, Taken: now.UnixNano(), Aliases: map[string]string{}}
	for name, a := range t.aliases {
		if host, ok := a.host(now, t.opt.Forget); ok {
			s.Aliases[name] = host
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(t.scales)) {
		sc := t.scales[ref]
		s.Scales = append(s.Scales, savedScale{
			Reference: sc.reference, Name: sc.name, Foreign: sc.foreign, Anchored: sc.anchored,
			Epoch: sc.epoch, SetBy: sc.setBy, Paired: sc.paired,
			Asked: sc.asked.Load(), Settled: saveSettled(&sc.line), Knots: saveKnots(&sc.line),
		})
	}
	for _, id := range slices.Sorted(maps.Keys(t.tracks)) {
		s.Clocks = append(s.Clocks, t.tracks[id].save(t.opt.History))
	}
	t.mu.RUnlock()
	part := t.watch.save(&s)
	t.solving.Unlock()
	if s.Findings == nil {
		return nil, part
	}
	data, err := json.Marshal(s)
	if err != nil { // NaN and Inf, which edges and models are refused for
		return nil, fmt.Errorf("write timeline: %w", err)
	}
	return data, part
}

// saveSettled is not before the first knot that is kept: spans run ahead of windows,
// and so do the knots that they leave.
func saveSettled(l *line) int64 {
	if len(l.knots) == 0 {
		return l.settled
	}
	return max(l.settled, l.knots[max(0, len(l.knots)-savedKnots)].x)
}

func saveKnots(l *line) []savedKnot {
	var saved []savedKnot
	for _, k := range l.knots[max(0, len(l.knots)-savedKnots):] {
		saved = append(saved, savedKnot{k.x, k.off, k.slope})
	}
	return saved
}

func (t *track) save(history int) savedClock {
	seg := t.last()
	w := seg.last()
	c := savedClock{
		Clock: t.id, Scale: seg.scale.reference, Heard: t.heard.UnixNano(), Asked: t.asked.Load(), Settled: saveSettled(&seg.line),
		Knots: saveKnots(&seg.line), Untrusted: t.untrusted, Foreign: t.foreign, Steps: t.steps, Restless: t.restlessFor(history),
		Window: savedWindow{From: w.from, Until: w.until, At: w.at, Offset: w.offset, Drift: w.drift, Growth: w.growth, Sigma: w.sigma},
	}
	if w.bound != model.NoBound {
		c.Window.Bound = &w.bound
	}
	return c
}

// Restore takes a state that Snapshot returned, in place of what is known. What is
// too old is left out. An error says what is wrong, and nothing is changed.
func (t *Timeline) Restore(data []byte) error {
	if len(data) > maxSnapshot {
		return fmt.Errorf("restore timeline: got %d bytes; want at most %d", len(data), maxSnapshot)
	}
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("restore timeline: %w", err)
	}
	if s.Version != snapshotVersion && s.Version != versionWithoutBook {
		return fmt.Errorf("restore timeline: got version %d; want %d or %d", s.Version, versionWithoutBook, snapshotVersion)
	}
	if most := len(classes) * t.opt.MaxClocks; len(s.Counts) > most {
		return fmt.Errorf("restore timeline: got %d counts; want at most %d", len(s.Counts), most)
	}
	if len(s.Clocks) > t.opt.MaxClocks || len(s.Scales) > t.opt.MaxClocks || len(s.Aliases) > t.opt.MaxClocks {
		return fmt.Errorf("restore timeline: got %d clocks on %d timelines and %d names; want at most %d",
			len(s.Clocks), len(s.Scales), len(s.Aliases), t.opt.MaxClocks)
	}
	r := restored{growth: t.growth, now: t.opt.Now(), forget: t.opt.Forget, history: t.opt.History, scales: map[string]*scale{}, tracks: map[string]*track{}, hosts: map[string]string{}}
	if err := checkAliases(s.Aliases); err != nil {
		return fmt.Errorf("restore timeline: %w", err)
	}
	if err := r.read(&s); err != nil {
		return fmt.Errorf("restore timeline: %w", err)
	}
	watch := newWatch(&t.opt)
	if err := watch.restore(&s, r.now); err != nil {
		return fmt.Errorf("restore timeline: %w", err)
	}
	t.adopt(&s, &r, watch)
	return nil
}

// checkAliases leaves out names that nobody could be shown, which earlier versions took.
func checkAliases(aliases map[string]string) error {
	for name, host := range aliases {
		err := errors.Join(model.CheckClockName(name), model.CheckClockName(host))
		switch {
		case err == nil:
		case max(len(name), len(host)) > model.MaxClockName:
			return fmt.Errorf("check name %.80q of host %.80q: %w", name, host, err)
		default:
			delete(aliases, name)
		}
	}
	return nil
}

// adopt replaces the state. References are preferred, so that timelines keep their
// names.
func (t *Timeline) adopt(s *snapshot, r *restored, watch *watch) {
	prefer := slices.Clone(t.opt.Prefer)
	for _, sc := range s.Scales {
		if !sc.Foreign {
			prefer = append(prefer, sc.Reference)
		}
	}
	t.solving.Lock()
	defer t.solving.Unlock()
	t.solver, t.fresh = t.newSolver(prefer), false
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scales, t.tracks, t.hosts, t.solution = r.scales, r.tracks, r.hosts, nil
	t.rivals, t.waits = map[string]string{}, map[string]*wait{}
	t.aliases, t.swept = map[string]*alias{}, time.Time{}
	t.paired.Clear()
	t.comparing.Lock()
	t.compared.Clear()
	t.comparing.Unlock()
	for name, host := range s.Aliases {
		t.aliases[name] = &alias{told: [2]telling{{host, r.now}}}
	}
	t.watch = watch
	for id, tr := range t.tracks {
		t.watch.seen[id] = observed{until: tr.last().last().until, steps: tr.steps}
	}
}

// restored is a state that is being read.
type restored struct {
	now     time.Time
	forget  time.Duration
	history int
	growth  func(name, float64) float64
	scales  map[string]*scale
	tracks  map[string]*track
	hosts   map[string]string
}

func (r *restored) read(s *snapshot) error {
	for i := range s.Scales {
		if err := r.scale(&s.Scales[i]); err != nil {
			return fmt.Errorf("read timeline %q: %w", s.Scales[i].Name, err)
		}
	}
	for i := range s.Clocks {
		if err := r.clock(&s.Clocks[i]); err != nil {
			return fmt.Errorf("read clock %q: %w", s.Clocks[i].Clock, err)
		}
	}
	return nil
}

func (r *restored) scale(s *savedScale) error {
	if s.Name == "" || s.Reference == "" || r.scales[s.Reference] != nil {
		return fmt.Errorf("check reference: got %q; want one, and only once", s.Reference)
	}
	sc := &scale{name: s.Name, reference: s.Reference, root: s.Reference, foreign: s.Foreign, anchored: s.Anchored}
	if !inRange(s.Asked) || s.Epoch < 0 || s.Epoch > maxEpochs || s.SetBy < 0 {
		return fmt.Errorf("check timeline: got asked %d, epoch %d, set by %d; want asked within %d, epoch 0 to %d, and no negative number",
			s.Asked, s.Epoch, s.SetBy, int64(farthest), maxEpochs)
	}
	sc.epoch, sc.setBy, sc.paired = s.Epoch, s.SetBy, s.Paired
	sc.asked.Store(s.Asked)
	if !s.Foreign {
		knots, err := readKnots(s.Knots, s.Settled, maxSlew)
		if err != nil {
			return err
		}
		sc.line = line{knots: knots, settled: s.Settled, pruned: true}
	}
	r.scales[s.Reference] = sc
	return nil
}

// maxEpochs has ten digits at most, as the names of timelines have room for.
const maxEpochs = math.MaxInt32

// maxLineSlope is the steepest that a clock's line is ever bent; backwards it stops
// at leastSlope.
const maxLineSlope = 1.0

// readKnots checks that a line increases, so that Place stays monotone.
func readKnots(saved []savedKnot, settled int64, most float64) ([]knot, error) {
	if len(saved) == 0 || len(saved) > savedKnots {
		return nil, fmt.Errorf("check knots: got %d; want 1 to %d", len(saved), savedKnots)
	}
	knots := make([]knot, 0, len(saved))
	for i, k := range saved {
		// Written so that NaN fails.
		if !(k.Slope >= max(leastSlope, -most) && k.Slope <= most) {
			return nil, fmt.Errorf("check slope of knot %d: got %v; want at most %v", i, k.Slope, most)
		}
		if !inRange(k.At) || !inRange(k.Offset) || (i > 0 && k.At < saved[i-1].At) {
			return nil, fmt.Errorf("check knot %d: got %d ns at %d; want order, and at most %d", i, k.Offset, k.At, int64(farthest))
		}
		knots = append(knots, knot{k.At, k.Offset, k.Slope})
		if i > 0 {
			// A connected line, whatever was written.
			knots[i].off = knots[i-1].at(k.At)
		}
	}
	if !inRange(settled) || settled < knots[0].x {
		return nil, fmt.Errorf("check settled: got %d; want %d to %d", settled, knots[0].x, int64(farthest))
	}
	return knots, nil
}

func inRange(v int64) bool { return v >= -farthest && v <= farthest }

func (r *restored) clock(c *savedClock) error {
	sc := r.scales[c.Scale]
	if c.Clock == "" || sc == nil || r.tracks[c.Clock] != nil {
		return fmt.Errorf("check clock on %q: got no timeline, or the clock twice", c.Scale)
	}
	w := window{
		from: c.Window.From, until: c.Window.Until, at: c.Window.At, offset: c.Window.Offset,
		drift: c.Window.Drift, bound: model.NoBound, growth: c.Window.Growth, sigma: c.Window.Sigma,
	}
	if c.Window.Bound != nil {
		w.bound = *c.Window.Bound
	}
	if err := checkModel(&model.ClockModel{
		Clock: c.Clock, Timeline: sc.name, From: w.from, Until: w.until, At: w.at, Offset: w.offset,
		Drift: w.drift, Bound: w.bound, Growth: w.growth, Sigma: w.sigma,
	}); err != nil {
		return err
	}
	knots, err := readKnots(c.Knots, c.Settled, maxLineSlope)
	if err != nil {
		return err
	}
	heard := time.Unix(0, c.Heard)
	if r.now.Sub(heard) > r.forget {
		return nil
	}
	tr := newTrack(c.Clock)
	tr.heard, tr.untrusted, tr.foreign, tr.steps = heard, c.Untrusted, c.Foreign, c.Steps
	tr.restored = true
	tr.unrest = max(0, min(c.Restless, r.history))
	seg := newSegment(sc)
	w.growth = r.growth(tr.name, w.growth)
	seg.windows, seg.line = []window{w}, line{knots: knots, settled: c.Settled}
	tr.segments = []*segment{seg}
	tr.expect(r.now)
	tr.asked.Store(min(c.Asked, tr.limit))
	r.tracks[c.Clock] = tr
	if tr.name.realtime && tr.name.host != "" && tr.outlives(r.tracks[r.hosts[tr.name.host]]) {
		r.hosts[tr.name.host] = c.Clock
	}
	if math.Abs(float64(c.Settled)-float64(w.at)) > longestCatchUp {
		return fmt.Errorf("check settled: got %d; want near %d", c.Settled, w.at)
	}
	return nil
}
