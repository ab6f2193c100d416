// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// concluded makes findings of conclusions over what the world has shown, as if a judge
// had drawn them, and returns what changed.
func concluded(w *world, told ...judge.Conclusion) []Verdict {
	w.t.Helper()
	j := w.e.sorted()[0]
	j.judged, j.abstain, j.priced = true, nil, false
	var suspects []*candidate
	for _, c := range told {
		suspects = append(suspects, j.candidate(c))
		j.measure(suspects[len(suspects)-1])
	}
	j.settle(j.gated(suspects))
	return w.e.changed()
}

// accusation is a conclusion about one rank over so many steps.
func accusation(class string, rank, steps int64) judge.Conclusion {
	return judge.Conclusion{
		Class: class, Rank: rank, Stage: -1, Peer: -1, Last: steps - 1, Steps: int(steps),
		Excess: 0.010, Mean: 0.010, Share: 0.5, Chance: 1e-4, Steadiness: 20, Confidence: 0.97, Rung: judge.RungRole, Peers: 7,
	}
}

// nobody is a conclusion that accuses no rank.
func nobody(class string, steps int64, ranks ...int64) judge.Conclusion {
	c := accusation(class, -1, steps)
	c.Ranks = ranks
	return c
}

// stepsOf shows the world so many steps of the same programs.
func stepsOf(w *world, n int64, programs ...program) {
	for i := range n {
		w.step(i, programs...)
	}
	w.e.sorted()[0].judged = true
}

func TestAHostIsNamedWithAllItsRanks(t *testing.T) {
	w := newWorld(t, 8)
	w.hosts = func(r int64) string { return fmt.Sprint("n", r/4) }
	stepsOf(w, 6, each(8, "c20:gemm *", map[int]program{4: "c30:gemm *", 5: "c30:gemm *", 6: "c30:gemm *", 7: "c30:gemm *"})...)
	c := nobody(model.ClassNode, 6, 4, 5, 6, 7)
	c.Host, c.Op = "n1", "gemm"
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, model.ClassNode, f.Class)
	assert.Equal(t, "n1", f.Host)
	assert.False(t, f.Rank.OK, "no single rank")
	assert.Equal(t, []int64{4, 5, 6, 7}, f.Ranks)
	assert.Equal(t, model.Some(int64(4)), f.RanksCount)
	assert.Equal(t, "gemm", f.Op)
	assert.InDelta(t, 0.010, f.CostSeconds.V, 1e-6, "all of them together")
	assert.InDelta(t, 0.040, f.WaitCaused.V, 1e-6, "four others wait")
	assert.Equal(t, 6, evidenceOf(t, f).LastArrivals)
	assert.Contains(t, f.Action, "host n1")
	assert.Empty(t, concluded(w, c), "it stands")
}

func TestAStageIsNamedAndNobodyOfIt(t *testing.T) {
	w := newWorld(t, 8)
	w.stage = func(r int64) model.Optional[int64] { return model.Some(r / 4) }
	stepsOf(w, 6, each(8, "c20 *", map[int]program{4: "c30 *", 5: "c30 *", 6: "c30 *", 7: "c30 *"})...)
	c := nobody(model.ClassStageImbalance, 6, 4, 5, 6, 7)
	c.Stage = 1
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, "stage 1", f.Op)
	assert.False(t, f.Rank.OK)
	assert.Empty(t, f.Host)
	assert.Equal(t, model.Some(int64(4)), f.RanksCount)
	// A third of 30 ms is excess over the other stage's 20.
	assert.InDelta(t, 0.010, f.CostSeconds.V, 1e-6)
	assert.Equal(t, byShrink, evidenceOf(t, f).CostBy)
	assert.False(t, f.WaitCaused.OK, "nobody is accused of waits")
	assert.Contains(t, f.Action, "no rank is at fault")
}

