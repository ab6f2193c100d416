// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// told is a sink that remembers.
type told struct {
	ops     []model.Op
	ranks   []model.Rank // of each operation
	records []Record
	odd     map[string]int64
}

func (s *told) Operation(r *model.Rank, op *model.Op) {
	s.ops, s.ranks = append(s.ops, *op), append(s.ranks, *r)
}
func (s *told) Record(_ *model.Rank, r *Record) { s.records = append(s.records, *r) }
func (s *told) Odd(why string, n int64) {
	if s.odd == nil {
		s.odd = map[string]int64{}
	}
	s.odd[why] += n
}

const (
	epoch = int64(1790000000000000000)
	ms    = int64(time.Millisecond)
)

var (
	world = Comm{ID: "0x00000000000000aa", Rank: 2, Ranks: 4}
	pair  = Comm{ID: "0x00000000000000bb", Rank: 1, Ranks: 2, Name: "TP"}
)

// at is a timed collective that was enqueued at some ms, and dumped at others.
func at(c Comm, name string, seq, launch, dumped int64) *Record {
	return &Record{
		Kind: Collective, Comm: c, Name: name, Seq: seq, Bytes: 8 << 10, Seconds: 1e-3,
		Source: Source{Version: "v4.0", Host: "n", PID: 7, Dumped: epoch + dumped*ms},
		Launch: epoch + launch*ms, Start: epoch + launch*ms + 1000, End: epoch + (launch+1)*ms,
	}
}

func testConfig() Config {
	return Config{
		JobID: "j", WorldWait: time.Second, StepWait: time.Second, MaxHeld: 1000,
		Anchor: Anchor{Function: model.AllGather, Every: 2},
	}
}

func TestNobodyIsNamedBeforeTheWorldIsKnown(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.Anchor = Anchor{}
	p := NewProcess(cfg, State{}, s)
	p.Add(at(pair, model.AllReduce, 0, 1, 100))
	p.Add(at(world, model.AllReduce, 0, 2, 200))
	assert.Empty(t, s.records)
	p.Add(at(pair, model.AllReduce, 1, 3, 1100))
	require.Len(t, s.records, 3)
	require.Len(t, s.ops, 3)
	want := model.Rank{
		JobName: "j", JobID: "j", Incarnation: model.Incarnation(model.World{CommHash: world.ID}), Rank: 2,
		WorldSize: model.Some(int64(4)), HostName: "n", PID: model.Some(int64(7)), ClockID: "host:n/?/realtime",
	}
	assert.Equal(t, []model.Rank{want, want, want}, s.ranks, "the world's rank, whatever the communicator's")
	op := s.ops[0]
	assert.Equal(t, model.Comm{ID: pair.ID, Name: "TP", Size: model.Some(int64(2)), Rank: model.Some(int64(1))}, op.Comm)
	assert.Equal(t, "all_reduce TP", op.Key)
	assert.Equal(t, model.ScopeCommFunc, op.Collective.SeqScope)
	assert.Equal(t, []int64{0, 0, 1}, []int64{s.ops[0].Seq, s.ops[1].Seq, s.ops[2].Seq}, "counted by key")
	assert.False(t, op.Step.OK)
}

func TestTheWorldIsTheSameForAllRanks(t *testing.T) {
	other := world
	other.ID = "0x0000000000000099"
	huge := world
	huge.ID, huge.Ranks = "0x0000000000000001", 8
	for name, tc := range map[string]struct {
		size int64
		recs []Comm
		want string
	}{
		"the first by id of the largest": {0, []Comm{world, other, pair}, other.ID},
		"in whatever order":              {0, []Comm{other, pair, world}, other.ID},
		"the largest":                    {0, []Comm{world, huge}, huge.ID},
		"as large as is configured":      {4, []Comm{huge, world}, world.ID},
	} {
		cfg := testConfig()
		cfg.WorldSize = tc.size
		p := NewProcess(cfg, State{}, &told{})
		for i, c := range tc.recs {
			p.Add(at(c, model.AllReduce, int64(i), 1, 1))
		}
		p.Decide()
		assert.Equal(t, tc.want, p.World, name)
	}
}

