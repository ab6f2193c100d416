// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// ring returns the hops of a ring of four in which the sends of some ranks take
// longer, ms. All transfers last as long as the slowest; who stands behind a slow
// link waits for its peer.
func ring(rng *rand.Rand, slow map[int64]float64) func(int64) hop {
	noise := func(x float64) float64 {
		if rng == nil {
			return x
		}
		return x * (0.8 + 0.4*rng.Float64())
	}
	longest := 0.0
	for _, x := range slow {
		longest = max(longest, x)
	}
	return func(r int64) hop {
		h := hop{wire: noise(0.5) + noise(slow[r]), peer: noise(0.3), next: model.Some((r + 1) % 4)}
		h.transfer = transferMs + longest + 0.1*float64((r+3)%4)
		if slow[r] < longest {
			h.peer += noise(longest)
		}
		return h
	}
}

const liveStep = "h4:data_loading c26 h1:forward * c10 h1:backward * c5 s"

func linkEvidence(t *testing.T, f model.Finding) evidence.Link {
	t.Helper()
	ev, ok := evidence.As[evidence.Link](f.Evidence)
	require.True(t, ok)
	return *ev
}

func TestASlowLinkIsNamed(t *testing.T) {
	w := liveWorld(t, 4)
	w.ring = ring(nil, map[int64]float64{2: 10})
	vs, at := firstFinding(w, 10, func(int64) []program { return each(4, liveStep, nil) })
	require.Len(t, vs, 1, "neither the other ranks nor rank 2 itself is late")
	assert.LessOrEqual(t, at, int64(9))
	f := vs[0].Finding
	assert.Equal(t, model.ClassLink, f.Class)
	assert.Equal(t, model.CauseUnknown, f.Cause)
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, model.Some(int64(3)), f.Peer)
	assert.Equal(t, "rank 2 -> rank 3", f.Link)
	assert.Equal(t, model.AllReduce, f.Op)
	assert.Equal(t, "world", f.CommID)
	assert.False(t, f.WaitCaused.OK, "nobody was late")
	assert.Contains(t, f.Action, "not decided by the waits of one side")
	// Two collectives a step, 10 ms each; the sends of peers take 0.5 of 11.1.
	assert.InDelta(t, 0.020, f.CostSeconds.V, 1e-6)
	assert.InDelta(t, 0.020, linkEvidence(t, f).ExcessWire, 1e-6)
	assert.Equal(t, 3, linkEvidence(t, f).Peers)
	require.Len(t, f.Links, 1)
	m := w.reports[linkEvidence(t, f).Decisive.Step].Meetings
	assert.Contains(t, []model.SpanRef{m[0].spanOf(2), m[1].spanOf(2)}, f.Links[0])
	assert.InDelta(t, 0.020, w.reports[3].Ranks[2].Excess[model.ClassLink].Seconds(), 1e-6)
}

func TestNoSingleLink(t *testing.T) {
	for name, hops := range map[string]func(int64) hop{
		"all sends take long":      ring(nil, map[int64]float64{0: 10, 1: 10, 2: 10, 3: 10}),
		"two sends take as long":   ring(nil, map[int64]float64{0: 10, 2: 10}),
		"nobody recorded waits":    func(int64) hop { return hop{transfer: 11} },
		"only one rank recorded":   func(r int64) hop { return hop{transfer: 11, wire: 10 * float64(r/3)} },
		"long, hidden by nothing":  ring(nil, map[int64]float64{2: 0.2}),
		"wire waits of no transit": func(r int64) hop { return hop{transfer: 0, wire: 1 + 9*float64(r/3)} },
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.ring = hops
			vs, at := firstFinding(w, 20, func(int64) []program { return each(4, liveStep, nil) })
			assert.Empty(t, vs, "step %d", at)
		})
	}
}

func TestALateRankIsNoLink(t *testing.T) {
	for name, tc := range map[string]struct {
		program program
		class   string
	}{
		"host":    {"h24:data_loading c26 h1:forward * c10 h1:backward * c5 s", model.ClassHost},
		"compute": {"h4:data_loading c52 h1:forward * c20 h1:backward * c10 s", model.ClassCompute},
	} {
		t.Run(name, func(t *testing.T) {
			for slow := range 4 {
				rng := rand.New(rand.NewPCG(uint64(slow), 12))
				w := liveWorld(t, 4)
				var all []Verdict
				for n := range 40 {
					w.ring = ring(rng, nil)
					w.step(int64(n), each(4, liveStep, map[int]program{slow: tc.program})...)
					all = append(all, w.e.Verdicts()...)
				}
				require.NotEmpty(t, all)
				for _, v := range all {
					assert.Equal(t, tc.class, v.Finding.Class)
					assert.Equal(t, int64(slow), v.Finding.Rank.V)
				}
			}
		})
	}
}

