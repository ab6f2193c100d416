// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// newBook returns the book of a watch. A job's findings are part of what it may hold: their bytes are
// bounded with those of the job.
func newBook(cfg *Config) *finding.Book[told] {
	return finding.New[told](finding.Config{MaxOpen: cfg.MaxJobs * maxEpisodes, MaxOpenOfJob: maxEpisodes, MaxBytes: cfg.MaxBytes})
}

// Snapshot returns the findings, to be kept over a restart.
func (w *Watch) Snapshot() ([]byte, error) { return w.book.Snapshot() }

// Restore takes what Snapshot returned, before anything is observed.
func (w *Watch) Restore(data []byte, now time.Time) error { return w.book.Restore(data, now) }

// recall gives a job that appears the findings that were open before a restart.
func (w *Watch) recall(j *job) {
	for _, e := range w.book.Episodes() {
		of := jobKey{e.Place.Job, e.Place.Incarnation}
		if e.Data.job == nil && of.id == j.key.id && (of == j.key || of.lifeless()) {
			e.Data = told{job: j, by: sourceOf(e)}
			j.told = append(j.told, e)
			j.keep(e)
		}
	}
}

// sourceOf returns the data source of a finding.
func sourceOf(e *episode) string {
	if h, ok := evidence.As[evidence.Held](e.Finding.Evidence); ok && h.Watched == byProcess {
		return byProcess
	}
	if h, ok := evidence.As[evidence.Hang](e.Finding.Evidence); ok && h.Watched == byDumps {
		return byDumps
	}
	return byStates
}

// closeUnseen closes what was open before a restart, where its job does not appear.
func (w *Watch) closeUnseen(now time.Time) {
	w.book.End(now, func(e *episode) bool { return e.Data.job == nil && now.Sub(e.Confirmed) >= w.cfg.Forget })
}

// awaited reports whether, after a restart, the state of a process that was stopped may not have come yet.
func (w *Watch) awaited(e *episode, now time.Time) bool {
	return e.Restored && now.Sub(e.Confirmed) < unsettledFor*w.cfg.StateTTL
}