func TestTheConfiguredWorldSizeIsTaken(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.WorldSize = 64
	p := NewProcess(cfg, State{}, s)
	p.Add(at(world, model.AllReduce, 0, 1, 1))
	p.End()
	assert.Equal(t, model.Some(int64(64)), s.ranks[0].WorldSize)
}

func TestAStepThatDidNotFitIsNone(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.MaxHeld = 4
	p := NewProcess(cfg, State{}, s)
	p.World, p.Size = world.ID, world.Ranks
	p.Add(at(world, model.AllGather, 0, 0, 1))
	for i := range int64(3) {
		p.Add(at(world, model.AllReduce, i, 1+i, 1))
	}
	p.Add(at(world, model.AllReduce, 3, 5, 1))
	p.Add(at(world, model.AllGather, 2, 10, 1))
	p.End()
	assert.Equal(t, map[int64][]string{
		-1: {"all_gather", "all_reduce", "all_reduce", "all_reduce", "all_reduce"}, 1: {"all_gather", "step"},
	}, steps(s.ops), "what comes of step 0 later makes no step of it")
}

func TestHoldingIsBounded(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.MaxHeld = 10
	p := NewProcess(cfg, State{}, s)
	for i := range int64(100) {
		p.Add(at(world, model.AllReduce, i, i, 1))
		assert.Less(t, len(p.Held), 10)
		for _, l := range p.Lives {
			assert.Less(t, len(l.Pending), 10)
		}
	}
	assert.Positive(t, s.odd[OddHeld])
	p.End()
	assert.Len(t, s.ops, 100)
}

func TestAnotherProcessInTheFile(t *testing.T) {
	s := &told{}
	p := NewProcess(testConfig(), State{}, s)
	p.Add(at(world, model.AllReduce, 0, 1, 1))
	next := at(pair, model.AllReduce, 0, 2, 2)
	next.Source.PID = 8
	p.Add(next)
	assert.Len(t, s.records, 1, "the first is over")
	p.End()
	require.Len(t, s.ops, 2)
	assert.Equal(t, []int64{2, 1}, []int64{s.ranks[0].Rank, s.ranks[1].Rank})
}

func TestAProcessOfSeveralRanks(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.Anchor = Anchor{}
	p := NewProcess(cfg, State{}, s)
	third := world
	third.Rank = 3
	p.Add(at(world, model.AllReduce, 0, 1, 1))
	p.Add(at(third, model.AllReduce, 0, 1, 1))
	p.Add(at(pair, model.AllReduce, 0, 1, 1))
	p.End()
	require.Len(t, s.ops, 2)
	assert.Equal(t, []int64{2, 3}, []int64{s.ranks[0].Rank, s.ranks[1].Rank})
	assert.Equal(t, map[string]int64{OddAmbiguous: 1}, s.odd)
}

func TestMessages(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.Anchor = Anchor{}
	p := NewProcess(cfg, State{}, s)
	for _, c := range []Comm{world, pair} {
		r := at(c, "recv", 4, 1, 1)
		r.Kind, r.Peer = Message, model.Some(int64(0))
		p.Add(r)
	}
	p.End()
	require.Len(t, s.ops, 2)
	assert.Equal(t, model.KindRecv, s.ops[0].Kind)
	assert.Equal(t, model.Some(int64(0)), s.ops[0].Peer)
	assert.Equal(t, model.Some(int64(0)), s.ops[1].PeerLocal)
	_, joins := model.Rendezvous(&s.ranks[0], &s.ops[0])
	assert.False(t, joins, "their number is nobody else's")
}

