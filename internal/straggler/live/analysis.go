// SPDX-License-Identifier: Apache-2.0

package live

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Analysis runs the straggler engine on operations as they arrive, and returns what changed. It is not
// safe for concurrent use.
type Analysis struct{ engine *straggler.Engine }

// Outcome is what changed with an input, a deadline or the end.
type Outcome struct {
	Reports []*straggler.StepReport
	Changed []model.Finding // opened, updated or closed
	// Standing are the other open findings of the jobs in Changed. A job's findings are sent together, so
	// that a consumer does not take one for closed because another is newer.
	Standing []model.Finding
}

// NewAnalysis returns an analysis; cfg must be valid.
func NewAnalysis(cfg straggler.Config, now func() time.Time) *Analysis {
	return &Analysis{engine: straggler.New(cfg, now)}
}

// Report sets what step reports have besides the ranks: meetings, and durations by operation.
func (a *Analysis) Report(meetings, durations bool) { a.engine.Report(meetings, durations) }

// Ask has a function asked what is missing of each step.
func (a *Analysis) Ask(missing func(id, incarnation string, step int64) straggler.Missing) {
	a.engine.Ask(missing)
}

// Add takes the operations of some ranks.
func (a *Analysis) Add(ranks []model.RankOps) Outcome {
	var reports []*straggler.StepReport
	for i := range ranks {
		reports = append(reports, a.engine.Add(ranks[i].Rank, ranks[i].Ops)...)
	}
	return a.outcome(reports)
}

// Expire closes the steps whose deadline has passed, and judges jobs of few steps whose operations have
// stopped.
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

// Forget drops the jobs of some ids, and reports nothing of them.
func (a *Analysis) Forget(ids []string) { a.engine.Forget(ids) }

// Touch begins the deadlines of open steps anew.
func (a *Analysis) Touch() { a.engine.Touch() }

// Stats returns the engine's counters.
func (a *Analysis) Stats() straggler.Stats { return a.engine.Stats() }

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
	changed := map[string]bool{}
	jobs := map[string]bool{}
	for _, v := range a.engine.Verdicts() {
		out.Changed = append(out.Changed, v.Finding)
		changed[v.Finding.ID], jobs[v.Finding.Incarnation] = true, true
	}
	if len(jobs) == 0 {
		return out
	}
	for _, f := range a.Standing() {
		if jobs[f.Incarnation] && !changed[f.ID] {
			out.Standing = append(out.Standing, f)
		}
	}
	return out
}
