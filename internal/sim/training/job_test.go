// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// layouts are one of each sort, on several nodes.
func layouts() map[string]Layout {
	return map[string]Layout{
		"ddp":         {DP: 16},
		"coarse":      {DP: 16, Coarse: true},
		"accumulated": {DP: 16, Microbatches: 2, Layers: 2},
		"fsdp":        {DP: 16, FSDP: true},
		"tensor":      {DP: 4, TP: 4, PerNode: 8},
		"pipeline":    {DP: 2, PP: 4, Microbatches: 8, Layers: 2, Scale: 0.25, PerNode: 4},
		"interleaved": {DP: 2, PP: 4, Chunks: 2, Microbatches: 8, Layers: 1, Scale: 0.25, PerNode: 4},
		"two stages":  {DP: 2, PP: 2, Chunks: 2, Microbatches: 4, Layers: 1, Scale: 0.25, PerNode: 2},
		"few":         {PP: 4, Microbatches: 2, Layers: 1, PerNode: 2},
		"single":      {PP: 8, TP: 8, Microbatches: 16, Layers: 1, Scale: 0.25, Coarse: true},
		"three":       {DP: 4, PP: 4, TP: 4, Microbatches: 8, Layers: 1, Scale: 0.25},
		"experts":     {DP: 32, EP: 8, Layers: 3},
		"all":         {DP: 8, PP: 2, TP: 2, EP: 4, Chunks: 2, Microbatches: 4, Layers: 1, Scale: 0.25},
	}
}

// job returns a new job.
func job(t *testing.T, s Spec, seed uint64) *Job {
	t.Helper()
	if s.Name == "" {
		s.Name = "job"
	}
	j, err := New(s, seed)
	require.NoError(t, err)
	return j
}

// run runs a job to its end, calling f with every step.
func run(j *Job, f func(*Step)) {
	for s, ok := j.Next(); ok; s, ok = j.Next() {
		f(s)
	}
}

// recording is what was recorded of all ranks in one step.
func recording(s *Step) [][]model.Op {
	out := make([][]model.Op, len(s.job.Ranks()))
	for r := range out {
		out[r] = slices.Clone(s.Ops(r))
	}
	return out
}

func TestSeedsDecide(t *testing.T) {
	of := func(seed uint64) (out [][][]model.Op) {
		spec := Spec{Layout: layouts()["all"], Noise: DefaultNoise(), Steps: 3, Witness: CUPTI, Clock: Clock{Error: 0.001}, Lost: 0.01, Faults: []Fault{{Family: GPUClock, Severity: 1.1}}}
		run(job(t, spec, seed), func(s *Step) { out = append(out, recording(s)) })
		return out
	}
	first := of(7)
	assert.Equal(t, first, of(7))
	assert.NotEqual(t, first, of(8))
}

func TestRecordingsAreInOrder(t *testing.T) {
	for name, l := range layouts() {
		for _, w := range Witnesses() {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				j := job(t, Spec{Layout: l, Noise: DefaultNoise(), Steps: 2, Witness: w}, 3)
				run(j, func(s *Step) {
					for r := range j.Ranks() {
						checkRank(t, s, s.Ops(r))
					}
				})
			})
		}
	}
}

func checkRank(t *testing.T, s *Step, ops []model.Op) {
	t.Helper()
	require.NotEmpty(t, ops)
	last := &ops[len(ops)-1]
	require.Equal(t, model.KindStep, last.Kind)
	require.Equal(t, int64(len(ops)-1), last.StepOps.V)
	free := map[int64]int64{}
	type which struct {
		key  string
		lane int64
		seq  int64
	}
	seen := map[which]bool{}
	for i := range ops {
		op := &ops[i]
		id := which{op.ComparisonKey(), op.Lane(), op.Seq}
		switch {
		case op.Step.V != s.N:
			t.Fatalf("step of %v: got %d; want %d", id, op.Step.V, s.N)
		case op.Start > op.End:
			t.Fatalf("%v ends at %d, before its start at %d", id, op.End, op.Start)
		case seen[id]:
			t.Fatalf("%v twice", id)
		}
		seen[id] = true
		if op.Kind == model.KindStep {
			continue
		}
		switch {
		case op.End > last.End:
			t.Fatalf("%v ends at %d, after its step at %d", id, op.End, last.End)
		case i > 0 && op.Start < ops[i-1].Start:
			t.Fatalf("%v starts at %d, the operation before it at %d", id, op.Start, ops[i-1].Start)
		}
		if op.Stream.OK && !op.EndInferred {
			if op.Start < free[op.Stream.V] {
				t.Fatalf("%v starts at %d; stream %d is free at %d", id, op.Start, op.Stream.V, free[op.Stream.V])
			}
			free[op.Stream.V] = op.End
			if least := op.Launch.V + launchDelay - 1; op.Start < least {
				t.Fatalf("%v starts at %d; want at least %d after its launch", id, op.Start, least)
			}
		}
	}
}