// Behind a slow link a rank leaves later, comes later to the next collective, and
// has less time there in which its device's work is hidden.
func TestWhatALinkUncoversIsNoComputing(t *testing.T) {
	for name, tc := range map[string]struct {
		slow    float64 // ms that the link adds to each of two collectives
		device  float64 // ms that rank 3 seems to compute longer
		classes []string
	}{
		"less than the link adds":  {10, 8, []string{model.ClassLink}},
		"more than the link adds":  {10, 30, []string{model.ClassLink, model.ClassCompute}},
		"a link as fast as others": {0, 8, []string{model.ClassCompute}},
	} {
		t.Run(name, func(t *testing.T) {
			w := liveWorld(t, 4)
			w.ring = ring(nil, map[int64]float64{2: tc.slow})
			for n := range int64(10) {
				w.step(n, each(4, liveStep, map[int]program{3: fmt.Sprintf("h4:data_loading c%.1f h1:forward * c10 h1:backward * c5 s", 26+tc.device)})...)
			}
			var got []string
			for _, v := range w.e.Verdicts() {
				got = append(got, v.Finding.Class)
			}
			assert.ElementsMatch(t, tc.classes, got)
		})
	}
}

// The sends of the last arriver meet others that all wait for it already. That they
// take longer says nothing of its link while it is late by more than that.
func TestTheSendsOfALateRankAreNoLink(t *testing.T) {
	w := liveWorld(t, 4)
	slow := each(4, liveStep, map[int]program{2: "h24:data_loading c26 h1:forward * c10 h1:backward * c5 s"})
	w.ring = ring(nil, map[int64]float64{2: 2})
	var all []Verdict
	for n := range int64(20) {
		w.step(n, slow...)
		all = append(all, w.e.Verdicts()...)
	}
	require.NotEmpty(t, all)
	for _, v := range all {
		assert.Equal(t, []any{int64(2), model.ClassHost}, []any{v.Finding.Rank.V, v.Finding.Class})
	}
}

func TestALinkAndALateRankAreTwoFindings(t *testing.T) {
	w := liveWorld(t, 4)
	w.ring = ring(nil, map[int64]float64{2: 10})
	for n := range int64(10) {
		w.step(n, each(4, liveStep, map[int]program{2: "h34:data_loading c26 h1:forward * c10 h1:backward * c5 s"})...)
	}
	vs := w.e.Verdicts()
	require.Len(t, vs, 2)
	byClass := map[string]model.Finding{}
	for _, v := range vs {
		assert.Equal(t, int64(2), v.Finding.Rank.V)
		byClass[v.Finding.Class] = v.Finding
	}
	assert.InDelta(t, 0.030, byClass[model.ClassHost].CostSeconds.V, 5e-4, "the ends in the ring differ by 0.3 ms")
	assert.InDelta(t, 0.020, byClass[model.ClassLink].CostSeconds.V, 1e-6)
	assert.InDelta(t, 0.050, byClass[model.ClassLink].CostJoint.V, 5e-4)
	assert.NotEqual(t, byClass[model.ClassHost].ID, byClass[model.ClassLink].ID)
	assert.Empty(t, w.e.Verdicts(), "each continues its own")
}

func TestASlowLinkIsFoundInNoise(t *testing.T) {
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 9))
		slow := rng.Int64N(4)
		w := liveWorld(t, 4)
		vs, at := firstFinding(w, 10, func(int64) []program {
			w.ring = ring(rng, map[int64]float64{slow: 8})
			out := make([]program, 4)
			for r := range out {
				out[r] = trainingStep(rng, 2, 0, 1)
			}
			return out
		})
		require.Len(t, vs, 1, "seed %d", seed)
		require.LessOrEqual(t, at, int64(9))
		require.Equal(t, model.ClassLink, vs[0].Finding.Class, "seed %d", seed)
		require.Equal(t, slow, vs[0].Finding.Rank.V)
	}
}

