// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// stillFor is how old an operation must be for the analysis: it is the watch that knows how
// old one may become.
const stillFor = time.Second

// New returns a watch; cfg must be valid.
func New(cfg Config) *Watch {
	cfg.Analysis.StallAfter = stillFor
	return newWatch(cfg, func(ev *Evidence) *desync.Report {
		a := desync.New(cfg.Analysis)
		a.SetJob(ev.Job)
		for _, s := range ev.States {
			a.Add(s)
		}
		for _, x := range ev.Absences {
			a.AddAbsence(x)
		}
		for _, x := range ev.Witnesses {
			a.AddWitness(x)
		}
		return a.Conclude(0)
	})
}
