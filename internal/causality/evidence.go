// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// applicationWander is the relative change of frequency that evidence from
// traces allows for in a window: programs stamp by the realtime clock, which NTP
// steers by some tenths of a ppm all the time. Where it slews faster the lines
// cross, which the estimator sees.
const applicationWander = 1e-6

// evidence turns relations between two clocks into clock edges.
type evidence struct {
	max    int // pairs
	window time.Duration
	pairs  *bounded.Map[clockPair, *pairEvidence] // by when they came, or were seen to be in use
	queue  []*pairEvidence                        // with samples that no edge has seen, oldest first
	dead   int                                    // of the queue: they made room for others
	batch  uint64
	now    int64   // where the data is
	credit float64 // windows that may be closed
	stats  EvidenceStats
}

// Closing a window takes some 0.03 ms of a core, whatever is in it: as much as twenty
// spans. So it is paid for by the time that passes in the data, and by the spans: 0.3 %
// of a core, or a tenth of what a span costs besides, whatever the number of pairs.
const (
	closesPerSecond = 100
	closesPerSpan   = 1.0 / 256
)

// EvidenceStats count what the evidence came to.
type EvidenceStats struct {
	Samples  int64 // relations between two clocks
	Edges    int64 // handed to the timeline
	Refused  int64 // edges that the timeline did not take
	Overflow int64 // samples of pairs beyond the limit
	Liars    int64 // samples that contradict those around them, or are of another time
	Late     int64 // samples that came too late to be of use
	Doubted  int64 // relations left undecided since too many clocks were in doubt
}

type clockPair struct{ src, dst *Clock }

// pairEvidence is what is known of two clocks.
type pairEvidence struct {
	clockPair
	est     *pair.Estimator
	sources [3]int64      // samples since the last edge, by source
	first   int64         // reading of src at which the window began
	last    int64         // the latest
	other   int64         // what dst read then, to within a message
	open    bool          // first is set
	known   bool          // an edge with an estimate has been made
	anew    bool          // a clock was set, and no edge has told yet
	told    pair.Estimate // the latest edge with both bounds
	refuted bool          // a sample has contradicted it
	batch   uint64        // of the latest sample
	course  course
	liars   int64 // told of
	queued  bool
	upper   tightest
	lower   tightest
}

func newEvidence(maxPairs int, window time.Duration) *evidence {
	return &evidence{max: maxPairs, window: window, pairs: bounded.NewMap(bounded.MapConfig[clockPair, *pairEvidence]{Order: bounded.ByUse})}
}

// sources are those of edges.
var sources = [3]string{model.EdgeCall, model.EdgeMessage, model.EdgeCollective}

func sourceIndex(source string) int {
	for i, s := range sources {
		if s == source {
			return i
		}
	}
	return 0
}

// add takes a relation: the reading from of one clock was before the reading to
// of another, as if a message had gone from one to the other.
func (v *evidence) add(row *Row, from *Clock, fromAt int64, to *Clock, toAt, width int64) {
	key := clockPair{from, to}
	reversed := from.ID > to.ID
	if reversed {
		key = clockPair{to, from}
	}
	p := v.pair(key)
	if p == nil {
		v.stats.Overflow++
		return
	}
	v.stats.Samples++
	at, other := fromAt, toAt
	if reversed {
		at, other = toAt, fromAt
	}
	if reversed {
		p.course.look(p, at, other, v)
	}
	switch p.course.follows(p, at, other, v) {
	case strayed:
		v.stats.Liars++
		return
	case tooLate:
		v.stats.Late++
		return
	}
	s := sample{at: at, other: other, width: width, slack: toAt - fromAt + width}
	if reversed {
		p.lower.offer(s, v.cell(), p.est.Lower)
	} else {
		p.upper.offer(s, v.cell(), p.est.Upper)
	}
	p.sources[sourceIndex(row.Source)]++
	p.refuted = p.refuted || p.known && p.refutes(at, other-at, width, reversed)
	if !p.open {
		p.first, p.last, p.other, p.open = at, at, other, true
	}
	if at > p.last {
		p.last, p.other = at, other
	}
	if !p.queued {
		p.queued = true
		v.queue = append(v.queue, p)
	}
}

// refutes reports whether a sample contradicts what was told of the pair.
func (p *pairEvidence) refutes(at, offset, width int64, lower bool) bool {
	low, high := p.told.BoundsAt(at)
	if lower {
		return offset-width > high
	}
	return offset+width < low
}

// cell is the time of which one sample of a direction is kept: what a window costs
// grows with the samples in it, and what they tell with the tightest. Of a second,
// four leave bounds as narrow as eight do, and less to compute.
func (v *evidence) cell() int64 { return max(int64(v.window)/4, 1) }

// tightest holds back the tightest sample of a cell of time.
type tightest struct {
	held sample
	cell int64
	full bool // held is one
	seen bool // there has been one
}

// sample says that one clock read other before (or after) another read at.
type sample struct{ at, other, width, slack int64 }

