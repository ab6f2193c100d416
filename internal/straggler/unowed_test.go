// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// One rank of eight was not seen. The others are judged by what they did themselves; whether
// the missing one kept them waiting is unknown by as much as they communicated.
func TestOneRankOfEightIsMissing(t *testing.T) {
	for name, of := range map[string]struct {
		scale   float64
		missing int64
		slow    float64 // rank 3
		want    map[int64]string
		unknown bool
	}{
		"all alike":                   {1, 5, 1, map[int64]string{}, false},
		"long steps":                  {16, 5, 1, map[int64]string{}, false},
		"one that was seen is slow":   {1, 5, 1.2, map[int64]string{3: model.ClassCompute}, false},
		"the slow one was not seen":   {1, 3, 1.2, map[int64]string{}, true},
		"slow, long and not seen":     {16, 3, 1.2, map[int64]string{}, true},
		"one that was seen, and long": {16, 5, 1.2, map[int64]string{3: model.ClassCompute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := training.Spec{
				Name: "x", Layout: training.Layout{DP: 8, Scale: of.scale}, Noise: training.DefaultNoise(), Steps: 24,
				Faults: []training.Fault{{Family: training.GPUClock, Severity: of.slow, Ranks: []int64{3}}},
			}
			e := bent(t, spec, func(rank int64, ops []model.Op) {
				if rank != of.missing {
					return
				}
				for i := range ops { // none of a step: not even that there was one
					ops[i].Step.OK = false
				}
			})
			assert.Equal(t, of.want, accusedOf(e))
			rep := e.Jobs()[0]
			assert.Equal(t, rep.Meetings, rep.Attributed+rep.Unowed.Members)
			assert.Zero(t, rep.Unowed.Clocks+rep.Unowed.Kind)
			assert.Equal(t, of.unknown, rep.Attributed == 0 && !rep.Unowed.Harmless())
			for _, v := range rep.Verdicts {
				assert.Less(t, v.Finding.Confidence, 0.95, "lower than with all of them")
			}
		})
	}
}

// Harmless is what costs too little, and only where nothing else is unknown.
func TestWhatCannotCostMuchIsHarmless(t *testing.T) {
	little := Unowed{Members: 3, Share: 0.01, Want: 0.02}
	assert.True(t, little.Harmless())
	for _, change := range []func(*Unowed){
		func(u *Unowed) { u.Share = 0.02 }, func(u *Unowed) { u.Clocks = 1 }, func(u *Unowed) { u.Kind = 1 }, func(u *Unowed) { u.Members = 0 },
	} {
		u := little
		change(&u)
		assert.False(t, u.Harmless())
	}
}

// halves are two groups of three ranks each, of a fourth that was not seen. The ranks of
// the first are exposed to their collective for as long as wait says, those of the other are not.
func halves(t *testing.T, steps int64, wait func(step, rank int64) time.Duration) Unowed {
	t.Helper()
	e := New(NewDefaultConfig(), func() time.Time { return time.Unix(0, 0) })
	for n := range steps {
		for _, rank := range []int64{0, 1, 2, 4, 5, 6} {
			comm := "first"
			if rank >= 4 {
				comm = "second"
			}
			begin := nanos(0) + n*int64(100*time.Millisecond)
			end := begin + int64(95*time.Millisecond)
			enter := end - int64(10*time.Microsecond) - rank*100
			if rank < 4 {
				enter -= int64(wait(n, rank))
			}
			e.Add(model.Rank{JobID: "j", Rank: rank, WorldSize: model.Some(int64(8)), HostName: "h"}, []model.Op{
				{Kind: model.KindCompute, Name: "k", Start: begin, End: enter, Step: model.Some(n)},
				{
					Kind: model.KindCollective, Name: "ar", Start: enter, End: end, Step: model.Some(n),
					Comm:       model.Comm{ID: comm, Size: model.Some(int64(4))},
					Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeComm, Bytes: model.Some(int64(1024))},
				},
				{Kind: model.KindStep, Name: "step", Start: begin, End: end, Step: model.Some(n)},
			})
		}
		e.Flush()
	}
	return e.Jobs()[0].Unowed
}

// Who was not seen holds up its own group only; and what it did in steps that are judged no
// more it did.
func TestWhoWasNotSeenHoldsUpItsGroup(t *testing.T) {
	const long = 30 * time.Millisecond
	for name, of := range map[string]struct {
		steps int64
		wait  func(step, rank int64) time.Duration
		share float64
	}{
		"nobody waits":              {24, func(_, _ int64) time.Duration { return 0 }, 0},
		"one group waits":           {24, func(_, _ int64) time.Duration { return long }, 30. / 95},
		"one of the group does not": {24, func(_, rank int64) time.Duration { return time.Duration(rank) * long / 2 }, 0},
		"three quarters, and it is over": {400, func(n, _ int64) time.Duration {
			if n >= 300 {
				return 0
			}
			return long
		}, 0.75 * 30 / 95},
		"the last tenth of many": {640, func(n, _ int64) time.Duration {
			if n < 576 {
				return 0
			}
			return long
		}, 30. / 95},
	} {
		t.Run(name, func(t *testing.T) {
			u := halves(t, of.steps, of.wait)
			assert.InDelta(t, of.share, u.Share, 0.001)
			assert.Equal(t, of.share == 0, u.Harmless())
		})
	}
}

// An operation that met nobody may have waited for who was not seen.
func TestWhoMetNobodyMayHaveWaited(t *testing.T) {
	rec := &record{end: 100, ranks: []rankRecord{{communicated: 30}, {communicated: 7}}}
	alone := &rankView{rankStep: &rankStep{comms: make([]commOp, 2)}, met: make([]metOp, 1)}
	met := &rankView{rankStep: &rankStep{comms: make([]commOp, 1)}, met: make([]metOp, 1)}
	assert.InDelta(t, 0.3, rec.exposed([]*rankView{alone, met}, nil), 1e-12)
	assert.Zero(t, rec.exposed([]*rankView{met, met}, nil))
}
