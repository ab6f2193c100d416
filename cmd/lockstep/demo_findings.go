// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// toldFinding is a finding that was shown.
type toldFinding struct {
	number int           // in order of appearance, from 1
	last   model.Finding // the revision that was shown last
	atStep int64         // of the job, when it was shown first
}

// finding shows one as soon as it opens, and a later revision where it says
// something else; the latest revision is in the summary.
func (s *demoScreen) finding(f *model.Finding) {
	switch t := s.known[f.ID]; {
	case t != nil:
		s.revised(t, f)
	case f.Status != model.StatusClosed:
		s.opened(f)
	}
}

func (s *demoScreen) opened(f *model.Finding) {
	t := &toldFinding{number: len(s.known) + 1, last: *f, atStep: s.step}
	s.known[f.ID] = t
	s.clear()
	if s.o.json {
		told := jsonFinding(f, s.step)
		told.hang(f, time.Since(s.stepAt))
		s.json(told)
		return
	}
	_, _ = fmt.Fprintf(s.w, "The job is at step %d.\n", s.step)
	title := fmt.Sprintf("Finding %d", t.number)
	_ = report.Finding(s.w, f, title, s.style) // the writer remembers an error
}

// updateEvery leaves time to read a line; a revision that is not told is
// compared anew with the next.
const updateEvery = 3 * time.Second

func (s *demoScreen) revised(t *toldFinding, f *model.Finding) {
	closed := f.Status == model.StatusClosed
	if s.o.json || s.over || !t.differs(f) || !closed && time.Since(s.updated) < updateEvery {
		return
	}
	t.last, s.updated = *f, time.Now()
	verb := "is now"
	if closed {
		verb = "closed"
	}
	s.clear()
	s.tell("Step %d: finding %d %s: %s.\n", s.step, t.number, verb, report.Brief(f))
}

// differs reports whether f says something else than what was shown last.
func (t *toldFinding) differs(f *model.Finding) bool {
	was, is := t.last.CostSeconds.Or(0), f.CostSeconds.Or(0)
	return (t.last.Status == model.StatusClosed) != (f.Status == model.StatusClosed) ||
		t.last.Class != f.Class || t.last.Rank != f.Rank || t.last.Link != f.Link || max(was, is) > 1.5*min(was, is)
}

// maxLatest bounds the lines at the end; findings behind the first few are small.
const maxLatest = 16

// latest says what each finding that was shown came to.
func (s *demoScreen) latest(findings []model.Finding) {
	told := 0
	for i := range findings {
		t := s.known[findings[i].ID]
		if t == nil {
			continue
		}
		if told++; told <= maxLatest {
			s.tell("At the end, finding %d: %s.", t.number, report.Brief(&findings[i]))
		}
	}
	if told > maxLatest {
		s.tell("And %d more.", told-maxLatest)
	}
}

// demoFinding is a finding on one line, with the step that the job was at.
type demoFinding struct {
	Finding   string  `json:"finding"`
	Class     string  `json:"class"`
	Cause     string  `json:"cause,omitempty"`
	Op        string  `json:"op,omitempty"`
	Rank      *int64  `json:"rank,omitempty"`
	Peer      *int64  `json:"peer,omitempty"`
	Link      string  `json:"link,omitempty"`
	StepFirst *int64  `json:"step_first,omitempty"`
	StepLast  *int64  `json:"step_last,omitempty"`
	Cost      float64 `json:"cost_seconds"`
	AtStep    int64   `json:"at_step"`
	demoHang
}

func jsonFinding(f *model.Finding, atStep int64) demoFinding {
	return demoFinding{
		Finding: f.Kind, Class: f.Class, Cause: f.Cause, Op: f.Op, Link: f.Link, Cost: f.CostSeconds.Or(0), AtStep: atStep,
		Rank: pointer(f.Rank), Peer: pointer(f.Peer), StepFirst: pointer(f.StepFirst), StepLast: pointer(f.StepLast),
	}
}

// jsonLatest is the latest revision of each finding that was shown.
func (s *demoScreen) jsonLatest(findings []model.Finding) (latest []demoFinding) {
	for i := range findings {
		if t := s.known[findings[i].ID]; t != nil {
			latest = append(latest, jsonFinding(&findings[i], t.atStep))
		}
	}
	return latest
}

func pointer(o model.Optional[int64]) *int64 {
	if !o.OK {
		return nil
	}
	return &o.V
}
