// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Analysis feeds the engine from traces. It is not safe for concurrent use.
type Analysis struct {
	engine   *straggler.Engine
	unread   int64
	textsCut int64
}

// Outcome is what an input, a deadline or the end brought about.
type Outcome struct {
	Reports []*straggler.StepReport
	Changed []model.Finding // opened, updated or closed
	// Standing are the other findings of the jobs in Changed: a job's findings
	// are told together, so that none is taken for ended because another is newer.
	Standing []model.Finding
}

// NewAnalysis returns an analysis; cfg must be valid.
func NewAnalysis(cfg straggler.Config, now func() time.Time) *Analysis {
	return &Analysis{engine: straggler.New(cfg, now)}
}

// Report says what of step reports is read besides the ranks.
func (a *Analysis) Report(meetings, durations bool) { a.engine.Report(meetings, durations) }

// Add takes the operations among the spans of td, and shows them to visit where
// it is not nil.
func (a *Analysis) Add(td ptrace.Traces, visit func(*model.Rank, []model.Op)) Outcome {
	var problems otelmap.Problems
	var reports []*straggler.StepReport
	ranks := otelmap.ReadOps(td, &problems)
	if visit != nil {
		for i := range ranks {
			visit(&ranks[i].Rank, ranks[i].Ops)
		}
	}
	for i := range ranks {
		reports = append(reports, a.engine.Add(ranks[i].Rank, ranks[i].Ops)...)
	}
	a.unread += problems.Count()
	a.textsCut += problems.TextsCut()
	return a.outcome(reports)
}

// Expire closes the steps whose deadline has passed, and judges jobs of few steps
// of which nothing comes any more.
func (a *Analysis) Expire() Outcome { return a.judged(a.engine.Expire()) }

// Flush closes all steps, as at the end of the input, and brings every finding
// up to date.
func (a *Analysis) Flush() Outcome { return a.judged(a.engine.Flush()) }

// Standing returns the open findings, the one that was reported longest ago first.
func (a *Analysis) Standing() []model.Finding { return a.engine.Standing() }

// Snapshot returns the findings, to be kept over a restart.
func (a *Analysis) Snapshot() ([]byte, error) { return a.engine.Snapshot() }

// Restore takes what Snapshot returned, before anything is added.
func (a *Analysis) Restore(data []byte, now time.Time) error { return a.engine.Restore(data, now) }

// Stats returns the engine's counters, and how many spans and attributes could
// not be read.
func (a *Analysis) Stats() (straggler.Stats, int64) { return a.engine.Stats(), a.unread }

// TextsCut returns how many texts were read only in part, since they were too long.
func (a *Analysis) TextsCut() int64 { return a.textsCut }

// Bytes returns about how many bytes the analysis holds.
func (a *Analysis) Bytes() int64 { return a.engine.Bytes() }

// outcome judges only where a step has come: nothing else changes a finding.
func (a *Analysis) outcome(reports []*straggler.StepReport) Outcome {
	if len(reports) == 0 {
		return Outcome{}
	}
	return a.judged(reports)
}

func (a *Analysis) judged(reports []*straggler.StepReport) Outcome {
	out := Outcome{Reports: reports}
	told := map[string]bool{}
	jobs := map[string]bool{}
	for _, v := range a.engine.Verdicts() {
		out.Changed = append(out.Changed, v.Finding)
		told[v.Finding.ID], jobs[v.Finding.Incarnation] = true, true
	}
	if len(jobs) == 0 {
		return out
	}
	for _, f := range a.Standing() {
		if jobs[f.Incarnation] && !told[f.ID] {
			out.Standing = append(out.Standing, f)
		}
	}
	return out
}
