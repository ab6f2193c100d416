// SPDX-License-Identifier: Apache-2.0

package score

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

var hosts = []string{"a", "a", "b", "b", "c", "c", "d", "d"}

func named(class, op string, ranks ...int64) methods.Accusation {
	return methods.Accusation{ID: class + op, Decided: true, Class: class, Op: op, Ranks: ranks}
}

func link(src, dst int64) methods.Accusation {
	a := methods.Accusation{ID: "link", Decided: true, Class: model.ClassLink, Op: model.AllReduce}
	if src >= 0 {
		a.Ranks = []int64{src}
	}
	if dst >= 0 {
		a.Peer = model.Some(dst)
	}
	return a
}

func node(host string, ranks ...int64) methods.Accusation {
	a := named(model.ClassNode, "", ranks...)
	a.Host = host
	return a
}

func slowGPU(rank int64) training.Culprit {
	return training.Culprit{Family: "gpu_clock", Class: model.ClassCompute, Ranks: []int64{rank}, Peer: -1, Stage: -1, Ops: []string{"gemm", "attention"}, First: 4, Last: 31}
}

func slowLink(src, dst int64) training.Culprit {
	return training.Culprit{Family: "link", Class: model.ClassLink, Ranks: []int64{src}, Peer: dst, Stage: -1}
}

func slowCard(rank, also int64) training.Culprit {
	return training.Culprit{Family: "nic_rx", Class: model.ClassLink, Ranks: []int64{rank}, Also: []int64{also}, Peer: -1, Stage: -1}
}

func slowNode(host string, ranks ...int64) training.Culprit {
	return training.Culprit{Family: "node", Class: model.ClassNode, Host: host, Ranks: ranks, Peer: -1, Stage: -1}
}

func TestCompare(t *testing.T) {
	all, place, class, none := Match{true, true, true}, Match{Who: true}, Match{Who: true, Class: true}, Match{}
	for name, c := range map[string]struct {
		a    methods.Accusation
		c    training.Culprit
		want Match
	}{
		"all of it":                       {named("compute", "gemm", 3), slowGPU(3), all},
		"another operation":               {named("compute", "copy", 3), slowGPU(3), class},
		"another class":                   {named("host", "gemm", 3), slowGPU(3), place},
		"no class":                        {named("", "", 3), slowGPU(3), place},
		"another rank":                    {named("compute", "gemm", 2), slowGPU(3), none},
		"the culprit and a bystander":     {named("compute", "gemm", 2, 3), slowGPU(3), none},
		"nobody":                          {named("compute", "gemm"), slowGPU(3), none},
		"an imbalance accuses nobody":     {named("work_imbalance", "gemm", 3), slowGPU(3), none},
		"its node, another there":         {node("b", 2, 3), slowGPU(3), none},
		"its node, without ranks":         {node("b"), slowGPU(3), none},
		"node":                            {node("b", 2, 3), slowNode("b", 2, 3), all},
		"another node":                    {node("c", 4, 5), slowNode("b", 2, 3), none},
		"one of the node":                 {named("compute", "gemm", 2), slowNode("b", 2, 3), place},
		"link":                            {link(2, 3), slowLink(2, 3), all},
		"the link's sender":               {link(2, -1), slowLink(2, 3), all},
		"the link, other way round":       {link(3, 2), slowLink(2, 3), all},
		"the link's receiver":             {link(-1, 3), slowLink(2, 3), all},
		"the link behind":                 {link(3, 4), slowLink(2, 3), none},
		"the link's receiver as a sender": {link(3, -1), slowLink(2, 3), none},
		"another link":                    {link(5, 6), slowLink(2, 3), none},
		"the sender, as host":             {named("host", "", 2), slowLink(2, 3), place},
		"the receiver, as host":           {named("host", "", 3), slowLink(2, 3), none},
		"card, by its sending":            {link(2, 3), slowLink(2, -1), all},
		"card, by its receiving":          {link(1, 2), slowLink(2, -1), all},
		"card, by who sends to it":        {link(1, -1), slowCard(2, 1), all},
		"card, by who sends to another":   {link(1, 3), slowCard(2, 1), none},
		"card, by a stranger":             {link(4, -1), slowCard(2, 1), none},
		"card, by who sends, no class":    {named("", "", 1), slowCard(2, 1), place},
		"card, by who sends, as compute":  {named("compute", "gemm", 1), slowCard(2, 1), place},
		"sending card, by who receives":   {link(3, -1), slowLink(2, -1), none},
		"the same, no class":              {named("", "", 3), slowLink(2, -1), none},
		"card of another":                 {link(3, 4), slowLink(2, -1), none},
		"a link of a slow rank":           {link(3, 4), slowGPU(3), place},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Compare(&c.a, &c.c, hosts)) })
	}
}

