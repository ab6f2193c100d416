// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/incident"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

func newCounts(limit int) *otelmap.Metric {
	return &otelmap.Metric{
		Name:        semconv.MetricFindings,
		Unit:        "{finding}",
		Description: "Findings opened, updated and closed.",
		Kind:        otelmap.KindCounter,
		Limit:       limit,
	}
}

// count adds each event under its state. A finding that closes at first sight
// has opened too, so that opened less closed is what is open.
func count(m *otelmap.Metric, events []incident.Event, now time.Time) {
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

func countAs(m *otelmap.Metric, f *model.Finding, status string, now time.Time) {
	m.Add(now, 1,
		otelmap.Text(semconv.JobID, f.JobID),
		otelmap.Text(semconv.FindingKind, f.Kind),
		otelmap.Text(semconv.FindingClass, f.Class),
		otelmap.Text(semconv.FindingStatus, status),
		otelmap.Text(semconv.PointSeverity, otelmap.SeverityText(f.Severity)),
	)
}
