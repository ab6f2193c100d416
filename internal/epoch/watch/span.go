// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Span is one save, from its first write to when it was seen to be whole.
type Span struct {
	Job, Generation string
	Save            int64
	Start, End      time.Time
	// FromFiles: Start is a modification time, by the clock of a file system; else it is when the save
	// was heard of first.
	FromFiles bool
	Domains   int
	// Last is the domain that confirmed last, as far as it was heard.
	Last model.Domain
	// Confirmed is of each kind which domain of it confirmed last, and when that was heard; in that order.
	Confirmed []model.Confirmation
}

// maxSave is the longest that a save takes: a file that is older than that when its save is whole was
// copied, or its clock is wrong.
const maxSave = 24 * time.Hour

// maxKinds is more than there are kinds of domains.
const maxKinds = 16

// maxSpans bounds the spans that wait to be taken.
const maxSpans = 1024

// spanning is what becomes a span.
type spanning struct {
	heard   time.Time // first
	written int64     // first, Unix ns; 0: nobody says
	last    model.Domain
	kinds   []model.Confirmation // one of each kind
	partial bool                 // it was judged before it was whole
	missed  bool                 // it was begun before one who looks at a part of it did
	given   bool
}

// take notes what one who looks says; by is nil where it is not followed.
func (s *spanning) take(o *model.EpochObservation, by *observer, changed bool, now time.Time) {
	switch {
	case by == nil:
		s.missed = true
	case o.FirstWrite > 0:
		s.missed = s.missed || time.Unix(0, o.FirstWrite).Before(by.since)
	case s.written == 0:
		s.missed = s.missed || s.heard.Equal(by.since)
	}
	if o.FirstWrite > 0 && (s.written == 0 || o.FirstWrite < s.written) {
		s.written = o.FirstWrite
	}
	if changed && o.State == model.DomainCommitted && o.Domain.Kind.IsPart() {
		s.last = model.Domain{Kind: o.Domain.Kind, ID: strings.Clone(o.Domain.ID)}
		s.kinds = slices.DeleteFunc(s.kinds, func(c model.Confirmation) bool { return c.Domain.Kind == s.last.Kind })
		if len(s.kinds) < maxKinds {
			s.kinds = append(s.kinds, model.Confirmation{Domain: s.last, Time: now.UnixNano()})
		}
	}
}

// span notes that a save is whole, the first time. Of one that was begun while somebody did not look,
// it is not known when it was seen to be whole first.
func (w *Watch) span(k saveKey, s *save, now time.Time) {
	if s.verdict.Verdict != epoch.Converged {
		s.spans.partial = true
		return
	}
	if s.spans.given {
		return
	}
	s.spans.given = true
	start := time.Unix(0, s.spans.written)
	files := s.spans.written > 0 && !start.After(now) && now.Sub(start) <= maxSave
	if !files {
		start = s.spans.heard
	}
	if s.spans.missed || !files && !s.spans.partial || len(w.spans) >= maxSpans {
		w.stats.SpansLost++
		return
	}
	w.spans = append(w.spans, Span{
		Job: k.job, Generation: k.generation, Save: k.save, Start: start, End: now, FromFiles: files,
		Domains: s.verdict.Domains, Last: s.spans.last, Confirmed: s.spans.kinds,
	})
}

// Spans returns the saves that were seen to be whole since it was asked last.
func (w *Watch) Spans() []Span {
	out := w.spans
	w.spans = nil
	return out
}
