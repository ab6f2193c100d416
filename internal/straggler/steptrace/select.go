// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// DefaultSpans is the most spans of one step that go to a tracing backend:
// a Jaeger needs 0.3 s to show 20,000 spans and 14 s for 330,000, and nobody
// reads more than 2,000.
const DefaultSpans = 2000

// maxVictims is how many members that waited are shown per collective. All
// wait for the same rank; the five that waited longest show how long.
const maxVictims = 5

// Selection is the part of a step that explains it.
type Selection struct {
	Spans map[model.SpanRef]struct{}
	// Omitted is the number of spans of the step that were left out.
	Omitted int64
}

// Select picks at most limit spans of a step, the root not counted: in
// order of importance those that findings point at, the blame path, the last
// arrivers and victims of the collectives in order of the wait caused, and the
// step spans of the other ranks. No span is picked without its rank's step
// span, so that the tree has no gaps.
//
// context names further spans worth showing of a rank, such as its longest
// operations; they are picked for the ranks of findings and of the blame path.
func Select(r *straggler.StepReport, findings []model.Finding, context map[int64][]model.SpanRef, limit int) Selection {
	s := newSelector(r, limit)
	if len(r.Ranks) <= limit/4 {
		s.addRanks()
	}
	s.addFindings(findings)
	path := blamePath(r)
	s.addMeetings(path)
	s.addPath()
	for _, rank := range blamed(findings, path) {
		for _, ref := range context[rank] {
			s.addOf(rank, ref)
		}
	}
	s.addMeetings(byWaitCaused(r.Meetings))
	s.addRanks()
	return Selection{Spans: s.picked, Omitted: spansOf(r) - int64(len(s.picked))}
}

// spansOf counts all spans of the step: operations and one step span a rank.
func spansOf(r *straggler.StepReport) int64 {
	n := int64(len(r.Ranks))
	for i := range r.Ranks {
		n += int64(r.Ranks[i].Ops)
	}
	return n
}

// selector picks spans until the limit is reached.
type selector struct {
	report *straggler.StepReport
	limit  int
	steps  map[int64]model.SpanRef // a rank's step span
	picked map[model.SpanRef]struct{}
}

func newSelector(r *straggler.StepReport, limit int) *selector {
	s := &selector{
		report: r,
		limit:  limit,
		steps:  make(map[int64]model.SpanRef, len(r.Ranks)),
		picked: map[model.SpanRef]struct{}{},
	}
	for i := range r.Ranks {
		s.steps[r.Ranks[i].Rank.Rank] = r.Ranks[i].Span
	}
	return s
}

// add picks the spans, all or none.
func (s *selector) add(refs ...model.SpanRef) bool {
	missing := refs[:0:0]
	for _, ref := range refs {
		if _, ok := s.picked[ref]; !ok && !slices.Contains(missing, ref) {
			missing = append(missing, ref)
		}
	}
	if len(s.picked)+len(missing) > s.limit {
		return false
	}
	for _, ref := range missing {
		s.picked[ref] = struct{}{}
	}
	return true
}

// addOf picks a span of a rank together with the rank's step span.
func (s *selector) addOf(rank int64, ref model.SpanRef) bool {
	if step, ok := s.steps[rank]; ok {
		return s.add(step, ref)
	}
	return s.add(ref)
}

// addFindings picks the step spans of the ranks found, and the members of
// meetings that findings point at.
func (s *selector) addFindings(findings []model.Finding) {
	links := map[model.SpanRef]struct{}{}
	for i := range findings {
		for _, rank := range findings[i].AboutRanks() {
			if step, ok := s.steps[rank]; ok {
				s.add(step)
			}
		}
		for _, ref := range findings[i].Links {
			links[ref] = struct{}{}
		}
	}
	for i := range s.report.Meetings {
		for _, m := range s.report.Meetings[i].Members {
			if _, ok := links[m.Span]; ok {
				s.addOf(m.Rank, m.Span)
			}
		}
	}
}

func (s *selector) addMeetings(meetings []*straggler.Meeting) {
	for _, m := range meetings {
		if len(s.picked) >= s.limit {
			return
		}
		s.addMeeting(m)
	}
}

// addPath picks the operations that took most of each stretch of the critical path.
func (s *selector) addPath() {
	for i := range s.report.Path {
		part := &s.report.Path[i]
		if part.Span != (model.SpanRef{}) && !s.addOf(part.Rank, part.Span) {
			return
		}
	}
}

// addMeeting picks the last arriver and those who waited longest for it.
func (s *selector) addMeeting(m *straggler.Meeting) {
	if len(m.Members) == 0 {
		return
	}
	last := lastOf(m)
	if !s.addOf(last.Rank, last.Span) {
		return
	}
	for _, v := range victims(m, last.Rank) {
		s.addOf(v.Rank, v.Span)
	}
}

// victims returns the members that waited longest for the last, longest first,
// and of equals the earlier.
func victims(m *straggler.Meeting, last int64) []*straggler.Member {
	longest := make([]*straggler.Member, 0, maxVictims+1)
	for i := range m.Members {
		v := &m.Members[i]
		if v.Rank == last || (len(longest) == maxVictims && v.Wait <= longest[maxVictims-1].Wait) {
			continue
		}
		at := len(longest)
		for at > 0 && longest[at-1].Wait < v.Wait {
			at--
		}
		longest = slices.Insert(longest, at, v)
		longest = longest[:min(len(longest), maxVictims)]
	}
	return longest
}

// blamed returns the ranks that findings name, then those on the blame path.
func blamed(findings []model.Finding, path []*straggler.Meeting) []int64 {
	var ranks []int64
	for i := range findings {
		ranks = append(ranks, findings[i].AboutRanks()...)
	}
	for _, m := range path {
		ranks = append(ranks, lastOf(m).Rank)
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// addRanks picks the step spans, of the ranks that caused most wait first.
func (s *selector) addRanks() {
	ranks := make([]*straggler.RankStep, len(s.report.Ranks))
	for i := range s.report.Ranks {
		ranks[i] = &s.report.Ranks[i]
	}
	slices.SortStableFunc(ranks, func(a, b *straggler.RankStep) int { return cmp.Compare(b.WaitCaused, a.WaitCaused) })
	for _, r := range ranks {
		if !s.add(r.Span) {
			return
		}
	}
}

func byWaitCaused(meetings []straggler.Meeting) []*straggler.Meeting {
	sorted := make([]*straggler.Meeting, 0, len(meetings))
	caused := make(map[*straggler.Meeting]time.Duration, len(meetings))
	for i := range meetings {
		if m := &meetings[i]; m.Attributed {
			sorted = append(sorted, m)
			caused[m] = m.WaitCaused()
		}
	}
	slices.SortStableFunc(sorted, func(a, b *straggler.Meeting) int { return cmp.Compare(caused[b], caused[a]) })
	return sorted
}
