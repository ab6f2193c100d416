// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// link takes a span of another trace that a step works for.
func (r *Rank) link(rec *ring.Record) {
	l := rec.Link()
	ref := model.SpanRef{Trace: l.Trace, Span: l.Span}
	if ref.Trace == (model.TraceID{}) || ref.Span == (model.SpanID{}) {
		r.stats.LinksInvalid++
		return
	}
	if l.Step < 0 {
		r.stats.WithoutStep++
		return
	}
	r.enterMarked()
	s := r.room(l.Step)
	if s == nil {
		r.stats.Late++
		return
	}
	if !s.link(ref) {
		r.stats.LinksDropped++
	}
}

// link notes a span once; false where there is no room.
func (s *step) link(ref model.SpanRef) bool {
	switch {
	case slices.Contains(s.links, ref):
		return true
	case len(s.links) >= model.MaxStepLinks:
		s.linksDropped++
		return false
	}
	s.links = append(s.links, ref)
	s.table.heldLinks++
	return true
}
