// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestWitnessesSeeTheirPart(t *testing.T) {
	for _, w := range Witnesses() {
		j := job(t, Spec{Layout: Layout{DP: 4, PP: 2, Microbatches: 2, Layers: 1, PerNode: 2}, Noise: DefaultNoise(), Steps: 2, Witness: w, Faults: []Fault{{Family: Jitter, Severity: 0.01, Every: 1}}}, 1)
		s, _ := j.Next()
		see, names := sights[w], map[string]bool{}
		kinds := map[model.OpKind]int{}
		for _, op := range s.Ops(0) {
			kinds[op.Kind]++
			if op.Kind == model.KindScope {
				names[op.Name] = true
				continue
			}
			if op.Kind.IsComm() {
				assert.Equal(t, !see.ends, op.EndInferred, w)
				assert.Equal(t, see.wires && op.Kind == model.KindSend, op.Waits.Wire.OK && op.Kind != model.KindCollective, w)
			}
			if op.Kind == model.KindCompute {
				assert.NotEmpty(t, op.WorkGrid)
				assert.False(t, op.WorkTokens.OK)
			}
		}
		assert.Positive(t, kinds[model.KindCollective], w)
		assert.Positive(t, kinds[model.KindSend], w)
		assert.Equal(t, see.kernels, kinds[model.KindCompute] > 0, w)
		assert.Equal(t, see.scopes, names[model.ScopeForward] && names[model.ScopeGarbageCollection], w)
		assert.Equal(t, see.profiler, names[profilerScopes[inData]], w)
		assert.Equal(t, see.scopes || see.profiler, kinds[model.KindScope] > 0, w)
	}
}

func TestWorkIsToldWhereAsked(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 8, EP: 4, Layers: 1}, Noise: DefaultNoise(), Steps: 1, Work: true}, 1)
	s, _ := j.Next()
	told := map[int64]bool{}
	for r := range j.Ranks() {
		for _, op := range s.Ops(r) {
			if op.WorkTokens.OK {
				told[op.WorkTokens.V] = true
			}
		}
	}
	assert.Greater(t, len(told), 8, "experts get different amounts")
	assert.True(t, told[4096])
}

func TestSomeRanksAreMissing(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 500, Coarse: true, Layers: 1}, Steps: 2, Missing: 0.2, Faults: []Fault{{Family: GPUClock, Severity: 1.2, Count: 20}}}, 1)
	var missing [2][]int
	run(j, func(s *Step) {
		for r := range j.Ranks() {
			if s.Ops(r) == nil {
				missing[s.N] = append(missing[s.N], r)
			}
		}
	})
	assert.InDelta(t, 100, len(missing[0]), 35)
	assert.Equal(t, missing[0], missing[1], "for good")
	for seed := range uint64(20) {
		j := job(t, Spec{Layout: Layout{DP: 8}, Steps: 1, Missing: 0.5, Faults: []Fault{{Family: GPUClock, Severity: 1.2}}}, seed)
		c := j.Places().Culprits[0]
		s, _ := j.Next()
		assert.Equal(t, s.Ops(int(c.Ranks[0])) == nil, c.Unseen)
	}
}

// Lost operations are those of the same job that recorded all.
func TestSomeOperationsAreLost(t *testing.T) {
	spec := Spec{Layout: Layout{DP: 16, PerNode: 4}, Noise: DefaultNoise(), Steps: 2}
	all := job(t, spec, 1)
	spec.Lost = 0.05
	some := job(t, spec, 1)
	full, _ := all.Next()
	part, _ := some.Next()
	kept, of := 0, 0
	for r := range all.Ranks() {
		whole := slices.Clone(full.Ops(r))
		rest := part.Ops(r)
		kept, of = kept+len(rest)-1, of+len(whole)-1
		last := rest[len(rest)-1]
		require.Equal(t, model.KindStep, last.Kind)
		require.Equal(t, int64(len(rest)-1), last.StepOps.V)
		for i, n := 0, 0; i < len(rest)-1; i++ {
			for whole[n].Start != rest[i].Start || whole[n].Name != rest[i].Name {
				n++
			}
			require.Equal(t, whole[n], rest[i])
		}
	}
	assert.InDelta(t, 0.95, float64(kept)/float64(of), 0.02)
}

func TestSomeStepsAreLate(t *testing.T) {
	late := func(share float64) (n int) {
		j := job(t, Spec{Layout: Layout{DP: 64, Layers: 1}, Steps: 4, Late: share}, 1)
		run(j, func(s *Step) {
			for r := range j.Ranks() {
				if s.Late(r) {
					n++
				}
			}
		})
		return n
	}
	assert.Zero(t, late(0))
	assert.InDelta(t, 64, late(0.25), 25)
}

// Clocks of hosts are apart as much as was asked, and alike within a host.
func TestClocksAreApart(t *testing.T) {
	spec := Spec{Layout: Layout{DP: 64, PerNode: 4, Layers: 1}, Noise: DefaultNoise(), Steps: 4}
	exact := job(t, spec, 1)
	spec.Clock = Clock{Error: 0.005, Drift: 20}
	apart := job(t, spec, 1)
	worst := 0.0
	for range 4 {
		a, _ := exact.Next()
		b, _ := apart.Next()
		require.InDelta(t, a.Seconds, b.Seconds, 0, "what happens does not depend on clocks")
		byHost := map[string]float64{}
		for r := range exact.Ranks() {
			off := float64(b.Ops(r)[0].Start-a.Ops(r)[0].Start) / 1e9
			worst = max(worst, math.Abs(off))
			host := exact.Ranks()[r].HostName
			if had, ok := byHost[host]; ok {
				assert.InDelta(t, had, off, 2e-6)
			}
			byHost[host] = off
		}
		assert.Len(t, byHost, 16)
	}
	assert.Greater(t, worst, 0.002)
	assert.Less(t, worst, 0.0051)
}

func TestDevicesHaveClocksOfTheirOwn(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 4, Layers: 1}, Noise: DefaultNoise(), Steps: 1, Witness: CUPTI, Clock: Clock{RawGPU: true}}, 1)
	s, _ := j.Next()
	for r := range j.Ranks() {
		for _, op := range s.Ops(r) {
			switch {
			case op.Stream.OK:
				assert.Equal(t, "gpu:"+j.Ranks()[r].HWID+"/globaltimer", op.ClockID)
			default:
				assert.Empty(t, op.ClockID)
			}
		}
	}
}