// All that communicate meet, with all members and equal bytes; they leave together
// after the last has come, and a receiver after its sender has.
func TestEverybodyMeets(t *testing.T) {
	for name, l := range layouts() {
		for _, w := range []Witness{CUPTI, Kineto} {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				j := job(t, Spec{Layout: l, Noise: DefaultNoise(), Steps: 2, Witness: w}, 3)
				known := map[model.RendezvousKey]bool{}
				run(j, func(s *Step) {
					met := map[model.RendezvousKey][]model.Op{}
					for r := range j.Ranks() {
						for _, op := range s.Ops(r) {
							if op.Kind.IsComm() {
								key, ok := model.Rendezvous(&j.Ranks()[r], &op)
								require.True(t, ok)
								require.False(t, known[key], "a number is used once")
								met[key] = append(met[key], op)
							}
						}
					}
					require.NotEmpty(t, met)
					for key, members := range met {
						known[key] = true
						checkMeeting(t, members)
					}
				})
			})
		}
	}
}

func checkMeeting(t *testing.T, members []model.Op) {
	t.Helper()
	want := int64(2)
	if members[0].Kind == model.KindCollective {
		want = members[0].Comm.Size.V
	}
	require.Len(t, members, int(want))
	var came, first, last int64 = 0, math.MaxInt64, 0
	for i := range members {
		require.Equal(t, members[0].Collective.Bytes, members[i].Collective.Bytes)
		require.Equal(t, members[0].Comm.Digest, members[i].Comm.Digest)
		came, first, last = max(came, members[i].Start), min(first, members[i].End), max(last, members[i].End)
	}
	require.Greater(t, first, came)
	require.LessOrEqual(t, last-first, int64(2100), "ends coincide")
}

func TestStepsFollowOneAnother(t *testing.T) {
	for _, sync := range []string{SyncStep, SyncLag} {
		j := job(t, Spec{Layout: Layout{DP: 4, PerNode: 2}, Noise: DefaultNoise(), Steps: 6, Sync: sync}, 3)
		total, end := 0.0, int64(0)
		run(j, func(s *Step) {
			total += s.Seconds
			for r := range j.Ranks() {
				ops := s.Ops(r)
				end = max(end, ops[len(ops)-1].End)
			}
			assert.InDelta(t, total, float64(end-epoch)/1e9, 1e-6)
		})
		assert.InDelta(t, 0.060, total/6, 0.012, "a step is as long as its kernels and what communication shows")
	}
}

// Without noise a device that takes a tenth longer costs a tenth of what nothing hides.
func TestCostIsWhatArithmeticSays(t *testing.T) {
	spec := Spec{Layout: Layout{DP: 8, PerNode: 4}, Steps: 10, Faults: []Fault{{Family: GPUClock, Severity: 1.1, From: 2}}}
	j := job(t, spec, 1)
	healthy := spec
	healthy.Faults = nil
	own := 0.0
	run(job(t, healthy, 1), func(s *Step) {
		own = 0
		for _, op := range s.Ops(0) {
			if op.Kind == model.KindCompute {
				own += float64(op.Duration()) / 1e9
			}
		}
	})
	c := j.Truth().Culprits
	require.Len(t, c, 1)
	assert.Equal(t, int64(2), c[0].First)
	assert.Equal(t, int64(9), c[0].Last)
	assert.InDelta(t, 0.1*own, c[0].Cost, 0.012*own)
}

func TestNoFaultCostsNothing(t *testing.T) {
	for _, f := range []Fault{
		{Family: GPUClock, Severity: 1},
		{Family: HostDataLoader},
		{Family: HostGC, Every: 3},
		{Family: NICTx, Severity: 1},
		{Family: OneKernel, Severity: 1},
		{Family: Jitter, Every: 2},
	} {
		j := job(t, Spec{Layout: layouts()["three"], Noise: DefaultNoise(), Steps: 4, Faults: []Fault{f}}, 5)
		truth := j.Truth()
		for _, c := range slices.Concat(truth.Culprits, truth.Imbalances) {
			if !c.BuiltIn {
				assert.Equal(t, f.Family, c.Family)
				assert.Zero(t, c.Cost, f.Family)
			}
		}
	}
}

func TestHealthyJobsHaveNoCulprits(t *testing.T) {
	for name, l := range layouts() {
		truth := job(t, Spec{Layout: l, Noise: DefaultNoise(), Steps: 1}, 1).Truth()
		assert.Empty(t, truth.Culprits, name)
		for _, c := range truth.Imbalances {
			assert.True(t, c.BuiltIn)
		}
		assert.Equal(t, l.PP > 1, slices.ContainsFunc(truth.Imbalances, func(c Culprit) bool { return c.Class == model.ClassStageImbalance }), name)
	}
}