func TestUnequalWorkCostsWhatLiesAboveTheMean(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(8) {
		programs := make([]program, 4)
		for r := range programs {
			programs[r] = fmt.Sprintf("c%d *", 10*(1+(int64(r)+n)%4))
		}
		w.step(n, programs...)
	}
	// 10, 20, 30 and 40 ms are 25 in the mean.
	expectNobody(t, w, nobody(model.ClassWorkImbalance, 8), place{sort: placeWork}, 0.015, byEvened)
}

// expectNobody expects a conclusion to be told of nobody, with what it costs.
func expectNobody(t *testing.T, w *world, c judge.Conclusion, at place, cost float64, by string) model.Finding {
	t.Helper()
	vs := concluded(w, c)
	require.Len(t, vs, 1, c.Class)
	f := vs[0].Finding
	assert.Equal(t, c.Class, f.Class)
	assert.False(t, f.Rank.OK)
	assert.Empty(t, f.Ranks)
	assert.InDelta(t, cost, f.CostSeconds.V, 1e-6, c.Class)
	assert.Equal(t, by, evidenceOf(t, f).CostBy)
	assert.Equal(t, finding.Place{Job: f.JobID, Incarnation: "life", Name: at.key()}.ID(model.FindingStraggler, f.StepFirst.V), f.ID)
	assert.Contains(t, f.Action, " is at fault")
	return f
}

// What ranks differ by else is no part of it: they compute 10 to 13 ms.
func TestPausesCostWhatTheirStepsAreLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		every int64 // steps, from one pause to the next
		twice bool  // another rank pauses for as long, then
		cost  float64
		by    string
	}{
		"every other step":              {2, false, 0.02 / 2, byUnpaused},
		"every other step, two at once": {2, true, 0.02 / 2, byUnpaused},
		"every step":                    {1, false, 0.02, byUnheld},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			c := nobody(model.ClassJitter, 8)
			c.Pauses = &evidence.Pauses{Median: 0.02, Period: 12, Ranks: 4}
			c.Intermittent, c.HeldFrom, c.Held = true, 0.02, map[int64]float64{}
			for n := range int64(8) {
				programs := make([]program, 4)
				for r := range programs {
					programs[r] = fmt.Sprintf("c%d *", 10+r)
				}
				if n%tc.every == 0 {
					c.Held[n] = 0.02
					programs[3] = "h20 c13 *"
					if tc.twice {
						c.Held[n] += 0.02
						programs[2] = "h20 c12 *"
					}
				}
				w.step(n, programs...)
			}
			f := expectNobody(t, w, c, place{sort: placeAll}, tc.cost, tc.by)
			assert.InDelta(t, 12, evidenceOf(t, f).Pauses.Period, 0)
			// Segments that begin where the recording does begin nowhere, and stay.
			window, shorter := w.e.sorted()[0].window, 20e6*(float64(len(c.Held))-1)
			assert.InDelta(t, shorter, replay(window, mending{held: 19e6}), 1e3)
			assert.Zero(t, replay(window, mending{held: 21e6}), "no pause is as long")
		})
	}
}

// What a rank is held up for in some steps only costs what these are longer, however short
// the stretch that the typical step would choose, and no more than it is held up alone.
func TestARankThatIsHeldUpNowAndThen(t *testing.T) {
	w := newWorld(t, 4)
	c := accusation(model.ClassHost, 3, 12)
	c.Intermittent, c.Held = true, map[int64]float64{}
	for n := range int64(12) {
		programs := []program{"c10 *", "c10 *", "c10 *", "c10 *"}
		switch {
		case n%8 == 0 || n == 10: // another rank would hold the step up for half of it
			c.Held[n], programs[3], programs[1] = 0.01, "h20 c10 *", "h10 c10 *"
		case n > 4:
			programs[3] = "h1 c10 *"
		}
		w.step(n, programs...)
	}
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	assert.InDelta(t, 0.01*3/12, vs[0].Finding.CostSeconds.V, 1e-6)
	assert.Equal(t, byUnpaused, evidenceOf(t, vs[0].Finding).CostBy)
}

