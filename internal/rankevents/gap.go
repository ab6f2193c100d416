// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// gap counts records that were overwritten before they were read.
type gap struct {
	records int64 // since the last step that is complete
	ahead   int64 // of them, those that no record was read behind yet
}

// lose notes records that the last poll could not read: they are missing from the steps that began
// before the first record behind them. It is called once what was read is in its steps.
func (r *Rank) lose(missing int64) {
	until := r.src.MissingUntil()
	if missing == 0 && (r.gap.ahead == 0 || until == 0) {
		return
	}
	for _, s := range r.steps.open {
		switch {
		case s.begin != 0 && s.begin > until:
		case s.lost == 0:
			s.lost = missing + r.gap.ahead
		default:
			s.lost += missing
		}
	}
	r.gap.records += missing
	r.gap.ahead += missing
	if until != math.MaxUint64 {
		r.gap.ahead = 0
	}
}

// missing emits the steps before step n that had no record that could be read. Step n is about to
// be closed.
func (r *Rank) missing(n int64) {
	first := r.steps.closed + 1
	if r.gap.records == 0 || first < 1 || n <= first {
		return
	}
	r.stats.StepsMissing += n - first
	r.batch.Missing = append(r.batch.Missing, model.MissingSteps{
		First: first, Last: n - 1, Records: r.gap.records, Time: r.unix(r.now), Reason: model.MissingOverwritten,
	})
}

// over forgets the gap at the first step that is complete.
func (g *gap) over(s *step) {
	if s.lost == 0 {
		g.records = 0
	}
}