func TestWaitsUnderWayTogetherAreScaled(t *testing.T) {
	// Eight channels wait 4 of 10 ms each, 2 ms of which is usual: 32 - 16 ms of
	// 32, that is, half of the operation.
	x := wire{raw: 32e6, steps: 64, stay: 10e6, exposed: 10e6}
	assert.Equal(t, int64(5e6), x.over(250e3))
	assert.Equal(t, int64(3e6), (&wire{raw: 5e6, steps: 1, stay: 10e6, exposed: 10e6}).over(2e6))
	assert.Equal(t, int64(1e6), (&wire{raw: 5e6, steps: 1, stay: 10e6, exposed: 1e6}).over(2e6), "hidden time costs nothing")
	assert.Equal(t, int64(-1e6), (&wire{raw: 1e6, steps: 1, stay: 10e6, exposed: 10e6}).over(2e6))
}

func TestAPeerOfTheCommunicatorIsResolved(t *testing.T) {
	w := liveWorld(t, 4)
	w.ring = ring(nil, map[int64]float64{1: 10})
	w.change = func(_ int64, op *model.Op) {
		op.Peer, op.PeerLocal = model.Optional[int64]{}, op.Peer
		op.Comm.Rank.V = (op.Comm.Rank.V + 3) % 4 // ranked from another one on
	}
	vs, _ := firstFinding(w, 10, func(int64) []program { return each(4, liveStep, nil) })
	require.Len(t, vs, 1)
	assert.Equal(t, "rank 1 -> rank 3", vs[0].Finding.Link, "communicator rank 2 is global rank 3")

	w = liveWorld(t, 4)
	w.ring = ring(nil, map[int64]float64{1: 10})
	w.change = func(_ int64, op *model.Op) { op.Peer = model.Optional[int64]{} }
	vs, _ = firstFinding(w, 10, func(int64) []program { return each(4, liveStep, nil) })
	require.Len(t, vs, 1)
	assert.Equal(t, "rank 1 -> unknown", vs[0].Finding.Link)
	assert.False(t, vs[0].Finding.Peer.OK)
	assert.Less(t, vs[0].Finding.Confidence, 0.85)
}

// Four pipelines of two stages; the message of one of them takes long.
func TestASlowMessageIsALink(t *testing.T) {
	w := newWorld(t, 8)
	w.clock = "host"
	w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 4) }
	message := func(kind model.OpKind, peer, n int64, from, to, wire float64) model.Op {
		op := model.Op{
			Kind: kind, Name: string(kind), Start: nanos(from), End: nanos(to), Launch: model.Some(nanos(from)), Step: model.Some(n),
			Peer: model.Some(peer), Comm: model.Comm{ID: "pp"}, Collective: model.Collective{Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
		}
		if kind == model.KindSend {
			op.Waits.Wire, op.Waits.WireSteps = model.Some(wire/1e3), model.Some[int64](usualSteps)
		}
		return op
	}
	for n := range int64(10) {
		at := float64(n) * 40
		for r := range int64(4) {
			took := 1.0
			if r == 1 {
				took = 9
			}
			reduce := collective(n, 0, 8, at+12, at+25)
			reduce.Comm.Size, reduce.Launch = model.Some(int64(8)), model.Some(nanos(at+11))
			w.e.Add(w.rank(r), []model.Op{message(model.KindSend, r+4, n, at+10, at+10+took, took-0.5), reduce, stepOp(n, at, at+25)})
			enter := collective(n, 0, 8, at+15+took, at+25)
			enter.Comm.Size, enter.Launch = model.Some(int64(8)), model.Some(nanos(at+11))
			w.e.Add(w.rank(r+4), []model.Op{message(model.KindRecv, r, n, at+5, at+10+took, 0), enter, stepOp(n, at, at+25)})
		}
	}
	vs := accusations(w.e.Verdicts()) // the second stage works longer, too
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, "rank 1 -> rank 5", f.Link)
	assert.Equal(t, model.SendRecv, f.Op)
	assert.InDelta(t, 0.008, f.CostSeconds.V, 1e-6)
	ev := linkEvidence(t, f)
	assert.Equal(t, 3, ev.Peers)
	assert.InDelta(t, 0.0085/usualSteps, ev.Decisive.PerStep, 1e-9)
	assert.InDelta(t, 0.0005/usualSteps, ev.Decisive.PeersStep, 1e-9)
}