// A step that nobody marked begins with its first operation, not with the pause before it.
func TestAStepTakesFromTheEndOfTheOneBefore(t *testing.T) {
	in := stretch{{step: 1, start: 0, end: 10e6}, {step: 2, start: 15e6, end: 20e6}, {step: 4, start: 35e6, end: 40e6}}
	assert.InDeltaSlice(t, []float64{0.01, 0.01, 0.005}, in.took(), 1e-12)
}

// Who is slow in all steps is so in those with pauses and in those without.
func TestPausesBesideASlowRank(t *testing.T) {
	w := newWorld(t, 4)
	c := nobody(model.ClassJitter, 8)
	c.Pauses, c.Intermittent, c.HeldFrom, c.Held = &evidence.Pauses{}, true, 0.03, map[int64]float64{}
	for n := range int64(8) {
		programs := []program{"c20 *", "c10 *", "c10 *", "c10 *"}
		if n%2 == 0 {
			c.Held[n], programs[3] = 0.03, "h30 c10 *"
		}
		w.step(n, programs...)
	}
	vs := concluded(w, accusation(model.ClassCompute, 0, 8), c)
	require.Len(t, vs, 2)
	jitter := vs[slices.IndexFunc(vs, func(v Verdict) bool { return v.Finding.Class == model.ClassJitter })].Finding
	assert.InDelta(t, 0.02/2, jitter.CostSeconds.V, 1e-6)
	assert.Equal(t, byUnpaused, evidenceOf(t, jitter).CostBy)
}

func TestAChangeOfTheWholeJobCostsTheDifference(t *testing.T) {
	w := newWorld(t, 4)
	for n := range int64(15) {
		p := "c20 *"
		if n >= 10 {
			p = "c30 *"
		}
		w.step(n, each(4, p, nil)...)
	}
	c := nobody(model.ClassJobWide, 15)
	c.First = 10
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.InDelta(t, 0.010, f.CostSeconds.V, 1e-6)
	assert.Equal(t, model.Some(int64(10)), f.StepFirst)
	assert.Contains(t, f.Action, "with step 10")

	late := newWorld(t, 4)
	stepsOf(late, 6, each(4, "c30 *", nil)...)
	c.First, c.Last = 3, 5
	c.Excess = 0.007
	late.e.sorted()[0].window = late.e.sorted()[0].window[3:]
	vs = concluded(late, c)
	require.Len(t, vs, 1)
	assert.InDelta(t, 0.007, vs[0].Finding.CostSeconds.V, 1e-9, "what came before is remembered by the judge only")
}

func TestRanksThatHideEachOthersCostAreBothNamed(t *testing.T) {
	w := newWorld(t, 8)
	stepsOf(w, 6, each(8, "c20 *", map[int]program{1: "c40 *", 2: "c39.9 *"})...)
	vs := concluded(w, accusation(model.ClassCompute, 1, 6), accusation(model.ClassCompute, 2, 6))
	require.Len(t, vs, 2)
	cost := map[int64]float64{}
	for _, v := range vs {
		cost[v.Finding.Rank.V] = v.Finding.CostSeconds.V
		assert.InDelta(t, 0.020, v.Finding.CostJoint.V, 1e-6)
		assert.InDelta(t, 0.0199, evidenceOf(t, v.Finding).CostBeside, 1.1e-4)
		assert.Equal(t, model.SeverityWarn, v.Finding.Severity)
	}
	assert.InDelta(t, 0.0001, cost[1], 1e-6, "alone it gains little")
	assert.Zero(t, cost[2])
}

// Ranks 1 and 2 cost 1.4 % of the step each, and 2.9 % together; rank 3 costs nothing.
func TestRanksThatCostEnoughTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		shares map[int64]float64 // of excess
		want   []int64
	}{
		"alone":             {map[int64]float64{1: 0.1}, nil},
		"slow by much less": {map[int64]float64{1: 0.1, 2: 0.04}, nil},
		"alike":             {map[int64]float64{1: 0.1, 2: 0.1, 3: 0.1}, []int64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 8)
			stepsOf(w, 6, each(8, "c40 * c40 *", map[int]program{1: "c41.2 * c40 *", 2: "c40 * c41.2 *", 3: "c40.1 * c40 *"})...)
			var of []judge.Conclusion
			for rank, share := range tc.shares {
				c := accusation(model.ClassCompute, rank, 6)
				c.Share = share
				of = append(of, c)
			}
			var told []int64
			for _, v := range concluded(w, of...) {
				told = append(told, v.Finding.Rank.V)
			}
			assert.ElementsMatch(t, tc.want, told)
		})
	}
}