func TestOpsTakeNoMemory(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 8, PerNode: 4}, Noise: DefaultNoise(), Steps: 3}, 1)
	s, ok := j.Next()
	require.True(t, ok)
	s.Ops(0)
	r := 0
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		r = (r + 1) % 8
		s.Ops(r)
	}))
}

func TestOldStepsAreGone(t *testing.T) {
	j := job(t, Spec{Layout: Layout{DP: 2}, Steps: 2}, 1)
	first, _ := j.Next()
	require.NotEmpty(t, first.Ops(0))
	_, _ = j.Next()
	assert.Empty(t, first.Ops(0))
	_, ok := j.Next()
	assert.False(t, ok)
}

func TestBadJobsAreRefused(t *testing.T) {
	for name, s := range map[string]Spec{
		"too many ranks":          {Layout: Layout{DP: maxRanks, TP: 2}},
		"too many steps":          {Steps: maxSteps + 1},
		"too many layers":         {Layout: Layout{Layers: maxParts + 1}},
		"experts do not divide":   {Layout: Layout{DP: 6, EP: 4}},
		"chunks without stages":   {Layout: Layout{Chunks: 2, Microbatches: 2}},
		"chunks do not divide":    {Layout: Layout{PP: 4, Chunks: 2, Microbatches: 6}},
		"sharded stages":          {Layout: Layout{PP: 2, FSDP: true}},
		"unknown witness":         {Witness: "nobody"},
		"unknown sync":            {Sync: "never"},
		"unknown family":          {Faults: []Fault{{Family: "gremlins"}}},
		"no such rank":            {Faults: []Fault{{Family: GPUClock, Ranks: []int64{1}}}},
		"no number":               {Faults: []Fault{{Family: GPUClock, Severity: math.NaN()}}},
		"no network":              {Layout: Layout{DP: 8}, Faults: []Fault{{Family: NICTx, Severity: 2}}},
		"nobody sends over it":    {Layout: Layout{DP: 2, TP: 8, PerNode: 8, Layers: 1}, Faults: []Fault{{Family: NVLink, Severity: 2}, {Family: Link, Severity: 2, Count: 99}, {Family: Stage, Severity: 2}}},
		"tensor over the network": {Layout: Layout{TP: 8, PerNode: 2}, Faults: []Fault{{Family: NVLink, Severity: 2}}},
		"how often":               {Faults: []Fault{{Family: HostGC, Severity: 1}}},
	} {
		_, err := New(s, 1)
		assert.Error(t, err, name)
	}
}

func TestSchedulesPassEveryMicrobatchThroughEveryChunk(t *testing.T) {
	for name, l := range layouts() {
		if l.PP < 2 {
			continue
		}
		l.Chunks = max(l.Chunks, 1)
		for stage := range l.PP {
			order := schedule(&grid{Layout: l}, stage)
			require.Len(t, order, 2*l.Chunks*l.Microbatches, name)
			seen := map[turn]bool{}
			for _, turn := range order {
				require.False(t, seen[turn])
				seen[turn] = true
				if turn.back {
					turn.back = false
					require.True(t, seen[turn], "forward comes first")
				}
			}
		}
	}
	// One forward, one backward, as in the literature: four stages, the second one.
	got := ""
	for _, turn := range schedule(&grid{Layout: Layout{PP: 4, Chunks: 1, Microbatches: 4}}, 1) {
		got += fmt.Sprintf("%s%d ", map[bool]string{false: "f", true: "b"}[turn.back], turn.mb)
	}
	assert.Equal(t, "f0 f1 f2 b0 f3 b1 b2 b3 ", got)
}

func TestDraws(t *testing.T) {
	const n = 200_000
	var sum, squares, tails, factor float64
	law := DefaultNoise().Tails
	for i := range uint64(n) {
		h := hash(1, i, 0)
		z := normal(h)
		sum += z
		squares += z * z
		if more := law.tail(h, 1e3); more > 0 {
			tails++
			require.GreaterOrEqual(t, more, 1e3*(law.Low-1))
			require.LessOrEqual(t, more, 1e3*(law.High-1))
			factor += more / 1e3
		}
	}
	assert.InDelta(t, 0, sum/n, 0.01)
	assert.InDelta(t, 1, squares/n, 0.02)
	assert.InDelta(t, law.Share, tails/n, 0.001)
	// The mean of a Pareto law of exponent 2 from 2 to 10 is 2 * (1 - 1/5) / (1 - 1/25) * 2 = 10/3.
	assert.InDelta(t, 10.0/3-1, factor/tails, 0.1)
	assert.InDelta(t, math.Exp(0.1*normal(5)), lognormal(5, 0.1), 1e-6)
	assert.InDelta(t, math.Exp(2*normal(5)), lognormal(5, 2), 1e-12)
}
