// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/series"
)

// measures are the metrics of clocks.
type measures struct{ offset, bound, drift series.Metric }

func newMeasures(limit int) *measures {
	gauge := func(name, unit, description string) series.Metric {
		return series.Metric{Name: name, Unit: unit, Description: description, Kind: series.Gauge, Limit: limit}
	}
	return &measures{
		offset: gauge(semconv.MetricClockOffset, "s", "What is added to a clock's readings to place them on the timeline; of clocks that show Unix time."),
		bound:  gauge(semconv.MetricClockBound, "s", "Half width of what the offset can be; never an estimate."),
		drift:  gauge(semconv.MetricClockDrift, "ppm", "By how much the timeline runs faster than the clock."),
	}
}

func (s *measures) all() []*series.Metric { return []*series.Metric{&s.offset, &s.bound, &s.drift} }

func (s *measures) expire(before time.Time) {
	for _, m := range s.all() {
		m.Expire(before)
	}
}

// unixWithin tells clocks that show Unix time, however wrong, from those that count
// from elsewhere: their offset is an epoch and no error.
const unixWithin = int64(10 * 365 * 24 * time.Hour)

func (s *measures) add(models []model.ClockModel, now time.Time) {
	for i := range models {
		m := &models[i]
		if m.Untrusted {
			continue // nothing is known of it: its series end
		}
		id := series.Text(semconv.ClockID, m.Clock)
		// Before anybody's time of day is known, raw clocks differ by little, too.
		if !strings.HasSuffix(m.Clock, "/raw") && m.Offset > -unixWithin && m.Offset < unixWithin {
			s.offset.Set(now, float64(m.Offset)/1e9, id)
		}
		if m.Bound != model.NoBound {
			s.bound.Set(now, float64(m.Bound)/1e9, id)
		}
		s.drift.Set(now, m.Drift*1e6, id)
	}
}