func TestWithoutATimeOfDayThereIsNoSpan(t *testing.T) {
	s := &told{}
	p := NewProcess(testConfig(), State{}, s)
	r := at(world, model.AllReduce, 0, 1, 1)
	r.Launch, r.Start, r.End = 0, 0, 0
	p.Add(r)
	p.End()
	assert.Len(t, s.records, 1)
	assert.Empty(t, s.ops)
	assert.Equal(t, int64(1), s.odd[OddWithoutTime])
}

// steps lists what was handed on, by step; -1 is none.
func steps(ops []model.Op) map[int64][]string {
	out := map[int64][]string{}
	for _, op := range ops {
		n := op.Step.Or(-1)
		out[n] = append(out[n], op.Name)
	}
	return out
}

func TestStepsBeginAtAnchors(t *testing.T) {
	s := &told{}
	p := NewProcess(testConfig(), State{}, s)
	// One dump: communicator by communicator, so that what lies between the world's
	// operations comes behind them all.
	for i := range int64(7) { // steps begin at 0, 2, 4, 6 of all_gather
		p.Add(at(world, model.AllGather, i, 10*i, 500))
	}
	for i := range int64(7) {
		p.Add(at(pair, model.AllReduce, i, 10*i+5, 500))
	}
	p.Add(at(pair, model.AllReduce, 7, -5, 500))
	p.Decide()
	p.Settle()
	assert.Empty(t, s.ops, "what is late may come with the next dump")
	p.Add(at(pair, model.Broadcast, 0, 6, 1500))
	p.Settle()
	want := []string{"all_gather", "all_reduce", "all_gather", "all_reduce", "step"}
	assert.Equal(t, map[int64][]string{
		-1: {"all_reduce"}, 0: {"all_gather", "all_reduce", "broadcast", "all_gather", "all_reduce", "step"}, 1: want, 2: want,
	}, steps(s.ops))
	for _, op := range s.ops {
		if op.Kind == model.KindStep {
			assert.Equal(t, epoch+20*op.Step.V*ms, op.Start)
			assert.Equal(t, epoch+20*(op.Step.V+1)*ms, op.End)
			assert.Equal(t, int64(len(steps(s.ops)[op.Step.V])-1), op.StepOps.V)
		}
	}
	assert.Equal(t, []int64{0, 1}, []int64{s.ops[1].Seq, s.ops[4].Seq}, "n-th of its key in the step")
	p.Add(at(pair, model.Broadcast, 1, 7, 1600))
	p.End()
	assert.Equal(t, []string{"all_gather", "all_reduce", "step"}, steps(s.ops)[3], "the last ends with its process")
	assert.Equal(t, map[string]int64{OddWithoutStep: 1, OddLate: 1}, s.odd)
}

func TestNoStepIsMadeUpWhereAnchorsAreMissing(t *testing.T) {
	s := &told{}
	p := NewProcess(testConfig(), State{}, s)
	for _, i := range []int64{1, 2, 4, 7, 8} { // that which begins step 3 was dropped
		p.Add(at(world, model.AllGather, i, 10*i, 1))
		p.Add(at(pair, model.AllReduce, i, 10*i+5, 1))
	}
	p.End()
	assert.Equal(t, map[int64][]string{
		-1: {"all_gather", "all_reduce", "all_gather", "all_reduce", "all_gather", "all_reduce"},
		1:  {"all_gather", "all_reduce", "step"}, 4: {"all_gather", "all_reduce", "step"},
	}, steps(s.ops), "what lies between 2 and 4 may be of either")
}

func TestAnchorsOutOfOrder(t *testing.T) {
	s := &told{}
	p := NewProcess(testConfig(), State{}, s)
	p.Add(at(world, model.AllGather, 2, 20, 1))
	p.Add(at(world, model.AllGather, 4, 10, 1))
	p.Add(at(world, model.AllGather, 0, 30, 1))
	p.End()
	assert.Equal(t, int64(2), s.odd[OddAnchor])
	assert.Len(t, s.ops, 4)
}

