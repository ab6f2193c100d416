// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

// finding shows one as soon as it opens, and a later revision that has news; the latest revision is in
// the summary.
func (s *demoScreen) finding(f *model.Finding) {
	if f.Status == model.StatusClosed && !s.journal.Knows(f.ID) {
		return
	}
	n, ok := s.journal.Note(f, s.now())
	switch {
	case !ok, !n.First && (s.o.json || s.over):
		return
	case n.First:
		s.opened(&n)
	default:
		s.clear()
		s.tell("Step %d: %s.\n", s.step, report.Update(n.Number, f))
	}
	s.journal.Printed(&n, s.now())
}

func (s *demoScreen) opened(n *journal.News) {
	s.clear()
	if s.o.json {
		told := jsonFinding(n.Finding, s.step)
		told.hang(n.Finding, time.Since(s.stepAt))
		s.json(told)
		if len(s.atStep) < journal.MaxFindings {
			s.atStep[n.Finding.ID] = s.step
		}
		return
	}
	_, _ = fmt.Fprintf(s.w, "The job is at step %d.\n", s.step)
	_ = report.Finding(s.w, n.Finding, fmt.Sprintf("Finding %d", n.Number), s.style) // the writer remembers an error
}

// updateEvery leaves time to read a line.
const updateEvery = 3 * time.Second

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

// jsonLatest is the latest revision of each finding that was shown, most costly first.
func (s *demoScreen) jsonLatest() (latest []demoFinding) {
	for _, e := range s.journal.Entries() {
		if step, ok := s.atStep[e.Latest.ID]; ok {
			latest = append(latest, jsonFinding(&e.Latest, step))
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
