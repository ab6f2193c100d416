// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// findingsOf makes a finding of each episode.
func findingsOf[E any](episodes []E, now time.Time, finding func(*E, time.Time) model.Finding) []model.Finding {
	out := make([]model.Finding, 0, len(episodes))
	for i := range episodes {
		out = append(out, finding(&episodes[i], now))
	}
	return out
}

// setStatus says how far an episode is, by its revision and when it ended; zero: it has not.
func setStatus(f *model.Finding, revision int64, ended time.Time) {
	f.Revision, f.Status = revision, model.StatusUpdated
	switch {
	case !ended.IsZero():
		f.Status, f.Time = model.StatusClosed, ended.UnixNano()
	case revision == 1:
		f.Status = model.StatusOpen
	}
}
