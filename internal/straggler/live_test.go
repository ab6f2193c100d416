// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// liveWorld is a node whose ranks share one clock, seen from inside the
// communication library.
func liveWorld(t *testing.T, size int) *world {
	t.Helper()
	w := newWorld(t, size)
	w.live, w.clock = true, "host:node/boot/raw"
	w.hosts = func(int64) string { return "node" }
	return w
}

func TestUnrecordedWorkIsToldByLaunchLeadTime(t *testing.T) {
	w := liveWorld(t, 2)
	// Both hosts load for 2 ms; rank 1's device takes 10 ms longer for what was
	// launched before the collective, of which nothing is recorded.
	w.step(1, "h2:data_loading c10 * s", "h2:data_loading c20 * s")
	require.Len(t, w.reports, 1)
	lat := time.Duration(launchLatency)
	assert.Equal(t, Split{LaunchIdle: 2*ms + lat, Compute: 10*ms - lat, Wait: 10 * ms, Transfer: ms}, w.reports[0].Ranks[0].Split)
	assert.Equal(t, Split{LaunchIdle: 2*ms + lat, Compute: 20*ms - lat, Transfer: ms}, w.reports[0].Ranks[1].Split)
	for _, r := range w.reports[0].Ranks {
		assert.Equal(t, r.End-r.Start, int64(r.Split.Sum()))
	}
	j := w.e.sorted()[0]
	r := j.window[0].ranks[1]
	assert.Equal(t, int64(20*ms-lat), r.computeBy.of(j.keys.ids[opName{key: "work before all_reduce"}]))
	assert.Equal(t, int64(2*ms), r.idleBy.of(j.keys.ids[opName{key: "data_loading"}]))
}

func TestALateLaunchIsTheHosts(t *testing.T) {
	w := liveWorld(t, 2)
	// The device is done after 5 ms; the host launches the collective after 8.
	w.step(1, "c5 h8:backward * s", "c5 h8:backward * s")
	split := w.reports[0].Ranks[0].Split
	assert.Zero(t, split.Compute, "what ran before the first launch that was seen is not known")
	assert.Equal(t, 8*ms+10*time.Microsecond, split.LaunchIdle)
}

func TestAHostThatRunsAheadHidesNoWork(t *testing.T) {
	w := liveWorld(t, 2)
	for n := range int64(3) {
		w.step(n, "h1:data_loading c20 *", "h1:data_loading c20 *")
	}
	// The host is done with all steps after 3 ms. The device goes on for 21 ms
	// a step, and every instant of that belongs to one step.
	for n, rep := range w.reports {
		split := rep.Ranks[0].Split
		assert.Equal(t, ms, split.Transfer, "step %d", n)
		assert.InDelta(t, 20e6, float64(split.Compute), 20e3, "step %d", n)
	}
}

func TestWhatWasLaunchedFirstTellsSinceWhenTheDeviceWorks(t *testing.T) {
	w := newWorld(t, 1)
	op := func(seq, stream int64, launch, from, to float64) model.Op {
		o := collective(1, seq, 8, from, to)
		o.Stream, o.Launch = model.Some(stream), model.Some(nanos(launch))
		return o
	}
	// Stream 8 was given work at 1 ms and could begin at 12; stream 7 was given
	// its own at 8, and began at 10. In between a collective of stream 9 ran.
	reports := w.alone([]model.Op{
		op(0, 7, 8, 10, 11), op(1, 8, 1, 12, 13), op(2, 9, 0.5, 4, 6), stepOp(1, 0, 13),
	})
	require.Len(t, reports, 1)
	idle := ms/2 + time.Duration(launchLatency)
	want := Split{LaunchIdle: idle, Compute: 9*ms - idle, Transfer: 4 * ms}
	assert.Equal(t, want, reports[0].Ranks[0].Split)
}

