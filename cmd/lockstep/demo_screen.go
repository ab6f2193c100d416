// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
	"github.com/lockstep-otel/lockstep/internal/report/terminal"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// demoScreen is what a person sees of a demo.
type demoScreen struct {
	o     *demoOptions
	dir   string
	w     *untilFails
	style report.Style
	live  bool // a line that is written over
	wide  int  // columns of it that are on the screen

	step    int64     // last that rank 0 told of
	stepAt  time.Time // when
	opens   int       // operations told of that did not end in this step
	journal *journal.Journal
	atStep  map[string]int64 // of the job, when a finding was shown first, by its id
	over    bool             // the job has ended: the summary says the rest
	now     func() time.Time
	results []demoLine
}

func newDemoScreen(o *demoOptions, dir string, w io.Writer) *demoScreen {
	return &demoScreen{
		o: o, dir: dir, w: &untilFails{w: w}, style: terminal.StyleOf(w, os.Getenv), live: terminal.Is(w) && !o.json,
		journal: journal.New(journal.Config{UpdateEvery: updateEvery}), atStep: map[string]int64{}, now: time.Now, step: -1,
	}
}

var faultTold = map[string]string{
	"none":       "nothing ails any of them",
	"compute":    "rank %d computes slowly, as a GPU at 60 %% of its clock",
	"host":       "rank %d is 30 ms late in every step, and tells nobody what it does meanwhile",
	"link":       "the link that rank %d sends on is throttled to 5 MiB/s",
	"compile":    "rank %d compiles for 30 ms in every step",
	"dataloader": "rank %d loads its data 30 ms late in every step",
	"gc":         "rank %d collects garbage for 30 ms in every step",
	"checkpoint": "all ranks save a checkpoint after every step, and rank %d takes 70 ms longer",
	"hang":       "the host of rank %d is to stand still, and to tell nobody in what",
	"exit":       "the process of rank %d is to end without a word",
	"mismatch":   "rank %d is to call a collective in another size than the others",
}

func (s *demoScreen) begin() {
	if s.o.json {
		return
	}
	ails, with := faultTold[s.o.fault], ""
	if s.o.torch != "" {
		ails, with = torchFaultTold[s.o.fault], " with PyTorch"
	}
	if s.o.fault != "none" {
		ails = fmt.Sprintf(ails, s.o.rank)
	}
	trains := "ranks train"
	if s.o.ranks == 1 {
		trains = "rank trains"
	}
	ends := "Ctrl-C ends it."
	if s.o.steps > 0 {
		ends = fmt.Sprintf("Ends after %s, or with Ctrl-C.", counted(s.o.steps, "step"))
	}
	rings := filepath.Join(s.dir, "rings")
	s.tell("%d %s a small model%s on this machine; %s.", s.o.ranks, trains, with, ails)
	s.tell("%s", s.o.watchedBy())
	if told := s.o.witnessTold(); told != "" {
		s.tell("%s", told)
	}
	s.tell("rings: %s (bin/lockstep rings %s shows what is in flight)", rings, rings)
	s.tell("%s\n", ends)
}

// tell prints a paragraph; the writer remembers an error.
func (s *demoScreen) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_ = report.Paragraph(s.w, text, s.style)
	if strings.HasSuffix(text, "\n") {
		_, _ = fmt.Fprintln(s.w)
	}
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// line takes in what a worker said.
func (s *demoScreen) line(l *demoLine) {
	if l.Done {
		s.results = append(s.results, *l)
		return
	}
	s.step, s.stepAt, s.opens = l.Step, time.Now(), 0
	if s.o.progress && s.o.json {
		s.json(map[string]int64{"step": l.Step})
	}
	if s.live {
		s.draw(fmt.Sprintf("step %d   %.1f ms per step   loss %.4f", l.Step, l.last(), l.Loss))
	}
}

// stillAfter is how long a step may take before its time is shown: some forty of
// the demo's steps.
const stillAfter = 2 * time.Second

// still shows for how long the job has been at its step, once that is long.
func (s *demoScreen) still(now time.Time) {
	if at := now.Sub(s.stepAt); s.live && s.step >= 0 && at >= stillAfter {
		s.draw(fmt.Sprintf("step %d for %d s", s.step, int(at.Seconds())))
	}
}

// maxOpens bounds what is told of one standstill: it holds up every rank.
const maxOpens = 16

// open tells of an operation that does not end.
func (s *demoScreen) open(said string) {
	if s.opens++; s.o.json || s.over || s.opens > maxOpens {
		return
	}
	s.clear()
	s.tell("%s.", printable(said))
}

func (s *demoScreen) draw(text string) {
	pad := max(0, s.wide-len(text))
	s.wide = len(text)
	_, _ = fmt.Fprintf(s.w, "\r%s%s", text, strings.Repeat(" ", pad))
}

func (s *demoScreen) clear() {
	if s.wide > 0 {
		_, _ = fmt.Fprintf(s.w, "\r%s\r", strings.Repeat(" ", s.wide))
		s.wide = 0
	}
}

