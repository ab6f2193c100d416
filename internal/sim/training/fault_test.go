// SPDX-License-Identifier: Apache-2.0

package training

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// pair records a job of 64 ranks with a fault and without it.
type pair struct {
	truth         Culprit
	with, without []recorded // by step
	ranks         []model.Rank
}

type recorded struct {
	seconds float64
	ops     [][]model.Op
}

func twins(t *testing.T, layout Layout, w Witness, f Fault) pair {
	t.Helper()
	spec := Spec{Layout: layout, Noise: DefaultNoise(), Steps: 8, Witness: w, Faults: []Fault{f}}
	record := func(skip int) (out []recorded, j *Job) {
		spec.Name = "twins"
		j, err := newJob(spec, 11, skip)
		require.NoError(t, err)
		run(j, func(s *Step) { out = append(out, recorded{s.Seconds, recording(s)}) })
		return out, j
	}
	with, j := record(none)
	without, _ := record(0)
	truth := j.Truth()
	all := slices.DeleteFunc(slices.Concat(truth.Culprits, truth.Imbalances), func(c Culprit) bool { return c.BuiltIn })
	require.Len(t, all, 1)
	assert.Equal(t, f.Family, all[0].Family)
	assert.Positive(t, all[0].Cost)
	return pair{all[0], with, without, j.Ranks()}
}

var wide = Layout{DP: 16, PerNode: 4}

// ratios are the kernels' times with the fault over those without, of one rank's step.
func (p *pair) ratios(n, r int, of func(*model.Op) bool) (out []float64) {
	for i := range p.with[n].ops[r] {
		a, b := &p.with[n].ops[r][i], &p.without[n].ops[r][i]
		if a.Kind == model.KindCompute && of(a) {
			out = append(out, float64(a.Duration())/float64(b.Duration()))
		}
	}
	return out
}

func median(x []float64) float64 {
	return stats.MedianHigh(slices.Sorted(slices.Values(x)))
}

func every(*model.Op) bool { return true }

func TestSlowDevicesShow(t *testing.T) {
	for _, family := range []string{GPUClock, Node, Transient, JobWide} {
		p := twins(t, wide, Kineto, Fault{Family: family, Severity: 1.4, From: 2})
		c := &p.truth
		for n := range int64(8) {
			for r := range wide.DP {
				want := 1.0
				if n >= c.First && n <= c.Last && (family == JobWide || slices.Contains(c.Ranks, int64(r))) {
					want = 1.4
				}
				assert.InDelta(t, want, median(p.ratios(int(n), r, every)), 0.01, "%s step %d rank %d", family, n, r)
			}
		}
		switch family {
		case Node:
			require.Len(t, c.Ranks, wide.PerNode)
			for _, r := range c.Ranks {
				assert.Equal(t, c.Host, p.ranks[r].HostName)
			}
		case JobWide:
			assert.Empty(t, c.Ranks)
		default:
			assert.Len(t, c.Ranks, 1)
		}
	}
}

func TestRampsGrow(t *testing.T) {
	p := twins(t, wide, Kineto, Fault{Family: Ramp, Severity: 1.8})
	r := int(p.truth.Ranks[0])
	for n := range 8 {
		assert.InDelta(t, 1+0.8*float64(n+1)/8, median(p.ratios(n, r, every)), 0.01)
	}
}

func TestTransientsAreShort(t *testing.T) {
	for seed := range uint64(20) {
		c := job(t, Spec{Layout: wide, Steps: 40, Faults: []Fault{{Family: Transient, Severity: 2, From: 4}}}, seed).Places().Culprits[0]
		assert.GreaterOrEqual(t, c.First, int64(4))
		assert.Less(t, c.Last, int64(40))
		assert.GreaterOrEqual(t, c.Last-c.First, int64(4))
		assert.Less(t, c.Last-c.First, int64(10))
	}
}