func judge(truth training.Truth) *Judge {
	return &Judge{
		Truth: truth, Hosts: hosts, Classes: true, Small: 0.02,
		Share: func(c *training.Culprit) float64 { return c.Cost },
	}
}

func culprit(c training.Culprit, cost float64) training.Truth {
	c.Cost = cost
	return training.Truth{Culprits: []training.Culprit{c}}
}

func TestRightFinding(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	a := named("compute", "gemm", 3)
	a.CostShare = model.Some(0.07)
	j.Observe(5, nil)
	j.Observe(6, []methods.Accusation{{ID: a.ID, Decided: true, Class: "host", Ranks: []int64{3}}})
	j.Observe(9, []methods.Accusation{a})
	res := j.Finish(31, []methods.Accusation{a})
	require.Len(t, res.Faults, 1)
	f := res.Faults[0]
	assert.True(t, f.Decided && f.Who && f.WithClass && f.WithOp && f.HasOp && f.Candidate && res.Top)
	assert.EqualValues(t, 9-4, f.Steps, "from the fault's first step to the first with the right class")
	assert.InDelta(t, 0.03, f.BlameError, 1e-9)
	assert.False(t, f.Small)
	assert.False(t, res.Rows[0].Victim)
	assert.EqualValues(t, 6, res.Rows[0].Emitted)
}

func TestVictimIsAccused(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	res := j.Finish(31, []methods.Accusation{named("compute", "gemm", 2)})
	f := res.Faults[0]
	assert.True(t, f.Decided, "somebody was accused for it")
	assert.False(t, f.Who || f.WithClass || f.WithOp || f.Candidate || res.Top)
	assert.EqualValues(t, -1, f.Steps)
	assert.True(t, res.Rows[0].Victim)
	assert.False(t, res.Rows[0].WithClass)
}

func TestRightFindingBesideAVictim(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	res := j.Finish(31, []methods.Accusation{named("host", "loading", 2), named("compute", "gemm", 3)})
	assert.True(t, res.Faults[0].WithOp)
	assert.False(t, res.Top, "the victim came first")
	assert.True(t, res.Rows[0].Victim)
	assert.False(t, res.Rows[1].Victim)
}

func TestAbstention(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	suspect := methods.Accusation{ID: "abstained", Ranks: []int64{3}}
	res := j.Finish(31, []methods.Accusation{suspect})
	f := res.Faults[0]
	assert.False(t, f.Decided || f.Who)
	assert.True(t, f.Candidate)
	assert.True(t, res.Top)
	assert.Empty(t, res.Rows, "a suspicion is no accusation")
}

func TestCandidatesOfAnAccusation(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	a := named("compute", "gemm", 2)
	a.Candidates = []int64{2, 3}
	f := j.Finish(31, []methods.Accusation{a}).Faults[0]
	assert.True(t, f.Candidate)
	assert.False(t, f.Who)
}

func TestNobodyIsRightlyAccusedBeforeTheFault(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	a := named("compute", "gemm", 3)
	j.Observe(2, []methods.Accusation{a})
	res := j.Finish(31, []methods.Accusation{a})
	assert.False(t, res.Faults[0].Who)
	assert.True(t, res.Rows[0].Victim)
}

func TestSmallFault(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.019))
	assert.True(t, j.Finish(31, nil).Faults[0].Small)
	j = judge(culprit(slowGPU(3), 0.02))
	assert.False(t, j.Finish(31, nil).Faults[0].Small)
}

