// SPDX-License-Identifier: Apache-2.0

package owdprobereceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/probe"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

const (
	// expireAfter is how long a series is sent that nothing is added to: of peers that
	// left.
	expireAfter = time.Hour
	// expireGauges is the same for what is not of the past: five of the longest windows.
	expireGauges = 5 * time.Minute
	// maxOwn is beyond what a node can have, each with some names that lists gave it.
	maxOwn = 4 * mesh.MaxPerNode
)

// measures are the metrics of the probe mesh.
type measures struct {
	delay, loss, reordered, bound series.Metric // of a direction
	roundTrip, sent, unanswered   series.Metric // of a path, both ways

	kinds kinds
	own   map[string]bool // end points of this node: those that have probed
}

func newMeasures(limit int) *measures {
	histogram := func(name, what string) series.Metric {
		return series.Metric{Name: name, Unit: "s", Description: what, Kind: series.Exponential, Limit: limit}
	}
	counter := func(name, what string) series.Metric {
		return series.Metric{Name: name, Unit: "{packet}", Description: what, Kind: series.Counter, Limit: limit}
	}
	return &measures{
		own:        map[string]bool{},
		kinds:      newKinds(2 * limit),
		delay:      histogram(semconv.MetricOWDDelay, "One-way delays, corrected by the estimate of both clocks."),
		roundTrip:  histogram(semconv.MetricOWDRoundTrip, "Time under way of requests and replies, without the time that the peer took to answer."),
		loss:       counter(semconv.MetricOWDLoss, "Packets that were lost in this direction, where it is known."),
		reordered:  counter(semconv.MetricOWDReordered, "Packets that arrived after one that was sent later."),
		sent:       counter(semconv.MetricOWDSent, "Requests that were answered or given up."),
		unanswered: counter(semconv.MetricOWDUnanswered, "Requests that were not answered, in whichever direction the packet was lost."),
		bound: series.Metric{
			Name: semconv.MetricOWDBound, Unit: "s", Kind: series.Gauge, Limit: limit,
			Description: "By how much the one-way delays of the last window can be wrong, all together.",
		},
	}
}

func (s *measures) all() []*series.Metric {
	return []*series.Metric{&s.delay, &s.roundTrip, &s.bound, &s.sent, &s.loss, &s.unanswered, &s.reordered}
}

func (s *measures) record(now time.Time, o *probe.Outcome) {
	s.kinds.learn(o.Counters)
	for i := range o.Trips {
		if len(s.own) < maxOwn {
			s.own[o.Trips[i].Src] = true
		}
	}
	for i := range o.Paths {
		p := &o.Paths[i]
		t := track{src: p.Src, dst: p.Dst, prober: p.Dst, path: p.Path}
		if s.own[p.Src] {
			t.prober = p.Src
		}
		s.recordPath(now, t, p)
	}
	for i := range o.Trips {
		s.recordTrip(now, &o.Trips[i])
	}
}

func (s *measures) recordPath(now time.Time, t track, p *probe.PathStats) {
	if kind := s.kinds.worst(now, t, p.Stamps); kind != "" && len(p.Delays) > 0 {
		at := t.points(kind)
		s.delay.AddAll(now, seconds(p.Delays), at...)
		s.bound.Set(now, float64(p.Bound)/1e9, at...)
	}
	if own := s.kinds.own; own != "" {
		at := t.points(own)
		s.loss.Add(now, float64(p.Lost), at...)
		s.reordered.Add(now, float64(p.Reordered), at...)
	}
}

func (s *measures) recordTrip(now time.Time, p *probe.TripStats) {
	t := track{src: p.Src, dst: p.Dst, prober: p.Src, path: p.Path, trip: true}
	if kind := s.kinds.worst(now, t, p.Stamps); kind != "" {
		s.roundTrip.AddAll(now, seconds(p.RoundTrips), t.points(kind)...)
	}
	if own := s.kinds.own; own != "" {
		at := t.points(own)
		s.sent.Add(now, float64(p.Sent), at...)
		s.unanswered.Add(now, float64(p.Unanswered), at...)
	}
}

func (t track) points(stamps string) []series.Attr {
	return []series.Attr{
		series.Text(semconv.PointSrc, t.src), series.Text(semconv.PointDst, t.dst),
		series.Text(semconv.PointProber, t.prober), series.Number(semconv.PointPath, int64(t.path)), series.Text(semconv.PointStamps, stamps),
	}
}

func seconds(ns []int64) []float64 {
	out := make([]float64, len(ns))
	for i, v := range ns {
		out[i] = float64(v) / 1e9
	}
	return out
}

func (s *measures) write(md pmetric.Metrics, now time.Time) {
	for _, m := range s.all() {
		m.Expire(now.Add(-expireAfter))
	}
	s.bound.Expire(now.Add(-expireGauges))
	s.kinds.expire(now.Add(-expireAfter))
	otelmap.WriteMetrics(md, now, s.all()...)
}