func (s *demoScreen) ending() {
	s.clear()
	if !s.o.json {
		_, _ = fmt.Fprintln(s.w, "Ending; Ctrl-C again ends at once.")
	}
}

func (s *demoScreen) json(v any) {
	text, err := json.Marshal(v)
	if err == nil {
		_, _ = fmt.Fprintf(s.w, "%s\n", text)
	}
}

// demoSummary is the end of a demo on one line.
type demoSummary struct {
	Steps      int64   `json:"steps"`
	P50        float64 `json:"iteration_ms_p50"`
	P95        float64 `json:"iteration_ms_p95"`
	LossFirst  float64 `json:"loss_first"`
	LossLast   float64 `json:"loss_last"`
	Identical  bool    `json:"weights_identical"`
	Findings   int     `json:"findings"`
	Operations int64   `json:"operations"`
	Ranks      int     `json:"ranks"`
	// NotCompared says why nothing can have been found.
	NotCompared string `json:"not_compared,omitempty"`
	// NotSeen says which ranks could not be watched, and why.
	NotSeen string        `json:"not_seen,omitempty"`
	Latest  []demoFinding `json:"latest,omitempty"` // of each finding the last revision
}

// ran reports whether each rank has made some steps, and so must have been seen.
func (s *demoScreen) ran() bool {
	least := int64(math.MaxInt64)
	for i := range s.results {
		least = min(least, s.results[i].Steps)
	}
	return len(s.results) == s.o.ranks && least >= seenSteps
}

// seenSteps is more steps than a rank can make before anything of it is read.
const seenSteps = 3

// summary tells how it ended; unseen is which ranks could not be watched.
func (s *demoScreen) summary(seen *tap, unseen string) {
	s.clear()
	_, spans, ranks := seen.result()
	sum := demoSummary{
		Steps: s.step + 1, Findings: s.journal.Count(), Operations: spans, Ranks: ranks,
		Identical: len(s.results) == s.o.ranks, NotCompared: s.o.notCompared(), NotSeen: unseen,
	}
	for i := range s.results {
		l := &s.results[i]
		t := l.times()
		sum.Steps, sum.LossFirst, sum.LossLast = l.Steps, l.LossFirst, l.LossLast
		sum.P50, sum.P95 = max(sum.P50, t.P50), max(sum.P95, t.P95)
		sum.Identical = sum.Identical && l.Identical
	}
	if sum.NotCompared == "" && sum.NotSeen == "" && sum.Findings == 0 {
		sum.NotCompared = s.o.tooShort(sum.Steps)
	}
	if s.o.json {
		sum.Latest = s.jsonLatest()
		s.json(sum)
		return
	}
	s.told(&sum)
	for _, line := range s.journal.Summary() {
		s.tell("%s", line)
	}
	if s.o.keep {
		s.tell("The rings are kept in %s.", s.dir)
	}
}

// notCompared says why nothing can be found, if so.
func (o *demoOptions) notCompared() string {
	switch {
	case o.ranks == 1:
		return "one rank has nobody to be compared with"
	case o.witness == witnessHostEvents:
		return "when operations are enqueued does not say when they end, by which ranks are compared"
	case o.level == "summary":
		return "level summary carries no single operations by which ranks could be compared"
	}
	return ""
}

// tooShort says that so many steps are too few to name anybody, if so. The first ones
// may pass before anything is read.
func (o *demoOptions) tooShort(steps int64) string {
	engine := straggler.NewDefaultConfig()
	need := seenSteps + engine.StepsNeeded(o.ranks)
	if steps >= need {
		return ""
	}
	return fmt.Sprintf("%s of %s are too few; %d are needed", counted(steps, "step"), counted(int64(o.ranks), "rank"), need)
}

func (s *demoScreen) told(sum *demoSummary) {
	text := fmt.Sprintf("The job came to its end after %s, without a result", counted(sum.Steps, "step"))
	if len(s.results) > 0 {
		text = fmt.Sprintf("%s of %.1f ms (95 of 100 within %.1f ms); loss %.4f to %.4f",
			counted(sum.Steps, "step"), sum.P50, sum.P95, sum.LossFirst, sum.LossLast)
	}
	if sum.Identical {
		text += "; all ranks hold the same weights"
	}
	s.tell("%s.", text)
	found := "nothing was found"
	switch {
	case sum.Findings > 0:
		found = counted(int64(sum.Findings), "finding") + ", above"
	case sum.NotCompared != "":
		found = "nothing could be judged: " + sum.NotCompared
	case sum.NotSeen != "" && sum.Ranks < 2:
		found = "nothing could be judged: " + sum.NotSeen
	case sum.NotSeen != "":
		found = "nothing was found among those; " + sum.NotSeen
	}
	s.tell("%s of %s were read; %s.", counted(sum.Operations, "span"), counted(int64(sum.Ranks), "rank"), found)
}