// A restart at any place, with what is kept as JSON, hands on the same.
func TestProcessGoesOnAfterRestarts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var recs []*Record
	for d := range int64(12) {
		for i := range int64(10) {
			recs = append(recs, at(world, model.AllGather, 10*d+i, 100*d+10*i, 100*d+200))
		}
		for i := range int64(10) {
			recs = append(recs, at(pair, model.AllReduce, 10*d+i, 100*d+10*i+3, 100*d+200))
		}
	}
	run := func(restart bool) []model.Op {
		s := &told{}
		p := NewProcess(testConfig(), State{}, s)
		for i, r := range recs {
			p.Add(r)
			if i%20 == 19 {
				p.Settle()
			}
			if restart && rng.IntN(5) == 0 {
				raw, err := json.Marshal(p.State)
				require.NoError(t, err)
				var st State
				require.NoError(t, json.Unmarshal(raw, &st))
				p = NewProcess(testConfig(), st, s)
			}
		}
		p.End()
		return s.ops
	}
	want := run(false)
	require.Len(t, want, 240+60)
	for range tier.N(t, 5, 20) {
		require.Equal(t, want, run(true))
	}
}

// Verbose logs of four ranks over 20 steps, of which one enters each step's
// collective late: the straggler analysis names it.
func TestASlowRankIsFoundFromVerboseLogs(t *testing.T) {
	const ranks, slow, count = 4, 2, 20
	e := straggler.New(straggler.NewDefaultConfig(), time.Now)
	for rank := range int64(ranks) {
		s := &told{}
		cfg := testConfig()
		cfg.Anchor = Anchor{Function: model.AllReduce, Every: 2}
		p := NewProcess(cfg, State{}, s)
		c := Comm{ID: world.ID, Rank: rank, Ranks: ranks}
		for n := range int64(count) {
			// Work until the first bucket, 20 ms, or 30 on the slow rank, which all
			// wait for; the second follows 5 ms behind.
			begin := 50 * n
			own := begin + 20
			if rank == slow {
				own += 10
			}
			for k, at0 := range []struct{ launch, start, end int64 }{{own, own, begin + 31}, {begin + 36, begin + 36, begin + 37}} {
				r := at(c, model.AllReduce, 2*n+int64(k), at0.launch, 5000)
				r.Start, r.End = epoch+at0.start*ms+10_000, epoch+at0.end*ms
				p.Add(r)
			}
		}
		p.End()
		require.Len(t, s.ops, 3*count)
		e.Add(s.ranks[0], s.ops)
	}
	verdicts := e.Verdicts()
	require.Len(t, verdicts, 1)
	assert.Equal(t, model.Some(int64(slow)), verdicts[0].Finding.Rank)
}

func TestJobID(t *testing.T) {
	t.Setenv(EnvJobID, "")
	assert.Equal(t, "mine", JobID("mine", "/x/nccl-inspector-12/a.log"))
	assert.Equal(t, "12", JobID("", "/x/nccl-inspector-12/a.log"))
	assert.Equal(t, "run-7", JobID("", "/x/run-7/a.log"))
	assert.Equal(t, "nccl-inspector-", JobID("", "/x/nccl-inspector-/a.log"))
	t.Setenv(EnvJobID, "env")
	assert.Equal(t, "env", JobID("", "/x/nccl-inspector-12/a.log"))
}

func TestKeysAreBounded(t *testing.T) {
	s := &told{}
	cfg := testConfig()
	cfg.Anchor = Anchor{}
	p := NewProcess(cfg, State{}, s)
	for i := range 300 {
		c := world
		c.Name = string(rune('a'+i%26)) + string(rune('a'+i/26))
		p.Add(at(c, model.AllReduce, int64(i), int64(i), 1))
	}
	p.End()
	assert.Equal(t, int64(300-256), s.odd[OddKeys])
	assert.True(t, slices.ContainsFunc(s.ops, func(o model.Op) bool { return o.Key == "(other)" && o.Seq == 43 }))
}
