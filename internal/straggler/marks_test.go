// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// skewed shifts what rank 3's host stamps, launches with it where they are to be.
func skewed(by time.Duration, launches bool) func(rank int64, ops []model.Op) {
	return func(rank int64, ops []model.Op) {
		if rank != 3 {
			return
		}
		for i := range ops {
			op := &ops[i]
			switch op.Kind {
			case model.KindScope, model.KindHost, model.KindStep:
				op.Start, op.End = op.Start+int64(by), op.End+int64(by)
			}
			if op.Launch.OK && launches {
				op.Launch.V += int64(by)
			}
		}
	}
}

// The clock of one host is wrong, and that of its device is right. Nobody is accused for it, of
// nothing that he is not, and nothing is told more surely.
func TestAHostsClockAccusesNobody(t *testing.T) {
	const steps = 24
	device := training.Fault{Family: training.GPUClock, Severity: 1.2, Ranks: []int64{3}}
	host := training.Fault{Family: training.HostDataLoader, Severity: 0.03, Ranks: []int64{3}}
	for k, layout := range []training.Layout{dataParallel, {DP: 2, PP: 4, Microbatches: 8, Layers: 2, PerNode: 2}} {
		name := []string{"data parallel", "pipeline"}[k]
		for f, faults := range [][]training.Fault{nil, {device}, {host}} {
			fault := []string{"", model.ClassCompute, model.ClassHost}[f]
			spec := training.Spec{Name: name, Layout: layout, Noise: training.DefaultNoise(), Steps: steps, Faults: faults}
			right := bent(t, spec, skewed(0, false))
			sure := 0.0
			for _, v := range right.Jobs()[0].Verdicts {
				sure = max(sure, v.Finding.Confidence)
			}
			assert.Zero(t, right.Stats().HostsContradicted)
			for i, by := range []time.Duration{-50 * ms, -20 * ms, -5 * ms, 5 * ms, 20 * ms, 50 * ms} {
				for l, launches := range []bool{false, true} {
					// In the quick tier each layout meets each of these with one of the three faults.
					if !tier.Full(t) && (2*i+l+k+f)%3 != 0 {
						continue
					}
					what := fmt.Sprintf("%s, %q, by %v, launches too: %v", name, fault, by, launches)
					e := bent(t, spec, skewed(by, launches))
					job := e.Jobs()[0]
					for _, v := range job.Verdicts {
						f := v.Finding
						assert.Equal(t, []any{int64(3), fault}, []any{f.Rank.V, f.Class}, what)
						assert.LessOrEqual(t, f.Confidence, sure, what)
					}
					longer := job.StepTime - right.Jobs()[0].StepTime
					assert.LessOrEqual(t, longer, max(by, -by)*steps, what)
					if by < 0 {
						assert.LessOrEqual(t, longer, -by+2*ms*steps, what+": it is early once")
					}
				}
			}
		}
	}
}

// An operation neither begins before its step nor is launched outside of it.
func TestStepsInWhichTheirOperationsCannotHaveBeen(t *testing.T) {
	spec := training.Spec{Name: "ddp", Layout: dataParallel, Noise: training.DefaultNoise(), Steps: 12}
	e := bent(t, spec, skewed(20*ms, false))
	assert.Equal(t, int64(12), e.Stats().HostsContradicted)
	said := strings.Join(e.Jobs()[0].Problems, "\n")
	assert.Contains(t, said, "in 12 steps of ranks operations begin before their step")
	assert.Contains(t, said, "rank 3 in step 11")

	of := func(start, launch float64) int64 {
		v := &rankView{rankStep: &rankStep{marked: true, start: nanos(0), end: nanos(10)}}
		for range 4 {
			a := activity{kind: actCompute, start: nanos(start), end: nanos(start + 1)}
			if launch != 0 {
				a.launch = nanos(launch)
			}
			v.acts = append(v.acts, a)
		}
		return v.outside()
	}
	assert.Zero(t, of(12, 9), "the device lags behind")
	assert.InDelta(t, 2e6, of(12, 12), 2, "it was launched after the step")
	assert.InDelta(t, 3e6, of(5, -3), 2, "and before it")
	assert.InDelta(t, 2e6, of(-2, 0), 2)
	assert.Zero(t, of(-0.01, 0))

	v := &rankView{rankStep: &rankStep{scopes: true, hosts: true, acts: []activity{{kind: actScope}, {kind: actHost}}}}
	v.forgetHost()
	assert.False(t, v.scoped(), "no scope of it counts")
	assert.Empty(t, v.syncs(0))

	// Where most are so, that is how their source marks steps.
	e = bent(t, spec, func(_ int64, ops []model.Op) { skewed(20*ms, false)(3, ops) })
	assert.Zero(t, e.Stats().HostsContradicted)
}

func TestAHostOnAnotherClockIsToldLessSurely(t *testing.T) {
	spec := training.Spec{
		Name: "ddp", Layout: dataParallel, Noise: training.DefaultNoise(), Steps: 24,
		Faults: []training.Fault{{Family: training.HostDataLoader, Severity: 0.03, Ranks: []int64{3}}},
	}
	vs := accusations(bent(t, spec, skewed(50*ms, false)).Jobs()[0].Verdicts)
	require.Len(t, vs, 1)
	assert.Equal(t, model.ClassHost, vs[0].Finding.Class)
	assert.Less(t, vs[0].Finding.Confidence, 0.75)
	assert.Contains(t, evidenceOf(t, vs[0].Finding).LoweredBy, "its host and its device are stamped by clocks that contradict each other")
}
