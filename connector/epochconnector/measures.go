// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	fleet "github.com/lockstep-otel/lockstep/internal/fleet/watch"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// measures are the metrics of saves, of the versions of nodes, and of what ranks have loaded.
type measures struct{ frontier, lag, mixed, fleetMixed, fleetNodes, resumes, replicas series.Metric }

// sums are what their values are taken from.
type sums struct {
	jobs   []watch.Job
	mixed  []fleet.Mixed
	counts []fleet.Count
	// resumes counts, by job, lives of it whose ranks have loaded different states.
	resumes map[string]int
	// replicas counts, by job, groups whose replicas hold different parameters.
	replicas map[string]int
}

func newMeasures(limit int) *measures {
	gauge := func(name, unit, description string) series.Metric {
		return series.Metric{Name: name, Unit: unit, Description: description, Kind: series.Gauge, Limit: limit}
	}
	s := &measures{
		frontier:   gauge(semconv.MetricEpochFrontier, "{epoch}", "The newest epoch that every domain of the job confirms."),
		lag:        gauge(semconv.MetricEpochLag, "{epoch}", "How far the domain that is farthest ahead of the frontier is ahead of it."),
		mixed:      gauge(semconv.MetricEpochMixed, "{save}", "Saves of the job that are called mixed."),
		fleetMixed: gauge(semconv.MetricFleetMixed, "{communicator}", "Communicators of the job of which findings say that versions are mixed."),
		fleetNodes: gauge(semconv.MetricFleetNodes, "{node}", "Nodes that run the version."),
		resumes:    gauge(semconv.MetricResumeMixed, "{incarnation}", "Lives of the job of which findings say that ranks have loaded different states."),
	}
	s.replicas = gauge(semconv.MetricReplicaMixed, "{group}", "Groups of the job of which findings say that replicas hold different parameters.")
	s.replicas.Sums = true
	s.mixed.Sums, s.fleetMixed.Sums, s.fleetNodes.Sums, s.resumes.Sums = true, true, true, true
	return s
}

func (s *measures) all() []*series.Metric {
	return []*series.Metric{&s.frontier, &s.lag, &s.mixed, &s.fleetMixed, &s.fleetNodes, &s.resumes, &s.replicas}
}

// set takes the values of now; the series of jobs that are forgotten end. Where nothing can be
// recovered there is no frontier, and no value of it.
func (s *measures) set(of *sums, now time.Time) {
	for _, j := range of.jobs {
		job := series.Text(semconv.JobID, j.ID)
		if j.Frontier.OK {
			s.frontier.Set(now, float64(j.Frontier.V), job)
		}
		s.lag.Set(now, float64(j.Lag), job)
		s.mixed.Set(now, float64(j.Mixed), job)
	}
	for _, m := range of.mixed {
		s.fleetMixed.Set(now, float64(m.Findings), series.Text(semconv.JobID, m.Job), series.Text(semconv.VersionDomain, string(m.Domain)))
	}
	for _, c := range of.counts {
		s.fleetNodes.Set(now, float64(c.Nodes), series.Text(semconv.VersionDomain, string(c.Domain)), series.Text(semconv.VersionValue, c.Version))
	}
	for id, n := range of.resumes {
		s.resumes.Set(now, float64(n), series.Text(semconv.JobID, id))
	}
	for id, n := range of.replicas {
		s.replicas.Set(now, float64(n), series.Text(semconv.JobID, id))
	}
	for _, m := range s.all() {
		m.Expire(now)
	}
}
