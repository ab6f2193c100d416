// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"container/list"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Event is one change of a finding that the world should hear of.
type Event struct {
	Finding model.Finding
	// New: nothing was said of this finding before.
	New bool
	// Closed: the finding has ended now; its span is due. True once per finding.
	Closed bool
}

// Stats count what the engine received and what it did not pass on.
type Stats struct {
	Received   int64
	Duplicates int64 // of a revision not above the one known
	Late       int64 // revisions of a finding that had been closed
	Evicted    int64 // closed early, because MaxOpen or MaxBytes was reached
	WithoutID  int64 // passed on once, neither de-duplicated nor joined
	Forgotten  int64 // closed findings whose repetition would not be recognised any more
	Cut        int64 // had texts or lists that were too long
}

// Engine holds the findings of any number of jobs. It is not safe for
// concurrent use.
type Engine struct {
	cfg   Config
	byID  map[key]*entry
	open  *list.List // of *entry, least recently heard of first
	done  *list.List // of *entry, closed longest ago first
	jobs  map[string]*holder
	room  bounded.Room[*holder]
	seq   int64
	stats Stats
}

// key identifies a finding. The ids of a job's findings are made of the incarnation that the job reports,
// and two jobs may report the same one.
type key struct{ job, id string }

func keyOf(f *model.Finding) key { return key{f.JobID, f.ID} }

// entry is one finding, open or closed but remembered.
type entry struct {
	finding  model.Finding // as last passed on
	revision int64         // highest received
	closed   bool
	heard    time.Time
	seq      int64 // order of first sight
	at       *list.Element
	incident *group
	of       *holder
	size     int // bytes
}

// NewEngine returns an engine; cfg must be valid.
func NewEngine(cfg Config) *Engine {
	return &Engine{cfg: cfg, byID: map[key]*entry{}, jobs: map[string]*holder{}, open: list.New(), done: list.New()}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats { return e.stats }

// Bytes estimates what all findings that are held take.
func (e *Engine) Bytes() int { return e.room.Bytes() }

// Open returns how many findings are open.
func (e *Engine) Open() int { return e.open.Len() }

// Add takes one finding, heard at now, and returns what changed.
func (e *Engine) Add(f model.Finding, now time.Time) []Event {
	e.stats.Received++
	if cut(&f) {
		e.stats.Cut++
	}
	if f.ID == "" {
		e.stats.WithoutID++
		return []Event{{Finding: f, New: true}}
	}
	known := e.byID[keyOf(&f)]
	if known == nil {
		return append(e.insert(f, now), e.passSteps(&f)...)
	}
	if f.Revision <= known.revision {
		e.stats.Duplicates++
		e.keep(known, &f, now)
		return nil
	}
	return append(e.update(known, f, now), e.passSteps(&f)...)
}

func (e *Engine) insert(f model.Finding, now time.Time) []Event {
	var events []Event
	if f.Status != model.StatusClosed && e.open.Len() >= e.cfg.MaxOpen {
		e.stats.Evicted++
		events = append(events, e.close(e.leaver(e.open, openOf)))
	}
	e.seq++
	n := &entry{finding: f, revision: f.Revision, heard: now, seq: e.seq}
	e.byID[keyOf(&f)] = n
	n.at = e.open.PushBack(n)
	e.hold(n)
	if f.Status != model.StatusClosed {
		n.finding.Status = model.StatusOpen
	}
	events = append(events, e.join(n)...)
	if f.Status == model.StatusClosed {
		e.retire(n)
	}
	events = append(events, e.shrink(n)...)
	return append(events, Event{Finding: n.finding, New: true, Closed: n.closed})
}

// update takes a higher revision. Who has been closed stays closed, since its
// span has been written; the revision is still passed on.
func (e *Engine) update(n *entry, f model.Finding, now time.Time) []Event {
	n.revision = f.Revision
	f.Revision = max(f.Revision, n.finding.Revision+1)
	f.IncidentID = n.finding.IncidentID
	closes := f.Status == model.StatusClosed && !n.closed
	if n.closed {
		e.stats.Late++
		f.Status = model.StatusClosed
	} else if !closes {
		f.Status = model.StatusUpdated
	}
	n.finding, n.heard = f, now
	n.resize()
	n.of.share.Hear()
	if !n.closed {
		e.open.MoveToBack(n.at)
	}
	events := e.join(n)
	if closes {
		e.retire(n)
	}
	events = append(events, e.shrink(n)...)
	return append(events, Event{Finding: n.finding, Closed: closes})
}

// keep notes that a finding still stands: its source repeats the revision known.
func (e *Engine) keep(n *entry, f *model.Finding, now time.Time) {
	if n.closed || f.Revision != n.revision {
		return
	}
	n.heard = now
	n.of.share.Hear()
	e.open.MoveToBack(n.at)
	n.finding.Time = max(n.finding.Time, f.Time)
	if f.StepLast.OK {
		n.finding.StepLast = model.Some(max(f.StepLast.V, n.finding.StepLast.Or(f.StepLast.V)))
	}
}

// Tick closes the findings of which nothing was heard for CloseAfter.
func (e *Engine) Tick(now time.Time) []Event {
	var events []Event
	for at := e.open.Front(); at != nil; at = e.open.Front() {
		n := at.Value.(*entry)
		if now.Sub(n.heard) < e.cfg.CloseAfter {
			break
		}
		events = append(events, e.close(n))
	}
	return events
}

// Flush closes every open finding, as at the end of the input.
func (e *Engine) Flush() []Event {
	var events []Event
	for at := e.open.Front(); at != nil; at = e.open.Front() {
		events = append(events, e.close(at.Value.(*entry)))
	}
	return events
}

// passSteps closes the findings of f's kind that their job has left CleanSteps
// behind. Kinds are analysed apart, and one may be ahead of another.
func (e *Engine) passSteps(f *model.Finding) []Event {
	if !f.StepLast.OK {
		return nil
	}
	var events []Event
	for at := e.open.Front(); at != nil; {
		n := at.Value.(*entry)
		at = at.Next()
		last := n.finding.StepLast
		if n.finding.Kind == f.Kind && sameJob(&n.finding, f) && last.OK && f.StepLast.V-last.V >= e.cfg.CleanSteps {
			events = append(events, e.close(n))
		}
	}
	return events
}

// close ends a finding on our own account, which is a revision of its own.
func (e *Engine) close(n *entry) Event {
	n.finding.Status = model.StatusClosed
	n.finding.Revision++
	e.retire(n)
	return Event{Finding: n.finding, Closed: true}
}

// retire moves an entry to the remembered ones and forgets the oldest of them.
func (e *Engine) retire(n *entry) {
	e.open.Remove(n.at)
	n.closed = true
	n.resize()
	n.at = e.done.PushBack(n)
	n.of.open--
	n.of.done++
	if e.done.Len() > e.cfg.MaxOpen {
		e.forget(e.leaver(e.done, doneOf))
	}
}

// forget drops a closed finding.
func (e *Engine) forget(n *entry) {
	e.done.Remove(n.at)
	n.incident.remove(n)
	delete(e.byID, keyOf(&n.finding))
	e.release(n)
	e.stats.Forgotten++
}

func sameJob(a, b *model.Finding) bool {
	return a.JobID == b.JobID && a.Incarnation == b.Incarnation
}
