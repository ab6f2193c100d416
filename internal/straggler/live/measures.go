// SPDX-License-Identifier: Apache-2.0

package live

import (
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// Measures are the metrics of the straggler analysis. They are not safe for
// concurrent use.
type Measures struct {
	stepDuration, caused, suffered, excess, divergence, frequency, offset *series.Metric
}

// stepBounds divide step durations, s: a factor of 2 to 2.5 from the iteration
// of an inference engine to a step with a checkpoint in it.
var stepBounds = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 50, 100, 200, 500}

// NewMeasures returns metrics of at most limit series each, and that of operations of
// at most maxOps.
func NewMeasures(limit, maxOps int) *Measures {
	return &Measures{
		stepDuration: &series.Metric{
			Name: semconv.MetricStepDuration, Unit: "s", Kind: series.Histogram, Limit: limit, Bounds: stepBounds,
			Description: "Duration of a step over all ranks.",
		},
		caused: &series.Metric{
			Name: semconv.MetricWaitCaused, Unit: "s", Kind: series.Seconds, Limit: limit,
			Description: "Time that the other ranks waited for this one.",
		},
		suffered: &series.Metric{
			Name: semconv.MetricWaitSuffered, Unit: "s", Kind: series.Seconds, Limit: limit,
			Description: "Time that this rank waited for others.",
		},
		excess: &series.Metric{
			Name: semconv.MetricStragglerExcess, Unit: "s", Kind: series.Gauge, Limit: limit,
			Description: "Own time of the rank over the median of its peers, in the last step analysed.",
		},
		divergence: &series.Metric{
			Name: semconv.MetricStragglerDivergence, Unit: "1", Kind: series.Gauge, Limit: limit,
			Description: "Mean Kolmogorov-Smirnov distance of the rank's rhythm of operations from the other ranks'.",
		},
		frequency: &series.Metric{
			Name: semconv.MetricOpFrequency, Unit: "{operation}", Kind: series.Counter, Limit: maxOps,
			Description: "Operations of all ranks, by comparison key.",
		},
		offset: &series.Metric{
			Name: semconv.MetricClockOffset, Unit: "s", Kind: series.Gauge, Limit: limit,
			Description: "Offset added to the clock's stamps to place them on the job's timeline.",
		},
	}
}

// Record adds one step.
func (m *Measures) Record(rep *straggler.StepReport, now time.Time) {
	job := series.Text(semconv.JobID, rep.JobID)
	m.stepDuration.Add(now, time.Duration(rep.End-rep.Start).Seconds(), job)
	occurred := map[string]int64{}
	for i := range rep.Ranks {
		r := &rep.Ranks[i]
		for key, h := range r.Durations {
			occurred[key] += h.Count
		}
		rank := series.Number(semconv.Rank, r.Rank.Rank)
		m.caused.Add(now, r.WaitCaused.Seconds(), job, rank)
		m.suffered.Add(now, r.WaitSuffered.Seconds(), job, rank)
		for class, x := range r.Excess {
			m.excess.Set(now, x.Seconds(), job, rank, series.Text(semconv.PointClass, class))
		}
		if r.Divergence.OK {
			m.divergence.Set(now, r.Divergence.V, job, rank)
		}
		m.offset.Set(now, r.Offset.Value.Seconds(), job, series.Text(semconv.ClockID, r.Offset.Clock))
	}
	// In order, so that it does not change from run to run which find no room.
	for _, key := range slices.Sorted(maps.Keys(occurred)) {
		m.frequency.Add(now, float64(occurred[key]), job, series.Text(semconv.OpKey, key))
	}
}

// Expire drops the series without a new value since before.
func (m *Measures) Expire(before time.Time) {
	for _, metric := range m.All() {
		metric.Expire(before)
	}
}

// All returns the metrics.
func (m *Measures) All() []*series.Metric {
	return []*series.Metric{m.stepDuration, m.caused, m.suffered, m.excess, m.divergence, m.frequency, m.offset}
}
