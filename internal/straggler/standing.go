// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxOpen and maxOpenOfJob bound the open findings of all jobs and of one: more than a thousand
// stragglers at once are no stragglers.
const (
	maxOpen      = 4096
	maxOpenOfJob = 1024
)

// changed returns the findings that changed since the last call, as they are now.
func (e *Engine) changed() []Verdict {
	var of []*episode
	for _, c := range e.book.Changes() {
		dropped := !c.Episode.IsOpen() && c.Episode.Finding.Status != model.StatusClosed
		if !dropped && !slices.Contains(of, c.Episode) {
			of = append(of, c.Episode)
		}
	}
	// A finding that ended and began again is there twice: its revisions stay together, in their order.
	turns := map[finding.Place]int{}
	for _, e := range of {
		turns[e.Place] = e.Data.turn
	}
	slices.SortStableFunc(of, func(a, b *episode) int {
		p, q := &a.Place, &b.Place
		return cmp.Or(cmp.Compare(p.Incarnation, q.Incarnation), cmp.Compare(p.Job, q.Job), cmp.Compare(turns[*p], turns[*q]),
			cmp.Compare(p.Name, q.Name))
	})
	var out []Verdict
	for _, of := range of {
		e.reports++
		of.Data.dirty, of.Data.told, of.Data.order = false, of.Finding, e.reports
		out = append(out, verdictOf(of))
	}
	return out
}

// Standing returns the open findings of all jobs as they are now, the one that was reported longest ago
// first.
func (e *Engine) Standing() []model.Finding {
	open := e.book.Episodes()
	slices.SortStableFunc(open, func(a, b *episode) int { return cmp.Compare(a.Data.order, b.Data.order) })
	var out []model.Finding
	for _, of := range open {
		out = append(out, of.Finding)
	}
	return out
}

// Snapshot returns the findings, to be kept over a restart.
func (e *Engine) Snapshot() ([]byte, error) { return e.book.Snapshot() }

// Restore takes what Snapshot returned, before anything is added. Each finding is open as it was. The
// next judgement of its job that names its place confirms it. It is closed where none does for CleanSteps
// steps or a window, whichever is more, and where its job does not appear for 10 minutes.
func (e *Engine) Restore(data []byte, now time.Time) error {
	if err := e.book.Restore(data, now); err != nil {
		return fmt.Errorf("restore stragglers: %w", err)
	}
	for of := range e.book.All() {
		f := &of.Finding
		of.Data.told, e.waiting = *f, true
		if f.RanksCount.V == int64(len(f.Ranks)) { // else only the first are known
			of.Data.ranks = f.Ranks
		}
	}
	return nil
}

// closeAbsent closes the findings that were open before a restart and whose jobs have not appeared since.
func (e *Engine) closeAbsent() {
	if !e.waiting {
		return
	}
	e.waiting = false
	now := e.now()
	for of := range e.book.All() {
		switch {
		case !of.Restored || e.jobs[jobKey{of.Place.Job, of.Place.Incarnation}] != nil:
		case now.Sub(of.Confirmed) >= longIdle:
			e.book.Close(of, of.Finding.Time)
		default:
			e.waiting = true
		}
	}
}