func TestWhatIsNobodysFaultCostsWhatCulpritsLeave(t *testing.T) {
	w := newWorld(t, 5)
	for n := range int64(8) {
		programs := make([]program, 5)
		for r := range programs {
			programs[r] = fmt.Sprintf("c%d *", 10*(1+(int64(r)+n)%4))
		}
		programs[4] = "c100 *"
		w.step(n, programs...)
	}
	vs := concluded(w, accusation(model.ClassCompute, 4, 8), nobody(model.ClassWorkImbalance, 8))
	require.Len(t, vs, 2)
	assert.Equal(t, int64(4), vs[0].Finding.Rank.V)
	// Without rank 4 the longest of the others, 40 ms, is left, and 25 are the mean.
	assert.InDelta(t, 0.060, vs[0].Finding.CostSeconds.V, 1e-6)
	assert.InDelta(t, 0.015, vs[1].Finding.CostSeconds.V, 1e-6)
	assert.Contains(t, evidenceOf(t, vs[1].Finding).CostBy, "those at fault mended before")
}

// The same where culprits hide each other's cost.
func TestWhatIsNobodysFaultCostsWhatSeveralCulpritsLeave(t *testing.T) {
	w := newWorld(t, 6)
	for n := range int64(8) {
		programs := make([]program, 6)
		for r := range programs {
			programs[r] = fmt.Sprintf("c%d *", 10*(1+(int64(r)+n)%4))
		}
		programs[4], programs[5] = "c100 *", "c100 *"
		w.step(n, programs...)
	}
	vs := concluded(w, accusation(model.ClassCompute, 4, 8), accusation(model.ClassCompute, 5, 8), nobody(model.ClassWorkImbalance, 8))
	require.Len(t, vs, 3)
	assert.Equal(t, model.ClassWorkImbalance, vs[2].Finding.Class)
	// The median of all others, 30 ms, is what both take then, and the mean of all is a sixth
	// of 160.
	assert.InDelta(t, 0.040-0.160/6, vs[2].Finding.CostSeconds.V, 1e-6)
}

func TestAConclusionThatCostsNothingIsNotTold(t *testing.T) {
	w := newWorld(t, 8)
	stepsOf(w, 6, each(8, "c20 *", map[int]program{1: "c20.1 *"})...)
	assert.Empty(t, concluded(w, accusation(model.ClassCompute, 1, 6)))
	a := w.e.sorted()[0].abstain
	require.NotNil(t, a)
	assert.Equal(t, gateCost, a.Gate)
	assert.Equal(t, int64(1), a.Rank)
	assert.InDelta(t, 0.0001, a.CostShare*0.0211, 1e-6)
}

func TestGated_SavesNothingAloneOrTogether_NotNamed(t *testing.T) {
	least := func(c *Config) { c.MinCostShare = 0 }
	victims := []judge.Conclusion{accusation(model.ClassHost, 1, 6), accusation(model.ClassHost, 2, 6)}

	w := newWorld(t, 8, least)
	stepsOf(w, 6, each(8, "c20 *", nil)...)
	assert.Empty(t, concluded(w, victims...), "no rank is slower than its peers")
	require.NotNil(t, w.e.sorted()[0].abstain)
	assert.Equal(t, gateCost, w.e.sorted()[0].abstain.Gate)

	w = newWorld(t, 8, least)
	stepsOf(w, 6, each(8, "h1:load c20 *", map[int]program{1: "h9:load c20 *", 2: "h9:load c20 *"})...)
	both := concluded(w, victims...)
	require.Len(t, both, 2, "each alone saves nothing; both together save 8 ms")
	for _, v := range both {
		assert.Zero(t, v.Finding.CostSeconds.V)
		assert.InDelta(t, 0.008, v.Finding.CostJoint.V, 1e-4)
	}
}