func TestAnUnknownLaunchTellsNothing(t *testing.T) {
	w := newWorld(t, 1)
	reports := w.alone([]model.Op{collective(1, 0, 8, 10, 11), stepOp(1, 0, 11)})
	assert.Equal(t, Split{LaunchIdle: 10 * ms, Transfer: ms}, reports[0].Ranks[0].Split)
	// A launch on another clock than the start is not known either.
	raw := collective(2, 0, 8, 30, 31)
	raw.ClockID, raw.Launch = "gpu:0/globaltimer", model.Some(nanos(22))
	reports = w.alone([]model.Op{raw, stepOp(2, 20, 31)})
	assert.Equal(t, 10*ms, reports[0].Ranks[0].Split.LaunchIdle)
}

func TestRanksWithDeviceRecordsKeepTheirDependencies(t *testing.T) {
	w := newWorld(t, 1)
	late := collective(1, 0, 8, 10, 11)
	late.Launch = model.Some(nanos(2))
	reports := w.alone([]model.Op{
		{Kind: model.KindCompute, Name: "gemm", Start: nanos(0), End: nanos(1), Step: model.Some(int64(1))}, late, stepOp(1, 0, 11),
	})
	lat := time.Duration(launchLatency)
	assert.Equal(t, Split{Compute: ms, LaunchIdle: ms + lat, DependencyIdle: 8*ms - lat, Transfer: ms}, reports[0].Ranks[0].Split)
}

// firstFinding runs steps that are judged as they come, and returns the first
// verdicts and the index of the step that brought them; -1 for none.
func firstFinding(w *world, steps int64, programs func(n int64) []program) ([]Verdict, int64) {
	for n := range steps {
		w.step(n, programs(n)...)
		if vs := w.e.Verdicts(); len(vs) > 0 {
			return vs, n
		}
	}
	return nil, -1
}

// trainingStep is a data-parallel step of about 50 ms: loading, forward and
// backward, two buckets, an optimizer. Every part is lengthened by its own
// noise of up to spread.
func trainingStep(rng *rand.Rand, spread, load, device float64) program {
	n := func() float64 { return spread * rng.Float64() }
	return fmt.Sprintf("h%.3f:data_loading c%.3f h1:forward * c%.3f h1:backward * c%.3f s",
		4+load+n(), (26+n())*device, (10+n())*device, (5+n())*device)
}

func TestLiveStragglersAreFoundWithinTenSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		class, op    string
		load, device float64
	}{
		"a device twice as slow": {model.ClassCompute, "work before all_reduce", 0, 2},
		"a host late to launch":  {model.ClassHost, "data_loading", 40, 1},
		"30 % compute":           {model.ClassCompute, "work before all_reduce", 0, 1.4},
		"30 % host":              {model.ClassHost, "data_loading", 15, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(25) {
				rng := rand.New(rand.NewPCG(seed, 31))
				slow := rng.IntN(4)
				vs, at := firstFinding(liveWorld(t, 4), 10, func(int64) []program {
					out := make([]program, 4)
					for r := range out {
						out[r] = trainingStep(rng, 2, 0, 1)
					}
					out[slow] = trainingStep(rng, 2, tc.load, tc.device)
					return out
				})
				require.Len(t, vs, 1, "seed %d", seed)
				require.LessOrEqual(t, at, int64(9))
				f := vs[0].Finding
				require.Equal(t, int64(slow), f.Rank.V, "seed %d", seed)
				require.Equal(t, tc.class, f.Class, "seed %d", seed)
				require.Equal(t, tc.op, f.Op, "seed %d", seed)
			}
		})
	}
}

func TestAHostLateOutsideOfScopesIsSaidToBe(t *testing.T) {
	for loads, action := range map[string]string{
		"h4":              "look at what the host of rank 1 does: data loading, garbage collection, CPU contention. No scopes of it were recorded",
		"h4:data_loading": "look at what the host of rank 1 does outside of any scope: ",
	} {
		w := liveWorld(t, 4)
		vs, _ := firstFinding(w, 10, func(int64) []program {
			return each(4, loads+" c26 * c10 * s", map[int]program{1: loads + " h30 c26 * c10 * s"})
		})
		require.Len(t, vs, 1, loads)
		f := vs[0].Finding
		assert.Equal(t, model.ClassHost, f.Class)
		assert.True(t, f.OutsideScopes())
		assert.Contains(t, f.Action, action)
		assert.NotContains(t, f.Action, model.OpOther)
	}
}
