// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// measures are the metrics of hangs.
type measures struct{ open, waiting, limit otelmap.Metric }

func newMeasures(limit int) *measures {
	gauge := func(name, unit, description string) otelmap.Metric {
		return otelmap.Metric{Name: name, Unit: unit, Description: description, Kind: otelmap.KindGauge, Limit: limit}
	}
	s := &measures{
		open:    gauge(semconv.MetricHangOpen, "{finding}", "Findings of kind desync that are open."),
		waiting: gauge(semconv.MetricHangWaiting, "{rank}", "Ranks that wait for what hangs, themselves or through others."),
		limit:   gauge(semconv.MetricHangLimit, "s", "How long the job may stand still in a phase until that is called a hang."),
	}
	s.open.Sums, s.waiting.Sums = true, true
	return s
}

func (s *measures) all() []*otelmap.Metric { return []*otelmap.Metric{&s.open, &s.waiting, &s.limit} }

// set takes the values of now; the series of jobs that are forgotten end.
func (s *measures) set(w *watch.Watch, now time.Time) {
	for _, h := range w.Hangs() {
		job := otelmap.Text(semconv.JobID, h.Job)
		s.open.Set(now, float64(h.Findings), job)
		s.waiting.Set(now, float64(h.Waiting), job)
	}
	for _, l := range w.Limits() {
		s.limit.Set(now, l.Limit.Seconds(), otelmap.Text(semconv.JobID, l.Job), otelmap.Text(semconv.Phase, l.Phase))
	}
	for _, m := range s.all() {
		m.Expire(now)
	}
}