func TestAnAccusationThatIsExplainedDoesNotStand(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, "c10 *", "c20 *", "c30 *", "c40 *")
	first := concluded(w, accusation(model.ClassCompute, 3, 8))
	require.Len(t, first, 1)
	status := map[string]string{}
	for look := range explainedLooks {
		if look > 0 {
			assert.Equal(t, map[string]string{model.ClassWorkImbalance: model.StatusOpen}, status, "not at once")
		}
		for _, v := range concluded(w, nobody(model.ClassWorkImbalance, 8, 2, 3)) {
			status[v.Finding.Class] = v.Finding.Status
		}
	}
	assert.Equal(t, map[string]string{model.ClassWorkImbalance: model.StatusOpen, model.ClassCompute: model.StatusClosed}, status)
}

func TestARankNearAGateIsOneFindingBesideAStructure(t *testing.T) {
	for name, structure := range map[string]judge.Conclusion{
		"pauses that rotate":     nobody(model.ClassJitter, 8),
		"a change of the job":    nobody(model.ClassJobWide, 8),
		"work that rotates":      nobody(model.ClassWorkImbalance, 8),
		"more work of others":    nobody(model.ClassWorkImbalance, 8, 0, 1),
		"more work of the rank":  nobody(model.ClassWorkImbalance, 8, 3),
		"a host that holds it":   {Class: model.ClassNode, Host: "n0", Rank: -1, Peer: -1, Stage: -1, Ranks: []int64{2, 3}, Last: 7, Excess: 0.01, Mean: 0.01},
		"nothing that is beside": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			stepsOf(w, 8, each(4, "c20:gemm *", map[int]program{3: "c40:gemm *"})...)
			ids := map[string]bool{}
			for look := range 4 * explainedLooks {
				var told []judge.Conclusion
				if structure.Class != "" {
					told = append(told, structure)
				}
				if look%2 == 0 {
					told = append(told, accusation(model.ClassCompute, 3, 8))
				}
				for _, v := range concluded(w, told...) {
					if v.Finding.Class == model.ClassCompute {
						ids[v.Finding.ID] = true
						assert.NotEqual(t, model.StatusClosed, v.Finding.Status)
					}
				}
			}
			assert.Len(t, ids, 1)
		})
	}
}

func TestAClassMayChangeAFindingMayNot(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c20:gemm *", map[int]program{3: "c40:gemm *"})...)
	first := concluded(w, accusation(model.ClassCompute, 3, 8))
	require.Len(t, first, 1)
	c := accusation(model.ClassKernelChoice, 3, 8)
	c.Op = "gemm"
	second := concluded(w, c)
	require.Len(t, second, 1)
	assert.Equal(t, first[0].Finding.ID, second[0].Finding.ID)
	assert.Equal(t, model.ClassKernelChoice, second[0].Finding.Class)
	assert.Equal(t, model.StatusUpdated, second[0].Finding.Status)
	assert.Contains(t, second[0].Finding.Action, "another kernel")
}

func TestLinksAreNamedAsFarAsIsKnown(t *testing.T) {
	for want, tc := range map[string]struct {
		rank, peer int64
		side, comm string
	}{
		"rank 0 -> rank 1":  {rank: 0, peer: 1},
		"rank 0 -> unknown": {rank: 0, peer: -1},
		"rank 0 nic tx":     {rank: 0, peer: -1, side: judge.SideSend},
		"rank 1 nic rx":     {rank: 1, peer: -1, side: judge.SideReceive},
		"group world":       {rank: -1, peer: -1, comm: "world"},
	} {
		w := newWorld(t, 2)
		w.ring = func(int64) hop { return hop{transfer: 10} }
		stepsOf(w, 6, "c20 *", "c20 *")
		c := accusation(model.ClassLink, tc.rank, 6)
		c.Peer, c.Side, c.Comm, c.Share = tc.peer, tc.side, tc.comm, 1
		if tc.rank < 0 {
			c.Ranks = []int64{0, 1}
		}
		vs := concluded(w, c)
		if tc.comm == "" {
			assert.Empty(t, vs, "%s: no message was recorded, so none costs anything", want)
			assert.Equal(t, want, w.e.sorted()[0].candidate(c).linkName())
			continue
		}
		require.Len(t, vs, 1, want)
		f := vs[0].Finding
		assert.Equal(t, want, f.Link)
		assert.Equal(t, tc.comm, f.CommID)
		assert.InDelta(t, 0.005, f.CostSeconds.V, 1e-6, "half of 10 ms is excess over its peers'")
		assert.Contains(t, f.Action, "group world")
	}
}

