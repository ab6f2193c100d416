// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Timeline places readings, and learns from edges.
type Timeline interface {
	clock.Placer
	AddEdge(model.ClockEdge) error
}

// Config bounds an engine.
type Config struct {
	// MaxSpans is how many spans are remembered for partners in later batches, and
	// as many more for members of collectives.
	MaxSpans int
	// MaxClocks is how many clocks are told apart.
	MaxClocks int
	// MaxPairs is of how many pairs of clocks evidence is gathered; 0 gathers none.
	MaxPairs int
	// MaxJobs is how many jobs or services are counted apart.
	MaxJobs int
	// Window is how long evidence is gathered before it becomes an edge.
	Window time.Duration
	// HealthWindow is over how long health is computed, and HealthLimit the share
	// of judged relations that may be certainly wrong in it.
	HealthWindow time.Duration
	HealthLimit  float64
	// Settle is called before a batch is placed, once a second of the data while
	// there are new edges, and sooner while much is new. Nil where somebody else
	// solves for the clocks.
	Settle func()
	Now    func() time.Time
}

// State says what became of a span.
type State uint8

// The states of a span.
const (
	Unknown   State = iota // nothing is known of its clock
	Placed                 // it stands on the timeline
	Withheld               // the correction would turn a right relation wrong
	Untrusted              // its clock contradicts the others
)

// Place is where a span's start stands. Shift is what is to be added to stamps.
type Place struct {
	clock.Placement
	Shift int64
	State State
}

// Batch is what is judged together. It may be used again after Reset.
type Batch struct {
	Spans []Span
	// Places are of the spans, after Run.
	Places []Place
	// Verdicts are of the relations that are wrong on the stamps or on the timeline.
	Verdicts []Verdict
}

// Reset empties a batch.
func (b *Batch) Reset() {
	clear(b.Spans)
	b.Spans, b.Places, b.Verdicts = b.Spans[:0], b.Places[:0], b.Verdicts[:0]
}

// Verdict is what is said of one relation that is wrong on the stamps or on the
// timeline.
type Verdict struct {
	Row *Row
	// First and Second are the relation's spans, by their number in the batch; -1
	// where one came earlier.
	First, Second       int
	FirstRef, SecondRef model.SpanRef
	Class               Class
	Magnitude           int64 // ns by which it is wrong: on the stamps for an artefact, else on the timeline
	// Ordered: of an undecided relation, other messages order its ends. OrderKnown
	// is false where the trace was too large to tell.
	Ordered, OrderKnown bool
}

// Stats count what an engine has seen.
type Stats struct {
	Spans       int64 // of all batches
	NoClock     int64 // spans whose clock nobody names
	NotPlaced   int64 // spans whose clock is on no timeline
	Untrusted   int64 // spans of clocks that contradict the others
	Withheld    int64 // spans whose correction was not applied
	Widened     int64 // relations that bounds were widened for
	Relations   int64 // judged
	Forgotten   int64 // spans that were forgotten before their partner came
	Crowded     int64 // spans that are remembered, and are not found for want of a slot
	Unmet       int64 // meetings that were forgotten before a second clock came
	Clocks      int64 // known
	ClocksOver  int64 // spans of clocks beyond the limit
	OrderTooBig int64 // traces beyond the limit of vector times
	Evidence    EvidenceStats
}

// Engine judges batches. It is not safe for concurrent use.
type Engine struct {
	cfg      Config
	timeline Timeline
	clocks   map[string]*Clock
	indices  int   // of clocks, so far
	swept    int64 // second, when clocks were looked through for old ones
	memory   *memory
	meetings *meetings
	stories  *stories
	told     []*story // of the batch's spans
	growth   growth
	passed   time.Duration // of the data, as far as it is told
	evidence *evidence
	doubts   *doubts
	jobs     *jobs
	batch    uint64
	numbers  []uint64 // of the batch's spans in memory; 0 none
	names    []names  // of the batch's spans
	pairs    []pairing
	touched  []*meeting
	orders   orders
	readings []int64           // scratch
	placed   []clock.Placement // scratch
	second   int64
	settling settling
	pace     pace
	stats    Stats
}

// pairing is one relation found in a batch.
type pairing struct {
	row           *Row
	first, second *Span
	// a and b are the numbers of both in the batch; -1 for a remembered one.
	a, b   int32
	was    *emitted // the remembered one; nil where none is
	judged judgement
	// verdict is the number of what is said of it, where something is.
	verdict int32
}

// New returns an engine.
func New(cfg Config, t Timeline) *Engine {
	e := &Engine{
		cfg: cfg, timeline: t, clocks: map[string]*Clock{}, memory: newMemory(cfg.MaxSpans), meetings: newMeetings(cfg.MaxSpans), stories: newStories(cfg.MaxSpans),
		evidence: newEvidence(cfg.MaxPairs, cfg.Window), doubts: newDoubts(cfg.Window), jobs: newJobs(cfg.MaxJobs, cfg.HealthWindow, cfg.HealthLimit),
	}
	if cfg.Now != nil {
		e.second = cfg.Now().Unix()
	}
	return e
}

// maxID bounds the ids of clocks, which spans bear and anybody may write.
const maxID = 256

