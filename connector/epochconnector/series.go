package epochconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// series are the metrics of saves.
type series struct{ frontier, lag, mixed otelmap.Metric }

func newSeries(limit int) *series {
	gauge := func(name, unit, description string) otelmap.Metric {
		return otelmap.Metric{Name: name, Unit: unit, Description: description, Kind: otelmap.KindGauge, Limit: limit}
	}
	s := &series{
		frontier: gauge(semconv.MetricEpochFrontier, "{epoch}", "The newest epoch that every domain of the job confirms."),
		lag:      gauge(semconv.MetricEpochLag, "{epoch}", "How far the domain that is farthest ahead of the frontier is ahead of it."),
		mixed:    gauge(semconv.MetricEpochMixed, "{save}", "Saves of the job that are called mixed."),
	}
	s.mixed.Sums = true
	return s
}

func (s *series) all() []*otelmap.Metric { return []*otelmap.Metric{&s.frontier, &s.lag, &s.mixed} }

// set takes the values of now; the series of jobs that are forgotten end. Where nothing can be
// recovered there is no frontier, and no value of it.
func (s *series) set(jobs []watch.Job, now time.Time) {
	for _, j := range jobs {
		job := otelmap.Text(semconv.JobID, j.ID)
		if j.Frontier.OK {
			s.frontier.Set(now, float64(j.Frontier.V), job)
		}
		s.lag.Set(now, float64(j.Lag), job)
		s.mixed.Set(now, float64(j.Mixed), job)
	}
	for _, m := range s.all() {
		m.Expire(now)
	}
}
