// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// bits deals out what a fuzzer gives, and zeros behind its end.
type bits struct{ b []byte }

func (x *bits) n(limit int) int {
	if len(x.b) == 0 {
		return 0
	}
	v := int(x.b[0])
	x.b = x.b[1:]
	return v % limit
}

func (x *bits) maybe(v int64) (o model.Optional[int64]) {
	if x.n(3) > 0 {
		o = model.Some(v)
	}
	return o
}

// randomCase makes states that hold together as little as a hostile sender likes.
func randomCase(b []byte) (c statetest.Case) {
	x := &bits{b}
	for range x.n(8) {
		c.States = append(c.States, x.state())
	}
	for range x.n(4) {
		c.Absent = append(c.Absent, model.Absence{
			Rank: int64(x.n(12)), Reason: []model.AbsenceReason{model.AbsentDead, model.AbsentMissing, model.AbsentLate, "?"}[x.n(4)], Time: int64(x.n(9)),
		})
	}
	c.WorldSize = x.maybe(int64(x.n(12)))
	return c
}

func (x *bits) state() model.RankState {
	s := model.RankState{
		Rank:   model.Rank{Rank: int64(x.n(10))},
		Source: []model.StateSource{model.StateFlightRecorder, model.StateRankEvents, model.StateRAS}[x.n(3)],
		Time:   int64(x.n(3)), Name: strconv.Itoa(x.n(250)), OnlyActive: x.n(2) == 1,
		Process: []model.ProcessState{"", model.ProcessDead, model.ProcessEnded, model.ProcessStopped}[x.n(4)],
	}
	if x.n(4) == 0 {
		s.Partial = "torn"
	}
	for range x.n(4) {
		s.Comms = append(s.Comms, x.comm())
	}
	for range x.n(12) {
		s.Ops = append(s.Ops, x.op())
	}
	return s
}

func (x *bits) comm() model.CommState {
	c := model.CommState{
		Comm:      model.Comm{ID: string(rune('A' + x.n(4)))},
		Scope:     []model.SeqScope{model.ScopeComm, model.ScopeCommFunc, model.ScopeProcess, model.ScopeOrdinal, ""}[x.n(5)],
		P2PShared: x.n(4) == 0,
	}
	for id := range int64(10) {
		if x.n(2) == 1 {
			c.Members = append(c.Members, id)
		}
	}
	for range x.n(3) {
		c.Frontiers = append(c.Frontiers, model.Frontier{
			Func:     []string{"", model.AllReduce, model.AllGather}[x.n(3)],
			Enqueued: x.maybe(int64(x.n(8))), Completed: x.maybe(int64(x.n(8))), FirstKept: x.maybe(int64(x.n(8))),
		})
	}
	return c
}

func (x *bits) op() model.StateOp {
	return model.StateOp{
		Kind: []model.OpKind{model.KindCollective, model.KindCollective, model.KindSend, model.KindRecv}[x.n(4)],
		Name: []string{model.AllReduce, model.AllGather, model.Broadcast, model.AllToAll, ""}[x.n(5)],
		Comm: x.n(5) - 1, Seq: int64(x.n(8)), Batch: x.maybe(int64(x.n(3))), Peer: x.maybe(int64(x.n(10))),
		Nth: x.maybe(int64(x.n(4))), Root: x.maybe(int64(x.n(3))), InElems: x.maybe(int64(x.n(3))), OutElems: x.maybe(int64(x.n(3))),
		Created: int64(x.n(4)), Done: x.n(2) == 1, Stack: x.n(3),
	}
}

// Whatever comes: no crash, no root without a place, nobody outside the job, limits kept, and
// the order of input changes nothing.
func FuzzConclude(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("7 ranks in a hang, or something that looks like it, 0123456789 0123456789 0123456789"))
	for seed := range byte(16) {
		b := make([]byte, 600)
		v := uint32(seed)*2654435761 + 1
		for i := range b {
			v = v*1664525 + 1013904223
			b[i] = byte(v >> 24)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := randomCase(b)
		cfg := desync.NewDefaultConfig()
		cfg.MaxRoots = 3
		rep := judge(c, cfg, 0)
		bounded(t, rep, cfg)
		if distinct(c) {
			slices.Reverse(c.States)
			slices.Reverse(c.Absent)
			require.Empty(t, difference(t, rep, judge(c, cfg, 0)))
		}
	})
}

// distinct reports whether no source tells of a rank twice: which of two equals counts is open.
func distinct(c statetest.Case) bool {
	type teller struct {
		rank   int64
		source model.StateSource
	}
	seen := map[teller]bool{}
	gone := map[int64]bool{}
	for _, s := range c.States {
		k := teller{s.Rank.Rank, s.Source}
		if seen[k] {
			return false
		}
		seen[k] = true
	}
	for _, a := range c.Absent {
		if gone[a.Rank] {
			return false
		}
		gone[a.Rank] = true
	}
	return true
}

func bounded(t *testing.T, rep *desync.Report, cfg desync.Config) {
	t.Helper()
	assert.LessOrEqual(t, len(rep.Roots), cfg.MaxRoots)
	switch rep.Verdict {
	case desync.Healthy, desync.NoData:
		assert.Empty(t, rep.Roots)
	default:
		assert.True(t, len(rep.Roots) > 0 || rep.MayRun != "", "verdict %s", rep.Verdict)
	}
	for i := range rep.Roots {
		r := &rep.Roots[i]
		assert.LessOrEqual(t, len(r.Members), desync.MaxMembers)
		assert.NotEmpty(t, r.Finding.Class)
		assert.NotEmpty(t, r.Finding.Action)
		assert.GreaterOrEqual(t, r.Finding.Confidence, 0.0)
		assert.Less(t, r.Finding.Confidence, 1.0)
		for _, id := range slices.Concat(r.Finding.Ranks, r.Finding.Candidates, r.Finding.Waiting) {
			assert.True(t, id >= 0 && id < 12, "rank %d", id)
		}
		for _, id := range r.Finding.Ranks {
			assert.NotContains(t, r.Finding.Candidates, id, "who is at fault is no candidate")
			assert.NotContains(t, r.Finding.Waiting, id, "who is at fault is no victim")
		}
	}
}
