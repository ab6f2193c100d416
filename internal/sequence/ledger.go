// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"time"
	"unicode/utf8"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// Step is one step of one life of a job.
type Step struct {
	Job, Incarnation string
	Step             int64
}

// MaxStep is the greatest step of which a [Ledger] keeps what arrived, and -MaxStep the least.
const MaxStep = 1 << 48

// Valid reports whether a [Ledger] keeps what arrived of the step: its number is no nonsense, and its names are UTF-8,
// so that they are stored as they are.
func (s Step) Valid() bool {
	return -MaxStep <= s.Step && s.Step <= MaxStep && utf8.ValidString(s.Job) && utf8.ValidString(s.Incarnation)
}

// Arrival is what a batch has of one stream.
type Arrival struct {
	// Source is the name of the stream.
	Source string
	// Steps are the numbers of the operations of steps, which are valid.
	Steps map[Step]Ranges
	// Loose are the numbers of other spans. Nothing waits for the rest of them.
	Loose Ranges
	// Void are numbers that no span has, as [Numbers] says.
	Void Ranges
}

// Totals count spans by what became of them, over all lives of a gateway. Arrived = Concluded + Loose + Lost +
// Uncertain + Forgotten + those of open steps.
type Totals struct {
	// Arrived are spans that arrived, each once.
	Arrived int64 `json:"arrived"`
	// Again are spans that came another time.
	Again int64 `json:"again"`
	// Concluded are of steps that were concluded.
	Concluded int64 `json:"concluded"`
	// Loose have no step.
	Loose int64 `json:"loose"`
	// Lost arrived, and were in memory when a gateway ended.
	Lost int64 `json:"lost"`
	// Gap did not arrive within the wait, though later spans of their stream did.
	Gap int64 `json:"gap"`
	// Elsewhere are before the first span of a stream that arrived here: another gateway had them. With JobsMove,
	// gaps are, too.
	Elsewhere int64 `json:"elsewhere"`
	// Void are numbers whose spans were refused, and stayed with their sender.
	Void int64 `json:"void"`
	// Uncertain are of a step whose conclusion was under way when the gateway ended, also those that came later.
	Uncertain int64 `json:"uncertain"`
	// Forgotten are of steps that were not concluded in time, or that gave their place to others.
	Forgotten int64 `json:"forgotten"`
}

// Config bounds a [Ledger].
type Config struct {
	// Wait is how long numbers that are missing, and spans of before a restart, may still arrive.
	Wait time.Duration
	// StepLimit is how long a step without further spans is open, and StreamLimit how long a stream without any
	// is known.
	StepLimit, StreamLimit time.Duration
	// JobsMove: gaps are spans that went to another gateway, since agents send jobs now to one and now to another.
	JobsMove bool
	// MaxStreams and MaxJobs are the most that are known, and MaxOpen the most pairs of a stream and an open step.
	MaxStreams, MaxJobs, MaxOpen int
	// MaxRanges is the most ranges of numbers of a stream, and of steps of a job. The open steps of a stream together
	// have openRanges times as many.
	MaxRanges int
	// MaxBytes is how much memory streams take with their open steps, and jobs as much again. 0: no limit.
	MaxBytes int
}

// openRanges is how many times MaxRanges the open steps of a stream have. Ranks interleave their spans, and one step
// those of the next.
const openRanges = 16

// Store keeps values over a restart. The changes of one call are kept together or not at all.
type Store interface {
	Apply(changes []Change) error
	Load(key string) ([]byte, error)
}

// Change sets a value; a nil one is deleted.
type Change struct {
	Key   string
	Value []byte
}

// Ledger keeps which spans arrived and what became of them. It is not safe for concurrent use.
type Ledger struct {
	cfg      Config
	store    Store // nil: nothing is kept
	streams  *bounded.Map[string, *stream]
	jobs     *bounded.Map[jobKey, *job]
	steps    map[Step]*openStep
	underway map[Step]time.Time  // when Begin got the steps whose End is to come
	calls    map[string][]Ranges // numbers of each call between Expect and Arrive or Refuse, by stream
	totals   Totals
	open     int       // pairs of a stream and a step
	now      time.Time // of the last call that says it
	began    time.Time
	looked   time.Time // when it was decided last what earlier lives left open
	losses   losses

	dirty   map[string]bool // streams to be stored
	changed map[jobKey]bool // jobs to be stored
	listed  bool            // the lists of streams and jobs are stored
	stored  []byte          // the state, as of the last change
	expects bool            // something was to arrive
	settled bool            // what earlier lives left open was decided
}

