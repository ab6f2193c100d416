// SPDX-License-Identifier: Apache-2.0

package watch

import "github.com/lockstep-otel/lockstep/internal/model"

// Job is what a job can recover.
type Job struct {
	ID, Generation string
	Frontier       model.Optional[int64] // the newest epoch that every domain confirms
	Lag            int64                 // of the domain that is farthest ahead of the frontier
	Mixed          int                   // saves that are called mixed
}

// Jobs sums up the newest generation of each job.
func (w *Watch) Jobs() (list []Job) {
	for _, id := range w.engine.Jobs() {
		gens := w.engine.Generations(id)
		if len(gens) == 0 {
			continue
		}
		j := Job{ID: id, Generation: gens[len(gens)-1]}
		j.Frontier = w.engine.Frontier(id, j.Generation)
		if lags, _ := w.engine.Lags(id, j.Generation, 1); len(lags) > 0 {
			j.Lag = lags[0].Epochs
		}
		for _, e := range w.book.OfJob(id, "") {
			if e.Data.key.generation == j.Generation && Class(e.Finding.Class) == Mixed {
				j.Mixed++
			}
		}
		list = append(list, j)
	}
	return list
}