func TestUnseenFault(t *testing.T) {
	of := slowGPU(3)
	of.Unseen = true
	j := judge(culprit(of, 0.10))
	res := j.Finish(31, []methods.Accusation{named("compute", "gemm", 2)})
	assert.True(t, res.Faults[0].Unseen)
	assert.False(t, res.Faults[0].Asked())
	assert.True(t, res.Rows[0].Victim, "another may be accused no more than elsewhere")
}

func TestNodeSingly(t *testing.T) {
	j := judge(culprit(slowNode("b", 2, 3), 0.10))
	half := j.Finish(31, []methods.Accusation{named("compute", "x", 2)})
	assert.False(t, half.Faults[0].Who, "half a node")
	assert.True(t, half.Faults[0].Decided)
	assert.False(t, half.Rows[0].Victim)
	j = judge(culprit(slowNode("b", 2, 3), 0.10))
	both := j.Finish(31, []methods.Accusation{named("compute", "x", 2), named("compute", "y", 3)})
	assert.True(t, both.Faults[0].Who)
	assert.False(t, both.Faults[0].WithClass)
	j = judge(culprit(slowNode("b", 2, 3), 0.10))
	whole := j.Finish(31, []methods.Accusation{node("b", 2, 3)})
	assert.True(t, whole.Faults[0].WithClass)
}

func TestSeveralCulprits(t *testing.T) {
	truth := training.Truth{Culprits: []training.Culprit{slowGPU(1), slowGPU(3), slowGPU(5)}}
	for i := range truth.Culprits {
		truth.Culprits[i].Cost = 0.1
	}
	j := judge(truth)
	res := j.Finish(31, []methods.Accusation{named("compute", "gemm", 3), named("host", "x", 7)})
	assert.True(t, res.Faults[1].Who)
	assert.True(t, res.Faults[0].Decided, "the accusation of another counts for the first that nobody named")
	assert.False(t, res.Faults[0].Who)
	assert.False(t, res.Faults[2].Decided)
}

func TestRanksOfOneFaultAreEachToBeNamed(t *testing.T) {
	c := slowGPU(1)
	c.Ranks, c.Cost = []int64{1, 3}, 0.1
	truth, joint := Split(training.Truth{Culprits: []training.Culprit{c, slowNode("b", 2, 3)}})
	require.Len(t, truth.Culprits, 3)
	assert.Equal(t, []bool{true, true, false}, joint)
	j := judge(truth)
	j.Joint = joint
	a := named("compute", "gemm", 3)
	a.CostShare = model.Some(0.03)
	res := j.Finish(31, []methods.Accusation{a})
	assert.False(t, res.Faults[0].Who)
	assert.True(t, res.Faults[1].Who)
	assert.InDelta(t, -1, res.Faults[1].BlameError, 0, "what one of them costs alone is not known")
}

func TestGroupOfALink(t *testing.T) {
	a := methods.Accusation{Decided: true, Class: model.ClassLink, Ranks: []int64{0, 1}, Comm: "tp0", Group: true}
	c := training.Culprit{Family: training.NVLink, Class: model.ClassLink, Ranks: []int64{0}, Peer: -1, Comms: []string{"tp0"}}
	assert.True(t, Compare(&a, &c, hosts).Class)
	c.Family = training.NICTx
	assert.False(t, Compare(&a, &c, hosts).Who, "of a group over nodes its sender can be told")
	c.Family, a.Comm = training.NVLink, "tp1"
	assert.False(t, Compare(&a, &c, hosts).Who)
}

func TestImbalance(t *testing.T) {
	truth := training.Truth{Imbalances: []training.Culprit{{Family: "seqlen", Class: model.ClassWorkImbalance, Peer: -1, Stage: -1, Cost: 0.2}}}
	j := judge(truth)
	j.Observe(7, []methods.Accusation{named("work_imbalance", "gemm", 1, 2)})
	res := j.Finish(31, []methods.Accusation{named("work_imbalance", "gemm", 1, 2)})
	assert.True(t, res.Imbalances[0].Who)
	assert.EqualValues(t, 7, res.Imbalances[0].Steps)
	assert.False(t, res.Rows[0].Accuses)
	assert.True(t, res.Rows[0].WithClass)

	res = judge(truth).Finish(31, []methods.Accusation{named("work_imbalance", "gemm", 1), named("compute", "gemm", 1)})
	assert.False(t, res.Imbalances[0].Who, "told, but somebody is accused as well")
	assert.True(t, res.Imbalances[0].Decided)
	assert.True(t, res.Rows[1].Accuses)
	assert.False(t, res.Rows[1].WithClass)

	res = judge(truth).Finish(31, []methods.Accusation{named("jitter", "")})
	assert.False(t, res.Imbalances[0].Who, "another class")
	assert.False(t, res.Rows[0].WithClass)

	res = judge(truth).Finish(31, nil)
	assert.False(t, res.Imbalances[0].Who || res.Imbalances[0].Decided)
}