// Clock returns the clock of an id; nil for "", for one that is too long, and where
// there are too many.
func (e *Engine) Clock(id string) *Clock {
	c := e.clocks[id]
	if c != nil {
		c.seen = e.second
		return c
	}
	if id == "" {
		return nil
	}
	if len(id) > maxID || len(e.clocks) >= e.cfg.MaxClocks && !e.forgetClocks() {
		e.stats.ClocksOver++
		return nil
	}
	c = &Clock{ID: id, index: e.indices, seen: e.second, first: e.passed}
	e.indices++
	e.clocks[id] = c
	return c
}

// Job returns the job of a name, whose relations are counted together.
func (e *Engine) Job(name string) *Job { return e.jobs.of(name, e.second) }

// Jobs calls visit with each job and whether it is healthy. The job without a
// name is what came after the limit.
func (e *Engine) Jobs(now time.Time, visit func(j *Job, healthy bool)) {
	for _, j := range e.jobs.byName {
		visit(j, e.jobs.healthy(j, now))
	}
	if r := e.jobs.rest; r != nil {
		visit(r, e.jobs.healthy(r, now))
	}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Forgotten, s.Crowded, s.Unmet, s.Clocks, s.Evidence = e.memory.forgotten, e.memory.crowded, e.meetings.unmet, int64(len(e.clocks)), e.evidence.stats
	s.Evidence.Doubted = e.doubts.over
	return s
}

// Run finds the relations of a batch, gives what they say of clocks to the
// timeline, places the spans and judges the relations.
func (e *Engine) Run(b *Batch) {
	e.batch++
	e.meetings.number, e.evidence.batch = e.batch, e.batch
	e.second = e.cfg.Now().Unix()
	e.stats.Spans += int64(len(b.Spans))
	e.match(b)
	e.learn(b)
	e.place(b)
	e.agree(b)
	e.judge(b)
	e.remember(b)
	e.forget()
}

// learn gives the batch's evidence to the timeline, before the batch is placed:
// so a file that is replayed corrects itself.
func (e *Engine) learn(b *Batch) {
	seconds := e.pace.passed(b, e.cfg.Now())
	e.passed += time.Duration(min(max(seconds, 0), 1) * 1e9)
	e.doubts.now = e.passed
	if e.cfg.MaxPairs == 0 {
		return
	}
	e.evidence.pay(len(b.Spans), seconds)
	e.evidence.now = e.pace.latest
	for i := range e.pairs {
		p := &e.pairs[i]
		if p.first.Clock == p.second.Clock || p.row.Usual {
			continue
		}
		from, to := p.first.At(p.row.From), p.second.At(p.row.To)
		e.evidence.add(p.row, p.first.Clock, from-p.first.Epoch, p.second.Clock, to-p.second.Epoch, coarse(from, to, false))
	}
	edges, fresh := e.evidence.close(e.timeline)
	if e.settling.due(edges, fresh, seconds) && e.cfg.Settle != nil {
		e.cfg.Settle()
	}
}

func (e *Engine) place(b *Batch) {
	b.Places = b.Places[:0]
	for len(b.Places) < len(b.Spans) {
		e.placeRun(b)
	}
}

// placeRun places the spans of one clock that come next in a batch.
func (e *Engine) placeRun(b *Batch) {
	first := len(b.Places)
	c := b.Spans[first].Clock
	e.readings = e.readings[:0]
	for i := first; i < len(b.Spans) && b.Spans[i].Clock == c; i++ {
		e.readings = append(e.readings, b.Spans[i].reading(Start))
	}
	if c == nil {
		b.Places = append(b.Places, make([]Place, len(e.readings))...)
		e.stats.NoClock += int64(len(e.readings))
		return
	}
	e.placed = e.timeline.PlaceAll(c.ID, e.readings, e.placed[:0])
	for i := range e.placed {
		p := placeOf(&e.placed[i], b.Spans[first+i].Begin)
		switch p.State {
		case Unknown:
			e.stats.NotPlaced++
		case Untrusted:
			e.stats.Untrusted++
		}
		b.Places = append(b.Places, p)
	}
}

// vaguest is the widest bound of a placement that is applied. What can be wrong by a
// second, as after a step that is not understood yet, puts nothing right.
const vaguest = int64(time.Second)

// placeAt places one stamp of a clock.
func (e *Engine) placeAt(c *Clock, stamp, epoch int64) Place {
	p, ok := e.timeline.Place(c.ID, stamp-epoch)
	if !ok {
		return Place{}
	}
	return placeOf(&p, stamp)
}

func placeOf(p *clock.Placement, stamp int64) Place {
	switch {
	case p.Timeline == "" || p.Bounded && p.Bound > vaguest:
		return Place{}
	case p.Untrusted:
		return Place{Placement: *p, State: Untrusted}
	}
	return Place{Placement: *p, Shift: p.Time - stamp, State: Placed}
}

// PlaceLaunch places a stamp of the host's clock that a span of another clock
// bears.
func (e *Engine) PlaceLaunch(c *Clock, stamp, epoch int64) (shift int64, ok bool) {
	if c == nil {
		return 0, false
	}
	p := e.placeAt(c, stamp, epoch)
	return p.Shift, p.State == Placed
}

// remember notes how the batch's spans are given out.
func (e *Engine) remember(b *Batch) {
	for i, number := range e.numbers {
		e.memory.emit(number, &b.Places[i])
	}
	for _, m := range e.touched {
		m.remember(b)
	}
}

// forget drops what points into the batch.
func (e *Engine) forget() {
	clear(e.pairs)
	e.pairs = e.pairs[:0]
	clear(e.touched)
	e.touched = e.touched[:0]
	e.meetings.shrink()
}
