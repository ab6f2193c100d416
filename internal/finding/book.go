// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"cmp"
	"container/list"
	"iter"
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Place is what a finding is about. At most one finding is open at a place.
type Place struct {
	Job         string `json:"job,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	// Name is the coarse place inside of the job, or a clock or host outside of any job.
	Name string `json:"name"`
}

// ID returns the id of a finding of a kind that began at a place with an observation: a step, a save,
// a time that the data carry, or a hash of what was observed. The job is part of the place: two jobs may
// report one incarnation.
func (p Place) ID(kind string, first int64) string {
	name := p.Name
	if p.Job != "" {
		name = p.Job + "/" + name
	}
	return model.FindingID(p.Incarnation, kind, name, first)
}

// Once makes a finding of one judgement of files, which no second follows: it opens, and that is all. A book
// that receives it opens it under an id of its own.
func Once(p Place, first int64, f *model.Finding) {
	f.ID, f.Revision, f.Status = p.ID(f.Kind, first), 1, model.StatusOpen
}

// Config bounds a book, and says when two findings are equal.
type Config struct {
	// MaxOpen bounds the findings that are open, MaxOpenOfJob those of one job (0: no other limit).
	MaxOpen, MaxOpenOfJob int
	// MaxBytes bounds, by estimate, the bytes of the findings that are open; 0 means [DefaultBytes].
	MaxBytes int
	// MaxEnded bounds the findings that are remembered after their end; 0 means [DefaultEnded].
	// KeepWhole: they are remembered as a whole, not by id and revision alone.
	MaxEnded  int
	KeepWhole bool
	// Same reports whether a finding that is open need not be revised for what was found now. Nil:
	// every finding is revised each time that it is found.
	Same func(open, found *model.Finding) bool
}

// DefaultBytes holds 1,024 findings that list 64 ranks and have 12 KiB of evidence each.
const DefaultBytes = 16 << 20

// Stats count what a book has done.
type Stats struct {
	Opened, Revised, Closed int64
	// Reopened counts findings that were found or received again after they had been closed or dropped.
	// Those that were found are among the opened ones.
	Reopened int64
	// Withheld counts findings for which there was no room, each once for as long as it is found.
	Withheld int64
	// Dropped counts open findings that were given up without being closed.
	Dropped int64
	// Restored counts findings that were open before a restart.
	Restored int64
}

// Episode is one finding that is open. D is what the engine keeps beside it; it does not survive a
// restart.
type Episode[D any] struct {
	Place   Place
	Finding model.Finding // as last reported
	// Opened is when the book opened it, Confirmed when it was last found, and Revised when it last
	// changed, all by the clock of the book's user.
	Opened, Confirmed, Revised time.Time
	// Missed counts, in a row, how often the engine did not find it; the engine sets it.
	Missed int
	// Restored: it was open before a restart, and has not been found since.
	Restored bool
	// Received is the highest revision that came from another book.
	Received int64
	// Spanned: its span was written; the engine sets it.
	Spanned bool
	Data    D

	bytes int
	at    *list.Element // in the book's order; nil where the finding is not open
	of    *list.Element // in its job's order
}

// Book keeps the open findings of one engine, and the ids of those that it has closed. It is not
// safe for concurrent use.
type Book[D any] struct {
	cfg      Config
	open     map[Place]*Episode[D]
	order    list.List // of *Episode[D], the one that was found longest ago first
	jobs     map[jobKey]*list.List
	bytes    int
	ended    *ended[D]
	withheld withheld
	changes  []Change[D]
	fresh    *bounded.Map[identity, *Episode[D]] // closed lately, the oldest first
	clock    time.Time                           // the latest that an operation was given
	stats    Stats
}

type jobKey struct{ job, incarnation string }

// New returns an empty book.
func New[D any](cfg Config) *Book[D] {
	cfg.MaxBytes, cfg.MaxEnded = cmp.Or(cfg.MaxBytes, DefaultBytes), cmp.Or(cfg.MaxEnded, DefaultEnded)
	return &Book[D]{
		cfg: cfg, open: map[Place]*Episode[D]{}, jobs: map[jobKey]*list.List{},
		ended: newEnded[D](cfg.MaxEnded, cfg.KeepWhole), withheld: newWithheld(), fresh: newFresh[D](),
	}
}

// Stats returns the counters.
func (b *Book[D]) Stats() Stats { return b.stats }

// Len returns how many findings are open.
func (b *Book[D]) Len() int { return len(b.open) }

// Bytes estimates what the open findings take.
func (b *Book[D]) Bytes() int { return b.bytes }

// At returns the finding that is open at a place; nil for none.
func (b *Book[D]) At(p Place) *Episode[D] { return b.open[p] }

// IsOpen reports whether the finding is open.
func (e *Episode[D]) IsOpen() bool { return e.at != nil }

// Episodes returns the open findings, the one that was found longest ago first.
func (b *Book[D]) Episodes() []*Episode[D] { return episodes[D](&b.order) }

// All yields the open findings in the order of Episodes. The one that is yielded may be closed.
func (b *Book[D]) All() iter.Seq[*Episode[D]] {
	return func(yield func(*Episode[D]) bool) {
		for at := b.order.Front(); at != nil; {
			e := at.Value.(*Episode[D])
			if at = at.Next(); !yield(e) {
				return
			}
		}
	}
}

// OfJob returns the open findings of one life of a job, the one that was found longest ago first.
func (b *Book[D]) OfJob(job, incarnation string) []*Episode[D] {
	return episodes[D](b.jobs[jobKey{job, incarnation}])
}

func episodes[D any](l *list.List) []*Episode[D] {
	if l == nil || l.Len() == 0 {
		return nil
	}
	all := make([]*Episode[D], 0, l.Len())
	for at := l.Front(); at != nil; at = at.Next() {
		all = append(all, at.Value.(*Episode[D]))
	}
	return all
}

// Found opens a finding at a place, or revises the one that is open there where the two are not the
// same. first is the observation with which the finding begins; it counts only where it is opened.
// Found returns nil where there is no room for another finding.
func (b *Book[D]) Found(p Place, first int64, f *model.Finding, now time.Time) *Episode[D] {
	e := b.open[p]
	if e == nil {
		return b.Open(p, first, f, now)
	}
	b.Confirm(e, now)
	if b.cfg.Same == nil || !b.cfg.Same(&e.Finding, f) {
		b.Revise(e, f, now)
	}
	return e
}

// Open opens a finding at a place where none is open. It returns nil where there is no room.
func (b *Book[D]) Open(p Place, first int64, f *model.Finding, now time.Time) *Episode[D] {
	b.at(now)
	e := &Episode[D]{Place: p, Finding: *f, Opened: now, Confirmed: now, Revised: now}
	if !b.fits(e) {
		b.Withhold(p, now)
		return nil
	}
	Once(p, first, &e.Finding)
	known := b.ended.take(identityOf(e))
	if known != nil {
		e.Finding.Revision, e.Finding.Status = next(known.Finding.Revision), model.StatusUpdated
		b.stats.Reopened++
	}
	b.stats.Opened++
	b.enter(e)
	b.Report(e, known == nil, false)
	return e
}

// Withhold counts a finding for which the engine itself has no room, once for as long as it is found.
func (b *Book[D]) Withhold(p Place, now time.Time) {
	if b.withheld.add(p, now) {
		b.stats.Withheld++
	}
}

func (b *Book[D]) fits(e *Episode[D]) bool {
	if len(b.open) >= b.cfg.MaxOpen || b.bytes+e.Finding.Bytes() > b.cfg.MaxBytes {
		return false
	}
	of := b.jobs[jobKey{e.Place.Job, e.Place.Incarnation}]
	return b.cfg.MaxOpenOfJob == 0 || of == nil || of.Len() < b.cfg.MaxOpenOfJob
}

func (b *Book[D]) enter(e *Episode[D]) {
	b.fresh.Delete(identityOf(e))
	k := jobKey{e.Place.Job, e.Place.Incarnation}
	if b.jobs[k] == nil {
		b.jobs[k] = list.New()
	}
	b.open[e.Place] = e
	e.at, e.of = b.order.PushBack(e), b.jobs[k].PushBack(e)
	b.weigh(e)
}

func (b *Book[D]) weigh(e *Episode[D]) {
	bytes := e.Finding.Bytes()
	b.bytes += bytes - e.bytes
	e.bytes = bytes
}

// Report notes a change, for [Book.Take].
func (b *Book[D]) Report(e *Episode[D], isNew, closed bool) {
	b.changes = append(b.changes, Change[D]{e, e.Finding, isNew, closed})
}

// Confirm notes that an open finding was found again.
func (b *Book[D]) Confirm(e *Episode[D], now time.Time) {
	b.at(now)
	e.Confirmed, e.Missed, e.Restored = now, 0, false
	if e.IsOpen() {
		b.order.MoveToBack(e.at)
		b.jobs[jobKey{e.Place.Job, e.Place.Incarnation}].MoveToBack(e.of)
	}
}

// Revise replaces what is known of an open finding. Its id and start stay.
func (b *Book[D]) Revise(e *Episode[D], f *model.Finding, now time.Time) {
	b.Refresh(e, f)
	e.Finding.Status = model.StatusUpdated
	e.Finding.Revision = next(e.Finding.Revision)
	e.Revised = now
	b.stats.Revised++
	b.Report(e, false, false)
}

// Refresh replaces what is known of an open finding without a new revision: the next repetition
// carries it. Its id and start stay.
func (b *Book[D]) Refresh(e *Episode[D], f *model.Finding) {
	was := &e.Finding
	n := *f
	n.ID, n.Start, n.Revision, n.Status = was.ID, was.Start, was.Revision, was.Status
	e.Finding = n
	b.weigh(e)
}

// next returns the revision after another one. Foreign findings may have the highest that there is.
func next(revision int64) int64 {
	if revision == math.MaxInt64 {
		return revision
	}
	return revision + 1
}

// End closes the open findings that have ended, the one that was found longest ago first.
func (b *Book[D]) End(now time.Time, ended func(*Episode[D]) bool) {
	b.at(now)
	for e := range b.All() {
		if ended(e) {
			b.Close(e, now.UnixNano())
		}
	}
}

// Close closes an open finding. at is when it ended, in Unix ns.
func (b *Book[D]) Close(e *Episode[D], at int64) {
	b.leave(e)
	e.Finding.Status = model.StatusClosed
	e.Finding.Revision = next(e.Finding.Revision)
	e.Finding.Time = max(e.Finding.Start, at)
	e.Revised = b.clock
	b.ended.add(e)
	b.remember(e)
	b.stats.Closed++
	b.Report(e, false, true)
}

func (b *Book[D]) at(now time.Time) {
	if now.After(b.clock) {
		b.clock = now
	}
}

// Drop gives up an open finding to make room. It does not report the finding as closed: it may still
// be wrong. Where it is found again it goes on under its id.
func (b *Book[D]) Drop(e *Episode[D]) {
	b.leave(e)
	b.ended.add(e)
	b.stats.Dropped++
}

func (b *Book[D]) leave(e *Episode[D]) {
	k := jobKey{e.Place.Job, e.Place.Incarnation}
	delete(b.open, e.Place)
	b.order.Remove(e.at)
	if b.jobs[k].Remove(e.of); b.jobs[k].Len() == 0 {
		delete(b.jobs, k)
	}
	b.bytes -= e.bytes
	e.at, e.of, e.bytes = nil, nil, 0
}

// Take returns the findings that were opened, revised or closed since the last call, in that order.
func (b *Book[D]) Take() []model.Finding {
	changes := b.Changes()
	if len(changes) == 0 {
		return nil
	}
	out := make([]model.Finding, len(changes))
	for i := range changes {
		out[i] = changes[i].Finding
	}
	return out
}

// Change is one revision of a finding.
type Change[D any] struct {
	Episode *Episode[D]
	Finding model.Finding // as of this revision
	// New: the book did not know the finding. Closed: the finding ends with this revision.
	New, Closed bool
}

// Changes is Take with what happened.
func (b *Book[D]) Changes() []Change[D] {
	out := b.changes
	b.changes = nil
	b.forgetFresh()
	return out
}

// Standing returns the open findings, the one that was found longest ago first. Their time is now, or the time of their
// last revision where that is later: a finding that is open is so until now.
func (b *Book[D]) Standing(now time.Time) []model.Finding {
	all := make([]model.Finding, 0, len(b.open))
	for at := b.order.Front(); at != nil; at = at.Next() {
		f := at.Value.(*Episode[D]).Finding
		f.Time = max(f.Time, now.UnixNano())
		all = append(all, f)
	}
	return all
}
