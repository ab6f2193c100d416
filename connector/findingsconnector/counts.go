// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/incident"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

func newCounts(limit int) *series.Metric {
	return &series.Metric{
		Name:        semconv.MetricFindings,
		Unit:        "{finding}",
		Description: "Findings opened, updated and closed.",
		Kind:        series.Counter,
		Limit:       limit,
	}
}

// count adds each event under its state. A finding that closes at first sight
// has opened too, so that opened less closed is what is open.
func count(m *series.Metric, events []incident.Event, now time.Time) {
	for i := range events {
		ev := &events[i]
		switch {
		case ev.New && ev.Closed:
			countAs(m, &ev.Finding, model.StatusOpen, now)
			countAs(m, &ev.Finding, model.StatusClosed, now)
		case ev.New:
			countAs(m, &ev.Finding, model.StatusOpen, now)
		case ev.Closed:
			countAs(m, &ev.Finding, model.StatusClosed, now)
		default:
			countAs(m, &ev.Finding, model.StatusUpdated, now)
		}
	}
}

func countAs(m *series.Metric, f *model.Finding, status string, now time.Time) {
	m.Add(now, 1,
		series.Text(semconv.JobID, f.JobID),
		series.Text(semconv.FindingKind, f.Kind),
		series.Text(semconv.FindingClass, f.Class),
		series.Text(semconv.FindingStatus, status),
		series.Text(semconv.PointSeverity, f.Severity.String()),
	)
}