// One kernel is slower, in name and grid as before; or it runs under another name.
func TestOneKernelShows(t *testing.T) {
	for _, family := range []string{OneKernel, KernelChoice} {
		p := twins(t, wide, Kineto, Fault{Family: family, Severity: 2})
		r := int(p.truth.Ranks[0])
		require.Len(t, p.truth.Ops, 1)
		slower, renamed := 0, 0
		for i := range p.with[3].ops[r] {
			a, b := &p.with[3].ops[r][i], &p.without[3].ops[r][i]
			require.Equal(t, a.ComparisonKey(), b.ComparisonKey())
			require.Equal(t, a.WorkGrid, b.WorkGrid)
			if a.Kind != model.KindCompute {
				continue
			}
			if float64(a.Duration()) > 1.5*float64(b.Duration()) {
				slower++
				assert.Equal(t, p.truth.Ops[0], a.ComparisonKey())
			}
			if a.Name != b.Name {
				renamed++
				assert.Equal(t, p.truth.Ops[0], a.ComparisonKey())
			}
		}
		assert.Positive(t, slower)
		if family == KernelChoice {
			assert.Equal(t, slower, renamed)
		} else {
			assert.Zero(t, renamed)
		}
	}
}

// scopeTime is how long a rank's host was in a scope, s.
func scopeTime(ops []model.Op, name string) (sum float64) {
	for i := range ops {
		if ops[i].Kind == model.KindScope && ops[i].Name == name {
			sum += float64(ops[i].Duration()) / 1e9
		}
	}
	return sum
}

func TestLateHostsShow(t *testing.T) {
	for family, want := range map[string]struct {
		f     Fault
		scope string
		more  float64
		cause string
	}{
		HostDataLoader: {Fault{Severity: 0.02}, model.ScopeDataLoading, 0.02, model.CauseDataLoader},
		HostGC:         {Fault{Severity: 0.05, Every: 3}, model.ScopeGarbageCollection, 0.05, model.CauseGC},
		HostCheckpoint: {Fault{Severity: 0.1, Every: 3}, model.ScopeCheckpointSave, 0.1, model.CauseCheckpoint},
	} {
		want.f.Family = family
		p := twins(t, wide, CUPTI, want.f)
		assert.Equal(t, model.ClassHost, p.truth.Class)
		assert.Equal(t, want.cause, p.truth.Cause)
		assert.Contains(t, p.truth.Ops, want.scope)
		for n := range 8 {
			for r := range wide.DP {
				more := scopeTime(p.with[n].ops[r], want.scope) - scopeTime(p.without[n].ops[r], want.scope)
				if int64(r) == p.truth.Ranks[0] && (want.f.Every == 0 || n%3 == 0) {
					assert.InDelta(t, want.more, more, 0.6*want.more, "%s step %d", family, n)
				} else {
					assert.InDelta(t, 0, more, 1e-6, "%s step %d rank %d", family, n, r)
				}
			}
		}
	}
}

func TestLaunchesOfABusyHostTakeLong(t *testing.T) {
	p := twins(t, wide, Kineto, Fault{Family: HostCPU, Severity: 80})
	gaps := func(ops []model.Op) (out []float64) {
		var at []int64
		for i := range ops {
			if ops[i].Launch.OK {
				at = append(at, ops[i].Launch.V)
			}
		}
		slices.Sort(at)
		for i := range at[1:] {
			out = append(out, float64(at[i+1]-at[i]))
		}
		return out
	}
	r := int(p.truth.Ranks[0])
	assert.InDelta(t, 80, median(gaps(p.with[4].ops[r]))/median(gaps(p.without[4].ops[r])), 25)
	assert.InDelta(t, 1, median(gaps(p.with[4].ops[(r+1)%16]))/median(gaps(p.without[4].ops[(r+1)%16])), 0.1)
}

// wires are the waits on the wire, s per sent step, of each rank that sends.
func wires(ops [][]model.Op) map[int64]float64 {
	out := map[int64]float64{}
	for r := range ops {
		var wait, steps float64
		for i := range ops[r] {
			if w := &ops[r][i].Waits; w.Wire.OK && ops[r][i].Collective.Bytes.V > 1<<20 {
				wait += w.Wire.V
				steps += float64(w.WireSteps.V)
			}
		}
		if steps > 0 {
			out[int64(r)] = wait / steps
		}
	}
	return out
}