func TestNumbersThatAreNoneStayOut(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c20 *", map[int]program{3: "c40 *"})...)
	c := accusation(model.ClassCompute, 3, 8)
	c.Numbers = map[string]float64{"ratio": math.Inf(1), "other": math.NaN(), "good": 2}
	c.Steadiness = math.Inf(1)
	vs := concluded(w, c)
	require.Len(t, vs, 1)
	assert.Equal(t, map[string]float64{"good": 2}, evidenceOf(t, vs[0].Finding).Numbers)
}

func TestTooManyConclusionsAreNotAllLookedInto(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c20 *", map[int]program{3: "c40 *"})...)
	var told []judge.Conclusion
	for range maxSuspects + 3 {
		told = append(told, accusation(model.ClassCompute, 3, 8))
	}
	assert.Len(t, w.e.sorted()[0].looked(told), maxSuspects)
	assert.Equal(t, int64(3), w.e.Stats().ConclusionsDropped)
	assert.Len(t, concluded(w, told...), 1, "a place has one finding")
}

func TestEvidenceTellsOfTheCriticalPath(t *testing.T) {
	w := newWorld(t, 4)
	stepsOf(w, 8, each(4, "c20:gemm c5:norm *", map[int]program{3: "c40:gemm c5:norm *"})...)
	vs := concluded(w, accusation(model.ClassCompute, 3, 8))
	require.Len(t, vs, 1)
	ev := evidenceOf(t, vs[0].Finding)
	// 20 ms of 46 beyond its peers.
	assert.InDelta(t, 20.0/46, ev.BlameShare, 0.02)
	assert.Equal(t, "gemm", ev.BlameOp)
}

// What KAIR says is told as it is, whatever it costs.
func TestFindingsOfKAIR(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.Method = evidence.MethodKAIR
	vs := beatingJob(cfg, 1.3).Verdicts()
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, int64(5), f.Rank.V)
	assert.Equal(t, model.ClassCompute, f.Class)
	assert.Equal(t, "kair", evidenceOf(t, f).Method)
	n := evidenceOf(t, f).Numbers
	assert.Greater(t, n["z_score"], n["z_score_limit"])
	assert.Equal(t, map[string]float64{
		"z_score": n["z_score"], "z_score_limit": 3, "steps_recent": 6, "steps_blamed": 6, "steps_blamed_limit": 3,
		"steps_blamed_share": 1, "steps_blamed_share_limit": 0.5, "rhythm_windows": 128,
	}, n, "by what gates it was told")
}

// A rank that is behind in every step has no step without it to compare with.
func TestAPauseInEveryStepHasNoStepWithout(t *testing.T) {
	of := func(behind int) *candidate {
		c := &candidate{Conclusion: judge.Conclusion{Rank: 1, Held: map[int64]float64{0: 0.02, 1: 0.02, 2: 0.02}}}
		for n := range 10 {
			rec := &record{step: int64(n), index: map[int64]int{1: 0}, ranks: make([]rankRecord, 1)}
			if n < behind {
				rec.ranks[0].excess.idle = 15e6
			}
			c.in = append(c.in, rec)
		}
		return c
	}
	assert.True(t, of(6).steadily())
	assert.False(t, of(5).steadily())
	c := of(10)
	c.Held = nil
	assert.False(t, c.steadily())
}