// NewLedger returns a ledger that goes on with what the store has; nil: it keeps nothing. An error of what is stored
// comes with a ledger that begins anew.
func NewLedger(cfg Config, store Store, now time.Time) (*Ledger, error) {
	l := newLedger(cfg, store, now)
	if store == nil {
		return l, nil
	}
	old, err := l.load(now)
	if err != nil {
		l = newLedger(cfg, store, now)
		l.discard(old)
	}
	return l, err
}

func newLedger(cfg Config, store Store, now time.Time) *Ledger {
	l := &Ledger{
		cfg: cfg, store: store, now: now, began: now, looked: now,
		steps: map[Step]*openStep{}, underway: map[Step]time.Time{}, calls: map[string][]Ranges{},
		dirty: map[string]bool{}, changed: map[jobKey]bool{},
	}
	l.streams = bounded.NewMap(bounded.MapConfig[string, *stream]{
		Entries: cfg.MaxStreams, Bytes: cfg.MaxBytes, Order: bounded.ByUse,
		Size:    func(_ string, s *stream) int { return s.size() },
		Evicted: func(_ string, s *stream, _ bounded.Reason) { l.leave(s) },
	})
	l.jobs = bounded.NewMap(bounded.MapConfig[jobKey, *job]{
		Entries: cfg.MaxJobs, Bytes: cfg.MaxBytes, Order: bounded.ByUse,
		Size:    func(of jobKey, j *job) int { return j.size(of) },
		Evicted: func(of jobKey, j *job, _ bounded.Reason) { l.leaveJob(of, j) },
	})
	return l
}

// Totals returns the counts.
func (l *Ledger) Totals() Totals { return l.totals }

// Open returns how many spans are of open steps.
func (l *Ledger) Open() (n int64) {
	for _, s := range l.streams.All() {
		for _, p := range s.parts {
			n += p.count()
		}
	}
	return n
}

// Streams returns how many streams are known.
func (l *Ledger) Streams() int { return l.streams.Len() }

// Arrive takes what a batch has, once the analysis has used it, and returns when it is stored.
func (l *Ledger) Arrive(all []Arrival, now time.Time) error {
	l.now = now
	for i := range all {
		l.arrive(&all[i], now)
	}
	return l.commit()
}

func (l *Ledger) arrive(a *Arrival, now time.Time) {
	l.returned(a)
	s := l.stream(a, now)
	l.run(s, a)
	s.used = now
	l.dirty[s.name] = true
	void := a.Void.Minus(s.seen)
	l.totals.Void += void.Count()
	s.seen = s.seen.Union(void)
	fresh := a.Loose.Minus(s.seen)
	l.totals.Arrived += fresh.Count()
	l.totals.Loose += fresh.Count()
	l.totals.Again += a.Loose.Count() - fresh.Count()
	s.seen = s.seen.Union(fresh)
	for step, numbers := range a.Steps {
		l.take(s, step, numbers, now)
	}
	l.narrow(s)
	s.spread = s.openRanges()
	l.streams.Touch(s.name)
	if !l.streams.Has(s.name) { // it alone has more bytes than all may have
		l.leave(s)
	}
}

// stream returns the stream of an arrival. One that begins in the middle was at another gateway before.
func (l *Ledger) stream(a *Arrival, now time.Time) *stream {
	if s, ok := l.streams.Get(a.Source); ok {
		return s
	}
	s := &stream{name: a.Source, parts: map[Step]*part{}, since: now}
	s.kept = l.dirty[s.name] // a change of an unknown stream is to delete its key
	l.listed = false
	l.streams.Set(a.Source, s)
	return s
}

// take takes the spans of a step.
func (l *Ledger) take(s *stream, step Step, numbers Ranges, now time.Time) {
	s.job = step.job()
	p := s.parts[step]
	var back Ranges
	if p != nil {
		back = numbers.Intersect(p.doubt)
		p.doubt = p.doubt.Minus(back)
	}
	fresh := numbers.Minus(s.seen)
	begins := len(s.seen) == 0 && len(fresh) > 0 && fresh[0].First > 0
	l.totals.Arrived += fresh.Count()
	l.totals.Again += numbers.Count() - fresh.Count() - back.Count()
	s.seen = s.seen.Union(fresh)
	live := fresh.Union(back)
	switch {
	case len(live) == 0:
	case l.unsure(step):
		l.totals.Uncertain += live.Count()
		l.report(step, live.Count(), ReasonUncertain)
	case l.concluded(step):
		l.totals.Concluded += live.Count()
	case p == nil && l.open >= l.cfg.MaxOpen, s.spread >= openRanges*l.cfg.MaxRanges:
		l.totals.Forgotten += live.Count()
	default:
		if p == nil {
			p = l.enter(s, step, now)
		}
		p.live = p.live.Union(live)
		of := l.steps[step]
		of.last, of.moved = now, of.moved || begins
	}
	l.tidy(s, step)
}

