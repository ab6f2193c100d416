// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"iter"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Receipt is what a revision that came from another book changed.
type Receipt int

// Receipts.
const (
	Stale    Receipt = iota // nothing: the revision, or a later one, was received before
	Repeated                // nothing but the time: the finding is still open
	First                   // the finding was not known
	Newer                   // the finding was revised, or closed
	Late                    // the finding was revised after its end, and stays closed
)

// Receive takes a revision of a finding that another book reported, under the id that it has there. A
// higher revision than all before replaces the finding; equal and lower ones do not, so that repeated
// and reordered deliveries are harmless. A finding that was closed opens again with a higher revision
// that is open, one that was dropped with any that is not lower.
//
// The first revision that this book gives out is 1 or more, whatever was received.
//
// Receive reports nothing: the caller calls [Book.Report] where the receipt is First, Newer or Late, after
// it has set what it adds to the finding.
func (b *Book[D]) Receive(p Place, f *model.Finding, now time.Time) (*Episode[D], Receipt) {
	if e := b.open[p]; e != nil {
		return e, b.receiveOpen(e, f, now)
	}
	if e := b.ended.get(identity{p.Job, f.ID}); e != nil {
		return e, b.receiveEnded(e, f, now)
	}
	b.at(now)
	e := &Episode[D]{Place: p, Finding: *f, Opened: now, Confirmed: now, Revised: now, Received: f.Revision}
	e.Finding.Revision = max(1, f.Revision)
	if f.Status == model.StatusClosed {
		b.ended.add(e)
		return e, First
	}
	e.Finding.Status = model.StatusOpen
	b.stats.Opened++
	b.enter(e)
	return e, First
}

// Knows reports whether a finding is open, or remembered after its end.
func (b *Book[D]) Knows(p Place, id string) bool {
	return b.open[p] != nil || b.ended.get(identity{p.Job, id}) != nil
}

// Opens reports whether Receive would open a finding that is not open.
func (b *Book[D]) Opens(p Place, f *model.Finding) bool {
	if b.open[p] != nil || f.Status == model.StatusClosed {
		return false
	}
	e := b.ended.get(identity{p.Job, f.ID})
	return e == nil || f.Revision > e.Received || f.Revision == e.Received && e.Finding.Status != model.StatusClosed
}

func (b *Book[D]) receiveOpen(e *Episode[D], f *model.Finding, now time.Time) Receipt {
	switch {
	case f.Revision < e.Received:
		return Stale
	case f.Revision == e.Received:
		b.repeat(e, f, now)
		return Repeated
	}
	b.replace(e, f, now)
	if f.Status == model.StatusClosed {
		b.leave(e)
		b.ended.add(e)
		b.stats.Closed++
	}
	return Newer
}

func (b *Book[D]) receiveEnded(e *Episode[D], f *model.Finding, now time.Time) Receipt {
	dropped := e.Finding.Status != model.StatusClosed
	switch {
	case f.Revision < e.Received, f.Revision == e.Received && !dropped:
		return Stale
	case f.Status == model.StatusClosed:
		b.replace(e, f, now)
		if dropped {
			return Newer
		}
		return Late
	}
	b.ended.take(identityOf(e))
	b.stats.Reopened++
	if f.Revision == e.Received {
		b.enter(e)
		b.repeat(e, f, now)
		return Repeated
	}
	b.enter(e)
	b.replace(e, f, now)
	return Newer
}

// repeat notes that a finding is still open.
func (b *Book[D]) repeat(e *Episode[D], f *model.Finding, now time.Time) {
	b.Confirm(e, now)
	e.Finding.Time = max(e.Finding.Time, f.Time)
	if f.StepLast.OK {
		e.Finding.StepLast = model.Some(max(f.StepLast.V, e.Finding.StepLast.Or(f.StepLast.V)))
	}
}

// replace takes a higher revision. Its number is above those that this book gave out itself.
func (b *Book[D]) replace(e *Episode[D], f *model.Finding, now time.Time) {
	n := *f
	n.Revision, n.IncidentID = max(f.Revision, next(e.Finding.Revision)), e.Finding.IncidentID
	if n.Status != model.StatusClosed {
		n.Status = model.StatusUpdated
	}
	e.Finding, e.Received, e.Revised = n, f.Revision, now
	b.Confirm(e, now)
	if e.IsOpen() {
		b.weigh(e)
	}
}

// Amend gives a finding, open or ended, an incident, as a revision of its own.
func (b *Book[D]) Amend(e *Episode[D], incident string) {
	e.Finding.IncidentID = incident
	e.Finding.Revision = next(e.Finding.Revision)
	if e.IsOpen() {
		e.Finding.Status = model.StatusUpdated
		b.weigh(e)
	}
	b.Report(e, false, false)
}

// Repeat reports an open finding once more under its revision, as an update.
func (b *Book[D]) Repeat(e *Episode[D]) {
	e.Finding.Status = model.StatusUpdated
	b.Report(e, false, false)
}

// Ended yields the findings that are remembered after their end, in the order of their ends. The one that
// is yielded may be forgotten.
func (b *Book[D]) Ended() iter.Seq[*Episode[D]] {
	return func(yield func(*Episode[D]) bool) {
		for _, e := range b.ended.known.All() {
			if !yield(e) {
				return
			}
		}
	}
}

// EndedLen returns how many findings are remembered after their end.
func (b *Book[D]) EndedLen() int { return b.ended.known.Len() }

// Forget drops a finding that is remembered after its end.
func (b *Book[D]) Forget(e *Episode[D]) {
	b.ended.take(identityOf(e))
}
