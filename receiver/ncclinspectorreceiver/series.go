// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/inspector"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// Values of the hop at which something was lost.
const (
	hopInspector = "nccl_inspector"          // in the job's process
	hopReceiver  = "nccl_inspector_receiver" // here
)

// expireAfter is how long a series is sent that nothing is added to.
const expireAfter = time.Hour

// measures are the metrics of operations, whether their time of day is known or not.
type measures struct {
	duration, io, bandwidth, lost series.Metric

	changed bool
	rates   map[rateKey]*rate // since they were written
	limit   int
}

type rateKey struct {
	job, name    string
	rank, comm   int64
	timingSource string
}

// rate is how many bytes went over the bus in how long.
type rate struct{ bytes, seconds float64 }

func newMeasures(limit int) *measures {
	return &measures{
		limit: limit,
		rates: map[rateKey]*rate{},
		duration: series.Metric{
			Name: semconv.MetricCollectiveDuration, Unit: "s", Kind: series.Exponential, Limit: limit,
			Description: "Durations of collectives and messages.",
		},
		io: series.Metric{
			Name: semconv.MetricCollectiveIO, Unit: "By", Kind: series.Counter, Limit: limit,
			Description: "Bytes of collectives and messages: the size of each, as the program asked for it.",
		},
		bandwidth: series.Metric{
			Name: semconv.MetricCollectiveBusBandwidth, Unit: "By/s", Kind: series.Gauge, Limit: limit,
			Description: "Bus bandwidth of collectives and messages, over what was read since it was sent last.",
		},
		lost: series.Metric{
			Name: semconv.MetricEventsLost, Unit: "{event}", Kind: series.Counter, Limit: limit,
			Description: "Operations and lines that were lost, by where and why.",
		},
	}
}

// record adds a collective, a message, or what a dump says was dropped.
func (s *measures) record(now time.Time, rank *model.Rank, r *inspector.Record) {
	s.changed = true
	if r.Kind == inspector.Dump {
		for _, l := range r.Lost {
			s.lost.Add(now, float64(l.N), series.Text(semconv.JobID, rank.JobID), series.Number(semconv.Rank, rank.Rank),
				series.Text(semconv.PointHop, hopInspector), series.Text(semconv.PointReason, l.Reason))
		}
		return
	}
	k := rateKey{job: rank.JobID, name: r.Name, rank: rank.Rank, comm: r.Comm.Ranks, timingSource: r.Timing}
	attrs := k.attributes()
	s.duration.Add(now, r.Seconds, attrs...)
	s.io.Add(now, float64(r.Bytes), attrs...)
	if r.BusRate.OK && r.Seconds > 0 {
		s.rate(k).add(r.BusRate.V*r.Seconds, r.Seconds)
	}
}

func (k *rateKey) attributes() []series.Attr {
	return []series.Attr{
		series.Text(semconv.JobID, k.job), series.Number(semconv.Rank, k.rank), series.Number(semconv.CommSize, k.comm),
		series.Text(semconv.CollectiveName, k.name), series.Text(semconv.PointTimingSource, k.timingSource),
	}
}

// rate returns the rate of a series; those beyond the limit have one together.
func (s *measures) rate(k rateKey) *rate {
	if s.rates[k] == nil {
		if len(s.rates) >= s.limit {
			return &rate{}
		}
		s.rates[k] = &rate{}
	}
	return s.rates[k]
}

func (r *rate) add(bytes, seconds float64) { r.bytes, r.seconds = r.bytes+bytes, r.seconds+seconds }

// lostLine counts what a fault cost.
func (s *measures) lostLine(now time.Time, job string, f *inspector.Fault) {
	n := f.Lost()
	if n == 0 {
		return
	}
	s.changed = true
	s.lost.Add(now, float64(n), series.Text(semconv.JobID, job),
		series.Text(semconv.PointHop, hopReceiver), series.Text(semconv.PointReason, string(f.Reason)))
}

func (s *measures) write(md pmetric.Metrics, now time.Time) {
	for k, r := range s.rates {
		s.bandwidth.Set(now, r.bytes/r.seconds, k.attributes()...)
	}
	clear(s.rates)
	before := now.Add(-expireAfter)
	for _, m := range []*series.Metric{&s.duration, &s.io, &s.bandwidth, &s.lost} {
		m.Expire(before)
	}
	otelmap.WriteMetrics(md, now, &s.duration, &s.io, &s.bandwidth, &s.lost)
}
