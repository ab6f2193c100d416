// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Snapshot returns what is to be known after a restart: all findings with their incidents.
func (e *Engine) Snapshot() ([]byte, error) { return e.book.Snapshot() }

// Restore takes what Snapshot returned, before any finding is added. Findings that were open are open, as
// if they had been received now, and are reported once more under their revisions, as updates.
func (e *Engine) Restore(data []byte, now time.Time) error {
	if err := e.book.Restore(data, now); err != nil {
		return err
	}
	groups := map[string]*group{}
	all := slices.AppendSeq(slices.Collect(e.book.Ended()), e.book.All())
	slices.SortStableFunc(all, func(a, b *entry) int { return a.Opened.Compare(b.Opened) })
	for _, n := range all {
		e.seq++
		n.Data = &member{seq: e.seq}
		n.Spanned = n.Spanned || n.Finding.Status == model.StatusClosed
		e.hold(n)
		g := groups[n.Finding.IncidentID]
		if g == nil {
			newGroup(n)
			groups[n.Finding.IncidentID] = n.Data.incident
			continue
		}
		g.take(n)
	}
	for n := range e.book.All() { // its last change may not have reached a consumer
		e.book.Repeat(n)
	}
	for _, n := range all {
		e.weigh(n)
	}
	e.trim()
	return nil
}