func TestSlowLinksShowOnTheWire(t *testing.T) {
	for _, l := range []Layout{wide, {DP: 16, PerNode: 4, FSDP: true}, {DP: 8, EP: 4, PerNode: 2, Layers: 2}, {DP: 2, PP: 4, Microbatches: 8, Layers: 1, PerNode: 2}} {
		for _, family := range []string{NICTx, NICRx, Link} {
			if family == Link && l.EP > 1 {
				continue
			}
			p := twins(t, l, CUPTI, Fault{Family: family, Severity: 8})
			assert.Equal(t, model.ClassLink, p.truth.Class)
			slow := map[int64]float64{}
			for n := range 8 {
				with, without := wires(p.with[n].ops), wires(p.without[n].ops)
				for r := range with {
					if with[r] > 1.1*without[r] {
						slow[r] = max(slow[r], with[r]/without[r])
					}
				}
			}
			require.NotEmpty(t, slow, "%s %+v", family, l)
			for r, factor := range slow {
				ends := slices.Concat(p.truth.Ranks, p.truth.Also)
				assert.Contains(t, ends, r, "%s %+v: %v", family, l, p.truth)
				assert.Greater(t, factor, 3.0)
				if family != NICRx {
					assert.Empty(t, p.truth.Also, "whom it sends to are victims")
					assert.Equal(t, p.truth.Ranks[0], r, "its own waits say so")
				}
			}
		}
	}
}

func TestSwitchesAreNobodysFault(t *testing.T) {
	truth := job(t, Spec{Layout: wide, Steps: 2, Faults: []Fault{{Family: Switch, Severity: 4, Count: 2}}}, 1).Truth()
	assert.Empty(t, truth.Culprits)
	require.Len(t, truth.Imbalances, 1)
	assert.Positive(t, truth.Imbalances[0].Cost)
}

func TestSlowNVLinkSlowsItsGroupOnly(t *testing.T) {
	p := twins(t, Layout{DP: 4, TP: 4, PerNode: 8, Layers: 2}, CUPTI, Fault{Family: NVLink, Severity: 10})
	require.Len(t, p.truth.Comms, 1)
	least := map[string]int64{} // by communicator: transfer without waits, which all share
	for r := range p.with[3].ops {
		for _, op := range p.with[3].ops[r] {
			if op.Comm.Name == commNames[commTP] {
				if d, ok := least[op.Comm.ID]; !ok || op.Duration() < d {
					least[op.Comm.ID] = op.Duration()
				}
			}
		}
	}
	require.Len(t, least, 4)
	for id, d := range least {
		if id == p.truth.Comms[0] {
			assert.Greater(t, d, int64(1e6))
		} else {
			assert.Less(t, d, int64(0.5e6))
		}
	}
}

func TestPausesRotate(t *testing.T) {
	p := twins(t, wide, CUPTI, Fault{Family: Jitter, Severity: 0.03, Every: 4})
	assert.Empty(t, p.truth.Ranks)
	for r := range wide.DP {
		paused := 0
		for n := range 8 {
			if d := scopeTime(p.with[n].ops[r], model.ScopeGarbageCollection); d > 0 {
				paused++
				assert.InDelta(t, 0.03, d, 0.03)
			}
		}
		assert.Equal(t, 2, paused, "every fourth of eight steps")
	}
}

// Attention costs each replica something else in each microbatch, forward as backward,
// and all stages of the replica alike.
func TestSequencesDiffer(t *testing.T) {
	l := Layout{DP: 4, PP: 2, Microbatches: 4, Layers: 1, PerNode: 4}
	p := twins(t, l, Kineto, Fault{Family: SeqLen, Severity: 0.4})
	attend := func(r int, mb int64, back bool) float64 {
		return median(p.ratios(5, r, func(op *model.Op) bool {
			return op.Microbatch.V == mb && strings.HasPrefix(op.Key, map[bool]string{false: "flash_fwd", true: "flash_bwd"}[back])
		}))
	}
	differ := map[float64]bool{}
	for r := range 4 {
		for mb := range int64(4) {
			f := attend(r, mb, false)
			assert.InDelta(t, f, attend(r, mb, true), 0.12*f)
			assert.InDelta(t, f, attend(r+4, mb, false), 0.12*f, "the second stage has the same microbatch")
			differ[f] = true
		}
	}
	assert.Len(t, differ, 16)
	assert.InDelta(t, 1, median(p.ratios(5, 0, func(op *model.Op) bool { return strings.Contains(op.Key, "gemm") })), 0.01)
}

