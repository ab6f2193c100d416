// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// expireAfter is how long a series is sent that nothing is added to.
const expireAfter = time.Hour

// recorded is what dumps say of operations that are over. Dumps of one rank overlap, so that
// it remembers what it has told of.
type recorded struct {
	newest  *bounded.Map[rankKey, int64] // Unix ns at which the last operation told of was seen to be over
	changed bool

	duration, latency series.Metric
}

func newRecorded(cfg *Config) recorded {
	return recorded{
		newest: bounded.NewMap(bounded.MapConfig[rankKey, int64]{Entries: cfg.MaxFiles, Order: bounded.ByUse}),
		duration: series.Metric{
			Name: semconv.MetricCollectiveDuration, Unit: "s", Kind: series.Exponential, Limit: cfg.MaxSeries,
			Description: "Durations of collectives and messages.",
		},
		latency: series.Metric{
			Name: semconv.MetricCollectiveSchedulingLatency, Unit: "s", Kind: series.Exponential, Limit: cfg.MaxSeries,
			Description: "From when the host enqueued a collective or message to when it was seen to have started.",
		},
	}
}

// add takes the operations of a dump that are over, and returns those that are new. Where there are too many
// ranks, it forgets the one of which no dump came for longest: what it returns of that rank again are spans
// with the ids that they had.
func (r *recorded) add(now time.Time, s *model.RankState, dump *flightrecorder.Dump) []model.Op {
	key := rankKey{s.Rank.JobID, s.Rank.Rank}
	after, _ := r.newest.Get(key)
	newest := after
	var ops []model.Op
	for f := range frwatch.Finished(s, dump, after) {
		newest = max(newest, f.Op.End)
		ops = append(ops, f.Op)
		attrs := []series.Attr{
			series.Text(semconv.JobID, s.Rank.JobID), series.Number(semconv.Rank, s.Rank.Rank),
			series.Text(semconv.CollectiveName, f.Op.Name),
		}
		if f.Latency.OK {
			r.changed = true
			r.latency.Add(now, f.Latency.V, attrs...)
		}
		if f.Duration.OK {
			r.changed = true
			r.duration.Add(now, f.Duration.V, append(attrs, series.Text(semconv.PointTimingSource, f.Timing))...)
		}
	}
	if len(ops) > 0 {
		r.newest.Set(key, newest)
	}
	return ops
}

func (r *recorded) write(md pmetric.Metrics, now time.Time) {
	before := now.Add(-expireAfter)
	for _, m := range []*series.Metric{&r.duration, &r.latency} {
		m.Expire(before)
	}
	otelmap.WriteMetrics(md, now, &r.duration, &r.latency)
}
