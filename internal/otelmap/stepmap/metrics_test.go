// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

func metricsByName(md pmetric.Metrics) map[string]pmetric.Metric {
	out := map[string]pmetric.Metric{}
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		out[m.Name()] = m
	}
	return out
}

func TestMetrics(t *testing.T) {
	m := NewMetrics(1000, 100)
	reports, _ := stragglertest.SlowRank2(t, func(*model.Rank, []model.Op) {})
	scores := map[int64]float64{}
	for _, rep := range reports {
		m.Record(rep, stragglertest.Start)
		for _, r := range rep.Ranks {
			require.True(t, r.Divergence.OK)
			scores[r.Rank.Rank] = r.Divergence.V
		}
	}
	md := m.Write(stragglertest.Start)
	assert.Zero(t, md.ResourceMetrics().At(0).Resource().Attributes().Len(), "every dimension stands on the data points")
	got := metricsByName(md)
	for name, want := range map[string]struct {
		unit string
		kind pmetric.MetricType
	}{
		"lockstep.step.duration":        {"s", pmetric.MetricTypeHistogram},
		"lockstep.wait.caused":          {"s", pmetric.MetricTypeSum},
		"lockstep.wait.suffered":        {"s", pmetric.MetricTypeSum},
		"lockstep.straggler.excess":     {"s", pmetric.MetricTypeGauge},
		"lockstep.straggler.divergence": {"1", pmetric.MetricTypeGauge},
		"lockstep.op.frequency":         {"{operation}", pmetric.MetricTypeSum},
		"lockstep.clock.offset":         {"s", pmetric.MetricTypeGauge},
	} {
		require.Contains(t, got, name)
		assert.Equal(t, want.unit, got[name].Unit(), name)
		assert.Equal(t, want.kind, got[name].Type(), name)
	}
	assert.Len(t, got, 7)

	steps := got["lockstep.step.duration"].Histogram().DataPoints()
	require.Equal(t, 1, steps.Len())
	assert.Equal(t, uint64(6), steps.At(0).Count())
	assert.InDelta(t, 6*0.031, steps.At(0).Sum(), 1e-6)
	assert.Equal(t, map[string]any{"lockstep.job.id": "job"}, steps.At(0).Attributes().AsRaw())

	caused := got["lockstep.wait.caused"].Sum().DataPoints()
	require.Equal(t, 4, caused.Len(), "ranks that caused nothing have a series too")
	for _, p := range caused.All() {
		// In each step ranks 0, 1 and 3 wait 20, 19 and 17 ms for rank 2.
		want := map[int64]float64{2: 6 * 0.056}[p.Attributes().AsRaw()["lockstep.rank"].(int64)]
		assert.InDelta(t, want, p.DoubleValue(), 1e-9)
	}
	suffered := got["lockstep.wait.suffered"].Sum().DataPoints()
	assert.InDelta(t, 6*0.020, suffered.At(0).DoubleValue(), 1e-9)
	assert.Equal(t, 8, got["lockstep.straggler.excess"].Gauge().DataPoints().Len())
	assert.Equal(t, 1, got["lockstep.clock.offset"].Gauge().DataPoints().Len(), "all ranks stand on one clock")

	counts := map[any]int64{}
	for _, p := range got["lockstep.op.frequency"].Sum().DataPoints().All() {
		assert.Equal(t, "job", p.Attributes().AsRaw()["lockstep.job.id"])
		counts[p.Attributes().AsRaw()["lockstep.op.key"]] = p.IntValue()
	}
	assert.Equal(t, map[any]int64{"gemm": 6 * 4, "all_reduce": 6 * 4}, counts, "over all ranks and steps")
	diverged := got["lockstep.straggler.divergence"].Gauge().DataPoints()
	require.Equal(t, 4, diverged.Len())
	assert.Equal(t, map[string]any{"lockstep.job.id": "job", "lockstep.rank": int64(2)}, diverged.At(2).Attributes().AsRaw())
	for _, p := range diverged.All() {
		rank := p.Attributes().AsRaw()["lockstep.rank"].(int64)
		assert.InDelta(t, scores[rank], p.DoubleValue(), 0, "of the last step")
	}
}

func TestMetricsLimitAndExpiry(t *testing.T) {
	m := NewMetrics(2, 1)
	reports, _ := stragglertest.SlowRank2(t, func(*model.Rank, []model.Op) {})
	m.Record(reports[0], stragglertest.Start)
	caused := metricsByName(m.Write(stragglertest.Start))["lockstep.wait.caused"].Sum().DataPoints()
	require.Equal(t, 3, caused.Len())
	assert.Equal(t, map[string]any{"otel.metric.overflow": true}, caused.At(2).Attributes().AsRaw())
	frequency := metricsByName(m.Write(stragglertest.Start))["lockstep.op.frequency"].Sum().DataPoints()
	require.Equal(t, 2, frequency.Len())
	assert.Equal(t, "all_reduce", frequency.At(0).Attributes().AsRaw()["lockstep.op.key"], "the first in order finds room")
	assert.Equal(t, map[string]any{"otel.metric.overflow": true}, frequency.At(1).Attributes().AsRaw())
	assert.Equal(t, int64(4), frequency.At(1).IntValue())
	m.Expire(stragglertest.Start.Add(time.Second))
	assert.Equal(t, 1, metricsByName(m.Write(stragglertest.Start))["lockstep.wait.caused"].Sum().DataPoints().Len())
}