// enter adds what a stream has of a step.
func (l *Ledger) enter(s *stream, step Step, now time.Time) *part {
	of := l.steps[step]
	if of == nil {
		of = &openStep{streams: map[string]bool{}, last: now}
		l.steps[step] = of
	}
	of.streams[s.name] = true
	p := &part{}
	s.parts[step] = p
	l.open++
	return p
}

// tidy drops what a stream has of a step where it has nothing any more.
func (l *Ledger) tidy(s *stream, step Step) {
	p := s.parts[step]
	if p == nil || p.ranges() > 0 {
		return
	}
	delete(s.parts, step)
	l.open--
	if of := l.steps[step]; of != nil {
		delete(of.streams, s.name)
		if len(of.streams) == 0 {
			delete(l.steps, step)
		}
	}
}

// narrow decides the first gaps of a stream that has too many ranges.
func (l *Ledger) narrow(s *stream) {
	if over := len(s.seen) - l.cfg.MaxRanges; over > 0 {
		l.miss(s, Ranges{{0, s.seen[over].First}}.Minus(s.seen).Minus(l.passing(s.name)))
	}
}

// peek returns what is known of a step.
func (l *Ledger) peek(step Step) (v Verdict) {
	if j, ok := l.jobs.Peek(step.job()); ok {
		v.Before, v.Lost = j.done.Has(step.Step), j.lost[step.Step]
	}
	of := l.steps[step]
	if of == nil {
		return v
	}
	for name := range of.streams {
		s, _ := l.streams.Peek(name)
		passing := l.passing(name)
		v.Lost += s.parts[step].doubt.Minus(passing).Count()
		// Requests overtake each other: what is before the first span may have come since, or be under way.
		v.Elsewhere = v.Elsewhere || of.moved && (s.elsewhere || s.seen.Union(passing)[0].First > 0)
	}
	return v
}

// Begin takes a step that is about to be concluded, and returns what is known of it. From then until End, a kill
// leaves it open whether the conclusion was sent. What earlier lives of the gateway had of the step is lost.
func (l *Ledger) Begin(step Step) (Verdict, error) {
	out := l.peek(step)
	if l.idle() || !step.Valid() {
		return out, nil
	}
	if of := l.steps[step]; of != nil {
		for name := range of.streams {
			s, _ := l.streams.Peek(name)
			l.lose(s, step)
		}
	}
	if j, ok := l.jobs.Peek(step.job()); ok && j.lost[step.Step] > 0 {
		l.change(step.job(), func(j *job) { delete(j.lost, step.Step) }) // it is said of the step
	}
	l.underway[step] = l.now
	return out, l.commit()
}

// idle reports whether no agent numbers its spans. Then steps cost nothing.
func (l *Ledger) idle() bool { return !l.expects && l.streams.Len() == 0 }

// lose counts what a stream had of a step before a restart as lost, and returns how many spans these are.
func (l *Ledger) lose(s *stream, step Step) int64 {
	p := s.parts[step]
	gone := p.doubt.Minus(l.passing(s.name))
	n := gone.Count()
	if n == 0 {
		return 0
	}
	p.doubt = p.doubt.Minus(gone)
	l.totals.Lost += n
	l.report(step, n, ReasonRestart)
	l.dirty[s.name] = true
	l.tidy(s, step)
	return n
}

// report adds to what is lost of a job.
func (l *Ledger) report(step Step, spans int64, reason string) {
	l.losses = l.losses.add(Loss{Step: step, Last: step.Step, Spans: spans, Reason: reason}, l.cfg.MaxJobs)
}

// End takes steps whose conclusion was sent.
func (l *Ledger) End(steps []Step) error {
	if l.idle() {
		return nil
	}
	for _, step := range steps {
		if step.Valid() {
			delete(l.underway, step)
			l.settle(step, false)
			l.totals.Concluded += l.close(step)
		}
	}
	return l.commit()
}

// close drops what streams have of a step.
func (l *Ledger) close(step Step) (n int64) {
	of := l.steps[step]
	if of == nil {
		return 0
	}
	for name := range of.streams {
		s, _ := l.streams.Peek(name)
		n += s.parts[step].count()
		s.parts[step] = &part{}
		l.dirty[name] = true
		l.tidy(s, step)
	}
	return n
}

// Losses returns what was lost since the last call, by job, reason and run of steps. What is not asked for is stored.
func (l *Ledger) Losses() []Loss {
	out := l.losses.runs()
	l.losses = nil
	return out
}
