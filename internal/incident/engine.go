// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Event is one change of a finding.
type Event struct {
	Finding model.Finding
	// New: the finding was not known.
	New bool
	// Closed: the finding has ended now; its span is due. True once per finding.
	Closed bool
}

// Stats count what the engine received and what it did not pass on.
type Stats struct {
	Received   int64
	Duplicates int64 // of a revision not above the one known
	Late       int64 // revisions of a finding that had been closed
	Evicted    int64 // open findings that were given up, because MaxOpen or MaxBytes was reached
	WithoutID  int64 // passed on once, neither de-duplicated nor joined
	Forgotten  int64 // ended findings whose repetition would not be recognised any more
	Cut        int64 // had texts or lists that were too long
}

// Engine holds the findings of any number of jobs. It is not safe for
// concurrent use.
type Engine struct {
	cfg  Config
	book *finding.Book[*member]
	jobs map[string]*holder
	room bounded.Room[*holder]
	seq  int64
	// newest is when the finding that was seen last was seen first.
	newest time.Time
	opened *bounded.Map[finding.Place, fresh] // new lately, the one that was first in front
	stats  Stats
}

// entry is one finding, open or remembered after its end.
type entry = finding.Episode[*member]

// member is what the engine keeps beside a finding.
type member struct {
	seq      int64 // order of first sight
	incident *group
	of       *holder
	open     bool // as the holder counts it
	size     int  // bytes
}

// NewEngine returns an engine; cfg must be valid.
func NewEngine(cfg Config) *Engine {
	return &Engine{
		cfg: cfg, jobs: map[string]*holder{}, opened: newOpened(),
		// The engine itself makes room: no finding is withheld, and none is forgotten unseen.
		book: finding.New[*member](finding.Config{MaxOpen: cfg.MaxOpen, MaxBytes: cfg.MaxBytes, MaxEnded: cfg.MaxOpen + 1, KeepWhole: true}),
	}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats { return e.stats }

// Bytes estimates what all findings that are held take.
func (e *Engine) Bytes() int { return e.room.Bytes() }

// Open returns how many findings are open.
func (e *Engine) Open() int { return e.book.Len() }

// Add takes one finding, received at now, and returns what changed.
func (e *Engine) Add(f model.Finding, now time.Time) []Event {
	e.stats.Received++
	if cutFinding(&f) {
		e.stats.Cut++
	}
	if f.ID == "" {
		e.stats.WithoutID++
		return []Event{{Finding: f, New: true}}
	}
	e.limitOpen(&f)
	n, receipt := e.book.Receive(placeOf(&f), &f, now)
	switch receipt {
	case finding.Stale:
		e.stats.Duplicates++
		return nil
	case finding.Repeated:
		e.stats.Duplicates++
		n.Data.of.share.Hear()
		e.count(n)
		e.shrink(n)
		return e.events()
	case finding.Late:
		e.stats.Late++
	case finding.First:
		e.seq++
		n.Data = &member{seq: e.seq}
		if !n.Opened.After(e.newest) { // the order of first sight survives a restart
			n.Opened = e.newest.Add(1)
		}
		e.newest = n.Opened
		e.hold(n)
	case finding.Newer:
	}
	n.Data.of.share.Hear()
	e.join(n)
	e.count(n)
	e.shrink(n)
	e.book.Report(n, receipt == finding.First, n.Finding.Status == model.StatusClosed)
	e.passSteps(&f)
	if receipt == finding.First && n.IsOpen() {
		e.opened.DropOldest(func(_ finding.Place, o fresh) bool { return now.Sub(o.at) >= openedFor })
		e.opened.Set(placeOf(&f), fresh{n.Finding, now})
	}
	return e.events()
}

// placeOf identifies a finding. The ids of a job's findings are made of the incarnation that the job
// reports, and two jobs may report the same one.
func placeOf(f *model.Finding) finding.Place { return finding.Place{Job: f.JobID, Name: f.ID} }

// events returns what changed since the last call.
func (e *Engine) events() []Event {
	changes := e.book.Changes()
	if len(changes) == 0 {
		return nil
	}
	out := make([]Event, len(changes))
	for i := range changes {
		c := &changes[i]
		out[i] = Event{Finding: c.Finding, New: c.New, Closed: c.Closed && !c.Episode.Spanned}
		c.Episode.Spanned = c.Episode.Spanned || c.Closed
	}
	return out
}

// Tick closes the findings that were not reported again for CloseAfter.
func (e *Engine) Tick(now time.Time) []Event {
	for n := range e.book.All() {
		if now.Sub(n.Confirmed) < e.cfg.CloseAfter {
			break
		}
		e.close(n)
	}
	return e.events()
}

// Flush closes every open finding, as at the end of the input.
func (e *Engine) Flush() []Event {
	for n := range e.book.All() {
		e.close(n)
	}
	return e.events()
}

// Spans returns the open findings whose span was not written yet, as at the end of a run after which they
// stay open. Their spans are not due again.
func (e *Engine) Spans() (due []model.Finding) {
	for n := range e.book.All() {
		if !n.Spanned {
			n.Spanned = true
			due = append(due, n.Finding)
		}
	}
	return due
}

// passSteps closes the findings of f's kind that their job has left CleanSteps
// behind. Kinds are analysed apart, and one may be ahead of another.
func (e *Engine) passSteps(f *model.Finding) {
	if !f.StepLast.OK {
		return
	}
	for n := range e.book.All() {
		last := n.Finding.StepLast
		if n.Finding.Kind == f.Kind && sameJob(&n.Finding, f) && last.OK && f.StepLast.V-last.V >= e.cfg.CleanSteps {
			e.close(n)
		}
	}
}

// close ends a finding on the engine's own account, which is a revision of its own.
func (e *Engine) close(n *entry) {
	e.book.Close(n, n.Finding.Time)
	e.count(n)
}

func sameJob(a, b *model.Finding) bool {
	return a.JobID == b.JobID && a.Incarnation == b.Incarnation
}
