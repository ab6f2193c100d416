// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/series"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

func byName(m *Measures) map[string]*series.Metric {
	out := map[string]*series.Metric{}
	for _, metric := range m.All() {
		out[metric.Name] = metric
	}
	return out
}

func pointsOf(m *series.Metric) []*series.Point { return slices.Collect(m.Points()) }

// attributes returns the attributes of a point as one would write them down.
func attributes(p *series.Point) map[string]any {
	out := map[string]any{}
	for _, a := range p.Attrs() {
		out[a.Name()] = a.Text()
		if n, ok := a.Number(); ok {
			out[a.Name()] = n
		}
	}
	return out
}

func TestMeasures_SixSteps_AreMeasured(t *testing.T) {
	m := NewMeasures(1000, 100)
	reports, _ := stragglertest.SlowRank2(t, func(*model.Rank, []model.Op) {})
	scores := map[int64]float64{}
	for _, rep := range reports {
		m.Record(rep, stragglertest.Start)
		for _, r := range rep.Ranks {
			require.True(t, r.Divergence.OK)
			scores[r.Rank.Rank] = r.Divergence.V
		}
	}
	got := byName(m)
	for name, want := range map[string]struct {
		unit string
		kind series.Kind
	}{
		"lockstep.step.duration":        {"s", series.Histogram},
		"lockstep.wait.caused":          {"s", series.Seconds},
		"lockstep.wait.suffered":        {"s", series.Seconds},
		"lockstep.straggler.excess":     {"s", series.Gauge},
		"lockstep.straggler.divergence": {"1", series.Gauge},
		"lockstep.op.frequency":         {"{operation}", series.Counter},
		"lockstep.clock.offset":         {"s", series.Gauge},
	} {
		require.Contains(t, got, name)
		assert.Equal(t, want.unit, got[name].Unit, name)
		assert.Equal(t, want.kind, got[name].Kind, name)
	}
	assert.Len(t, got, 7)

	steps := pointsOf(got["lockstep.step.duration"])
	require.Len(t, steps, 1)
	assert.Equal(t, uint64(6), steps[0].Count())
	assert.InDelta(t, 6*0.031, steps[0].Value(), 1e-6)
	assert.Equal(t, map[string]any{"lockstep.job.id": "job"}, attributes(steps[0]))

	caused := pointsOf(got["lockstep.wait.caused"])
	require.Len(t, caused, 4, "ranks that caused nothing have a series too")
	for _, p := range caused {
		// In each step ranks 0, 1 and 3 wait 20, 19 and 17 ms for rank 2.
		want := map[int64]float64{2: 6 * 0.056}[attributes(p)["lockstep.rank"].(int64)]
		assert.InDelta(t, want, p.Value(), 1e-9)
	}
	suffered := pointsOf(got["lockstep.wait.suffered"])
	assert.InDelta(t, 6*0.020, suffered[0].Value(), 1e-9)
	assert.Equal(t, 8, got["lockstep.straggler.excess"].Len())
	assert.Equal(t, 1, got["lockstep.clock.offset"].Len(), "all ranks stand on one clock")

	counts := map[any]float64{}
	for p := range got["lockstep.op.frequency"].Points() {
		assert.Equal(t, "job", attributes(p)["lockstep.job.id"])
		counts[attributes(p)["lockstep.op.key"]] = p.Value()
	}
	assert.Equal(t, map[any]float64{"gemm": 6 * 4, "all_reduce": 6 * 4}, counts, "over all ranks and steps")
	diverged := pointsOf(got["lockstep.straggler.divergence"])
	require.Len(t, diverged, 4)
	assert.Equal(t, map[string]any{"lockstep.job.id": "job", "lockstep.rank": int64(2)}, attributes(diverged[2]))
	for _, p := range diverged {
		rank := attributes(p)["lockstep.rank"].(int64)
		assert.InDelta(t, scores[rank], p.Value(), 0, "of the last step")
	}
}

func TestMeasures_LimitAndExpiry(t *testing.T) {
	m := NewMeasures(2, 1)
	reports, _ := stragglertest.SlowRank2(t, func(*model.Rank, []model.Op) {})
	m.Record(reports[0], stragglertest.Start)
	caused := pointsOf(byName(m)["lockstep.wait.caused"])
	require.Len(t, caused, 3)
	assert.True(t, caused[2].Overflow())
	frequency := pointsOf(byName(m)["lockstep.op.frequency"])
	require.Len(t, frequency, 2)
	assert.Equal(t, "all_reduce", attributes(frequency[0])["lockstep.op.key"], "the first in order finds room")
	assert.True(t, frequency[1].Overflow())
	assert.InDelta(t, 4, frequency[1].Value(), 0)
	m.Expire(stragglertest.Start.Add(time.Second))
	assert.Zero(t, byName(m)["lockstep.wait.caused"].Len())
	assert.Len(t, pointsOf(byName(m)["lockstep.wait.caused"]), 1, "the overflow series goes on")
}