func TestHotExperts(t *testing.T) {
	l := Layout{DP: 16, EP: 4, PerNode: 4, Layers: 2}
	for _, family := range []string{HotExpert, HotExpertBlind, HotExpertMoving} {
		p := twins(t, l, Kineto, Fault{Family: family, Severity: 2, Every: 1})
		hot := map[int]int{} // by place in the group: steps
		grids := map[string]bool{}
		for n := range 8 {
			for r := range l.DP {
				x := median(p.ratios(n, r, func(op *model.Op) bool { return strings.HasPrefix(op.Key, "cutlass") }))
				if x > 1.5 {
					hot[r%4]++
					assert.InDelta(t, 2, x, 0.1)
				}
				for i := range p.with[n].ops[r] {
					a, b := &p.with[n].ops[r][i], &p.without[n].ops[r][i]
					if strings.HasPrefix(a.Key, "cutlass") {
						grids[a.WorkGrid] = true
						assert.True(t, family == HotExpertBlind || x > 1.5 == (a.WorkGrid != b.WorkGrid), family)
					}
				}
			}
		}
		assert.Equal(t, family == HotExpertBlind, len(grids) == 1, family)
		if family == HotExpertMoving {
			assert.Greater(t, len(hot), 1)
			assert.Empty(t, p.truth.Ranks)
			continue
		}
		require.Len(t, hot, 1)
		assert.Len(t, p.truth.Ranks, 4, "one place in each group")
		for place := range hot {
			assert.Contains(t, p.truth.Ranks, int64(place))
		}
	}
}

func TestLongStages(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 2, PP: 4, Microbatches: 4, Layers: 2, PerNode: 4}, Steps: 2, Faults: []Fault{{Family: Stage, Severity: 0.5}}}, 4)
	s, _ := j.Next()
	var kernels [4]int
	for stage := range kernels {
		for _, op := range s.Ops(2 * stage) {
			if strings.HasPrefix(op.Key, "flash") {
				kernels[stage]++
			}
		}
	}
	truth := j.Truth()
	require.Len(t, truth.Imbalances, 2)
	assert.Positive(t, truth.Imbalances[0].Cost)
	for stage, n := range kernels {
		want := 2 * 2 * 4
		if stage == truth.Imbalances[0].Stage {
			want = 3 * 2 * 4
		}
		assert.Equal(t, want, n)
	}
}

func TestAllStopToSave(t *testing.T) {
	j := job(t, Spec{Layout: wide, Noise: DefaultNoise(), Steps: 9, Witness: Scopes, Faults: []Fault{{Family: CheckpointStep, Severity: 0.2, Every: 4}}}, 4)
	assert.Empty(t, j.Truth())
	run(j, func(s *Step) {
		for r := range j.Ranks() {
			saved := scopeTime(s.Ops(r), model.ScopeCheckpointSave)
			assert.Equal(t, s.N%4 == 3, saved > 0.1)
		}
	})
}

func TestPlacesOfOneJobDiffer(t *testing.T) {
	for seed := range uint64(10) {
		truth := job(t, Spec{Layout: wide, Steps: 1, Faults: []Fault{{Family: GPUClock, Severity: 1.1, Count: 8}, {Family: HostDataLoader, Severity: 1}}}, seed).Places()
		require.Len(t, truth.Culprits, 2)
		assert.Len(t, truth.Culprits[0].Ranks, 8)
		assert.NotContains(t, truth.Culprits[0].Ranks, truth.Culprits[1].Ranks[0])
	}
}