func TestStage(t *testing.T) {
	truth := training.Truth{Imbalances: []training.Culprit{{Family: "stage", Class: model.ClassStageImbalance, Stage: 1, Ranks: []int64{2, 3}, Peer: -1}}}
	assert.True(t, judge(truth).Finish(9, []methods.Accusation{named("stage_imbalance", "stage 1", 2, 3)}).Imbalances[0].Who)
	assert.False(t, judge(truth).Finish(9, []methods.Accusation{named("stage_imbalance", "stage 2", 4, 5)}).Imbalances[0].Who)
}

func TestHealthyJob(t *testing.T) {
	res := judge(training.Truth{}).Finish(31, []methods.Accusation{named("compute", "gemm", 2)})
	assert.True(t, res.Rows[0].Accuses)
	assert.False(t, res.Rows[0].Victim, "nobody made it one")
	assert.False(t, res.Rows[0].WithClass)
}

func TestMethodWithoutClasses(t *testing.T) {
	j := judge(culprit(slowGPU(3), 0.10))
	j.Classes = false
	f := j.Finish(8, []methods.Accusation{named("", "", 3)}).Faults[0]
	assert.True(t, f.Who)
	assert.False(t, f.WithClass)
	assert.EqualValues(t, 4, f.Steps)
}

// Ten findings at 0.9 of which nine are right, ten at 0.5 of which two are: an error of
// 0 and of 0.3, half each.
func TestCalibration(t *testing.T) {
	var all []Told
	for i := range 10 {
		all = append(all, Told{0.9, i > 0}, Told{0.5, i < 2})
	}
	bins := Reliability(all, 2)
	require.Len(t, bins, 2)
	assert.InDelta(t, 0.2, bins[0].Right, 1e-9)
	assert.InDelta(t, 0.5, bins[0].Mean, 1e-9)
	assert.InDelta(t, 0.15, ExpectedError(bins), 1e-9)
	assert.Len(t, Reliability(all, 10), 2, "equal confidences share a bin")
	assert.Len(t, Reliability([]Told{{0.1, true}, {0.2, true}, {0.3, true}}, 10), 3)
	assert.Empty(t, Reliability(nil, 10))
}

func TestBinsHoldEquallyMany(t *testing.T) {
	var all []Told
	for i := range 100 {
		all = append(all, Told{float64(i) / 100, true})
	}
	for _, b := range Reliability(all, 10) {
		assert.Equal(t, 10, b.N)
	}
}

func TestAFitIsMonotone(t *testing.T) {
	assert.Equal(t, []float64{2.0 / 12, 11.0 / 12}, Fit([]Bin{{N: 10, Right: 0.1}, {N: 10, Right: 1}}))
	assert.Equal(t, []float64{12.0 / 22, 12.0 / 22}, Fit([]Bin{{N: 10, Right: 1}, {N: 10, Right: 0.1}}), "pooled")
	assert.Equal(t, []float64{2.0 / 12, 12.0 / 22, 12.0 / 22}, Fit([]Bin{{N: 10, Right: 0.1}, {N: 10, Right: 1}, {N: 10, Right: 0.1}}))
	assert.Equal(t, []float64{2.0 / 3}, Fit([]Bin{{N: 1, Right: 1}}), "one is not much")
	assert.Empty(t, Fit(nil))
}

func TestCalibrationOfConfidentLiesIsBad(t *testing.T) {
	assert.InDelta(t, 0.99, ExpectedError(Reliability([]Told{{0.99, false}, {0.99, false}}, 10)), 1e-9)
}
