// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// measures are the metrics of hangs.
type measures struct{ open, waiting, limit series.Metric }

func newMeasures(limit int) *measures {
	gauge := func(name, unit, description string) series.Metric {
		return series.Metric{Name: name, Unit: unit, Description: description, Kind: series.Gauge, Limit: limit}
	}
	s := &measures{
		open:    gauge(semconv.MetricHangOpen, "{finding}", "Findings of kind desync that are open."),
		waiting: gauge(semconv.MetricHangWaiting, "{rank}", "Ranks that wait for what hangs, themselves or through others."),
		limit:   gauge(semconv.MetricHangLimit, "s", "How long the job may stand still in a phase until that is called a hang."),
	}
	s.open.Sums, s.waiting.Sums = true, true
	return s
}

func (s *measures) all() []*series.Metric { return []*series.Metric{&s.open, &s.waiting, &s.limit} }

// set takes the values of now; the series of jobs that are forgotten end.
func (s *measures) set(w *watch.Watch, now time.Time) {
	for _, h := range w.Hangs() {
		job := series.Text(semconv.JobID, h.Job)
		s.open.Set(now, float64(h.Findings), job)
		s.waiting.Set(now, float64(h.Waiting), job)
	}
	for _, l := range w.Limits() {
		s.limit.Set(now, l.Limit.Seconds(), series.Text(semconv.JobID, l.Job), series.Text(semconv.Phase, l.Phase))
	}
	for _, m := range s.all() {
		m.Expire(now)
	}
}