func (t *tightest) offer(s sample, cell int64, sink func(at, other, width int64)) {
	c := s.at / cell
	if t.full && c == t.cell {
		if s.slack < t.held.slack {
			t.held = s
		}
		return
	}
	t.flush(sink)
	t.held, t.cell, t.full, t.seen = s, c, true, true
}

func (t *tightest) flush(sink func(at, other, width int64)) {
	if t.full {
		sink(t.held.at, t.held.other, t.held.width)
	}
	t.full = false
}

func (v *evidence) pair(key clockPair) *pairEvidence {
	if p, ok := v.pairs.Peek(key); ok {
		return p
	}
	if v.pairs.Len() >= v.max && !v.evict() {
		return nil
	}
	p := &pairEvidence{clockPair: key, est: v.estimator()}
	v.pairs.Set(key, p)
	return p
}

// fitWindows is how many windows an estimate rests on at most.
const fitWindows = 8

func (v *evidence) estimator() *pair.Estimator {
	return pair.New(pair.Config{Window: v.window, MaxFit: fitWindows * v.window, Wander: applicationWander})
}

// staleBatches is after how many batches without a sample a pair makes room.
const staleBatches = 1024

// evict forgets the oldest pair, if it has been silent.
func (v *evidence) evict() bool {
	key, oldest, _ := v.pairs.Oldest()
	if oldest.batch+staleBatches > v.batch {
		v.pairs.Touch(key)
		return false
	}
	v.pairs.Delete(key)
	if oldest.queued {
		oldest.queued = false
		v.dead++
	}
	return true
}

// pay grants windows to be closed: for a batch of spans, and the seconds that have
// passed in the data since the one before.
func (v *evidence) pay(spans int, seconds float64) {
	earned := closesPerSecond*min(max(seconds, 0), 1) + closesPerSpan*float64(spans)
	v.credit = min(v.credit+earned, max(closesPerSecond, earned))
}

// close ends the windows that are over, and those of pairs of which nothing is
// known yet, so that the first batch is corrected by itself; it hands on what
// comes of it. Fresh are the pairs of which something is known for the first time.
func (v *evidence) close(t Timeline) (edges, fresh int) {
	left := 0
	for i, p := range v.queue {
		if v.credit < 1 && v.dead == 0 {
			left += copy(v.queue[left:], v.queue[i:])
			break
		}
		if !p.queued {
			v.dead--
			continue
		}
		if v.credit < 1 || !p.due(int64(v.window), t) {
			if left < i { // a queue that stays the same is not written
				v.queue[left] = p
			}
			left++
			continue
		}
		v.credit--
		p.queued = false
		before := p.known
		edges += v.closePair(p, t.AddEdge)
		if p.known && !before {
			fresh++
		}
	}
	clear(v.queue[left:])
	v.queue = v.queue[:left]
	return edges, fresh
}

// Where packets have measured both clocks, relations of spans serve as a check
// only: where they are known better than these could tell by checkFactor, a window
// is as long as checkWindows.
const (
	checkFactor  = 4
	checkWindows = 8
)

// due reports whether a pair's window is to be closed: it is over, or there is
// evidence of both sides for the first time.
func (p *pairEvidence) due(window int64, t Timeline) bool {
	if !p.known && p.upper.seen && p.lower.seen {
		return true
	}
	lasted := p.last - p.first
	if lasted < window || lasted >= checkWindows*window || !p.known || p.refuted || p.told.Provisional {
		return lasted >= window
	}
	x, ok := t.Place(p.src.ID, p.last)
	y, known := t.Place(p.dst.ID, p.other)
	return !ok || !known || !x.Bounded || !y.Bounded || x.Timeline != y.Timeline ||
		max(x.Bound, y.Bound) > mostBound || x.Bound+y.Bound > (p.told.Upper/2-p.told.Lower/2)/checkFactor
}

func (v *evidence) closePair(p *pairEvidence, add func(model.ClockEdge) error) (edges int) {
	p.upper.flush(p.est.Upper)
	p.lower.flush(p.est.Lower)
	for _, e := range p.est.Close(p.last + 1) {
		edge := e.Edge(p.src.ID, p.dst.ID, p.source(), model.StampApplication)
		edge.Stepped = edge.Stepped || p.anew
		p.anew = false
		if e.HasLower && e.HasUpper {
			p.known, p.told = true, e
		}
		if err := add(edge); err != nil {
			v.stats.Refused++
			continue
		}
		v.stats.Edges++
		edges++
	}
	p.first, p.sources, p.refuted = p.last, [3]int64{}, false
	liars := p.est.Stats().Liars
	v.stats.Liars += liars - p.liars
	p.liars = liars
	return edges
}

// restart forgets what was learned, with est in the place of what learned it.
func (p *pairEvidence) restart(est *pair.Estimator) {
	p.est, p.liars = est, 0
	p.upper, p.lower = tightest{}, tightest{}
	p.open, p.known, p.sources, p.anew = false, false, [3]int64{}, true
}

// source is what most samples come from.
func (p *pairEvidence) source() string {
	most := 0
	for i, n := range p.sources {
		if n > p.sources[most] {
			most = i
		}
	}
	return sources[most]
}
