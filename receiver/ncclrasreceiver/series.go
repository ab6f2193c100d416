// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// forgetAfter is after how many intervals without an answer a job's series are not sent any
// more.
const forgetAfter = 3

// measures are the metrics of RAS.
type measures struct{ launched, absent series.Metric }

func newMeasures(limit int) measures {
	return measures{
		launched: series.Metric{
			Name: semconv.MetricNCCLLaunched, Unit: "{operation}", Kind: series.Gauge, Limit: limit, Sums: true,
			Description: "Collectives that a rank has launched on all communicators that there are, by function.",
		},
		absent: series.Metric{
			Name: semconv.MetricNCCLAbsent, Unit: "{rank}", Kind: series.Gauge, Limit: limit, Sums: true,
			Description: "Ranks that do not answer NCCL's RAS, by whether it considers them dead.",
		},
	}
}

// measure hands on the metrics of a job.
func (p *poller) measure(j *ras.Job, now time.Time) {
	if p.metrics == nil {
		return
	}
	s := &p.series
	job := []series.Attr{series.Text(semconv.JobID, j.ID), series.Text(semconv.JobIncarnation, j.Incarnation)}
	for _, n := range j.Launched() {
		s.launched.Set(now, float64(n.N), append(job[:len(job):len(job)],
			series.Number(semconv.Rank, n.Rank), series.Text(semconv.CollectiveName, n.Func))...)
	}
	counts := map[model.AbsenceReason]int{model.AbsentDead: 0, model.AbsentMissing: 0}
	for i := range j.Absent {
		counts[j.Absent[i].Reason]++
	}
	for reason, n := range counts {
		s.absent.Set(now, float64(n), append(job[:len(job):len(job)], series.Text(semconv.PointReason, string(reason)))...)
	}
	old := now.Add(-forgetAfter * p.cfg.PollInterval)
	s.launched.Expire(old)
	s.absent.Expire(old)
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, &s.launched, &s.absent)
	if p.metrics.Once(p.ctx, md).Kept {
		p.telemetry.ReceiverNcclRasMetricsDropped.Add(p.ctx, 1)
	}
}
