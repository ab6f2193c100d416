// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// stream is what a rank does between one pass of its reader and the next, by the number of that.
type stream func(f *fakeRing, n uint64)

// markedStream marks a step in every third pass, and has operations, scopes, kernels, links and
// group launches, some of which last from one pass to the next.
func markedStream(f *fakeRing, n uint64) {
	at, step := 1000*(n+1), int64(n/3)
	if n%3 == 0 {
		f.mark(step, at)
		f.clock(at, 0)
		f.link(step, n+1, at)
	}
	f.op(opSpec{fn: "AllReduce", seq: n, step: step, launch: at + 10, start: at + 20, end: at + 50, bytes: 8})
	f.scope("forward", step, at+1, at+60, ring.PhaseTrain)
	f.kernel(kernelSpec{name: "gemm", launch: at + 5, start: at + 100, end: at + 200, corr: uint32(n)})
	for peer := range int32(3) { // its receives come with the next pass
		for _, flag := range []ring.Flags{ring.FlagSend, ring.FlagRecv} {
			g := n
			if flag == ring.FlagRecv {
				g--
			}
			if peer != 0 && g < 1<<32 {
				f.op(opSpec{fn: "Send", seq: g, step: int64(g / 3), launch: 1000*(g+1) + 300, start: 1000*(g+1) + 310, end: at + 320, peer: peer, group: uint32(g + 1), flags: flag, bytes: 1})
			}
		}
	}
	f.slots = f.slots[:0] // the receives are in flight
	f.open(opSpec{fn: "Send", seq: n, step: step, launch: at + 300, start: at + 300, end: at + 300, peer: 1, group: uint32(n + 1), flags: ring.FlagRecv}, ring.SlotStarted)
}

// unmarkedStream has two operations on the world communicator in every third pass, and others.
func unmarkedStream(f *fakeRing, n uint64) {
	at := 1000 * (n + 1)
	if n%3 == 0 {
		for i := range uint64(2) {
			f.op(opSpec{fn: "AllReduce", seq: 2*(n/3) + i, step: -1, launch: at + i, start: at + 20, end: at + 50, bytes: 8 * (i + 1)})
		}
	}
	f.op(opSpec{comm: 2, fn: "AllGather", seq: n, step: -1, launch: at + 500, start: at + 510, end: at + 550, bytes: 8})
	f.slots = f.slots[:0] // what was enqueued behind it waits for its step
	f.open(opSpec{comm: 2, fn: "AllGather", seq: n + 1, step: -1, launch: at + 400, start: at + 400, end: at + 400}, ring.SlotStarted)
}

func (s stream) config() Config {
	cfg := DefaultConfig()
	cfg.KeepPosition, cfg.StallAfter, cfg.StateInterval = true, time.Hour, 0
	return cfg
}

// run reads a stream, with another reader from each of the given passes on.
func (s stream) run(t *testing.T, passes uint64, anchor Anchor, cuts ...uint64) (*got, Counted) {
	t.Helper()
	cfg := s.config()
	cfg.Anchor = anchor
	out := newGot()
	f := newFakeRing(0, 3)
	f.comms = append(f.comms, ring.Comm{Index: 2, Hash: 0xbeef, Ranks: 2, Rank: 0, ABI: 5, Name: "pair"})
	rank := NewNode(cfg).Attach(f, "job")
	for n := range passes {
		s(f, n)
		rank.Pass(at(1000*(n+1)+999), out.emit(t))
		for _, cut := range cuts {
			if cut == n {
				f, rank = takenOver(t, f, rank, cfg)
			}
		}
	}
	rank.Finish(at(1000*(passes+1)), false, out.emit(t))
	return out, rank.Counted()
}

// takenOver returns the ring and the rank as another collector has them.
func takenOver(t *testing.T, f *fakeRing, rank *Rank, cfg Config) (*fakeRing, *Rank) {
	t.Helper()
	p, ok := rank.Position()
	require.True(t, ok)
	raw, err := json.Marshal(&p)
	require.NoError(t, err)
	var kept Position
	require.NoError(t, json.Unmarshal(raw, &kept))
	f = f.reopened()
	f.drift += 5_000_000
	next := NewNode(cfg).Attach(f, "job")
	require.NoError(t, next.Resume(&kept))
	return f, next
}

// ids returns operations by what their spans' ids are made of.
func (g *got) ids() map[string]model.Op {
	out := map[string]model.Op{}
	for _, op := range g.ops {
		op.Links = nil // they are of the batch
		out[fmt.Sprint(op.Kind, " ", op.ComparisonKey(), " ", op.Step, " ", op.Seq)] = op
	}
	return out
}

// Another reader emits the same as one reader alone, wherever it takes over.
func TestResume_AtAnyPass_HandsOnTheSame(t *testing.T) {
	for name, tc := range map[string]struct {
		stream stream
		anchor Anchor
	}{
		"marked":   {markedStream, Anchor{}},
		"anchored": {unmarkedStream, Anchor{Function: "all_reduce", Every: 2}},
		"found":    {unmarkedStream, Anchor{}},
	} {
		t.Run(name, func(t *testing.T) {
			const passes = 120
			want, counted := tc.stream.run(t, passes, tc.anchor)
			require.NotEmpty(t, want.sums)
			for cut := uint64(70); cut < 80; cut++ {
				have, sum := tc.stream.run(t, passes, tc.anchor, cut, cut+13)
				assert.Equal(t, counted, sum, "pass %d", cut)
				assert.Equal(t, want.steps(), have.steps(), "pass %d", cut)
				assert.Len(t, have.ops, len(want.ops), "pass %d", cut)
				ids := have.ids()
				for id, op := range want.ids() {
					require.Equal(t, op, ids[id], "pass %d: %s", cut, id)
				}
				for n, sum := range want.sums {
					other := have.sums[n]
					sum.Histograms, other.Histograms = nil, nil // in the order in which their keys came
					require.Equal(t, sum, other, "pass %d: step %d", cut, n)
					require.Equal(t, want.hist[n], have.hist[n], "pass %d: step %d", cut, n)
				}
			}
		})
	}
}

// What a rank has loaded is handed on again by the reader that takes over, in its interval.
func TestResume_WhatWasLoaded_IsHandedOnAgain(t *testing.T) {
	cfg := stream(markedStream).config()
	cfg.ResumeInterval = time.Minute
	f, out := newFakeRing(0, 3), newGot()
	rank := NewNode(cfg).Attach(f, "job")
	f.records = append(f.records, ring.Record{1: uint64(ring.KindResume) | 1<<8, 2: 41, 4: at(1), 5: 77 | 1<<32})
	rank.Pass(at(2), out.emit(t))
	require.Len(t, out.resumes, 1)
	f, rank = takenOver(t, f, rank, cfg)
	again := newGot()
	rank.Pass(at(3), again.emit(t))
	assert.Equal(t, out.resumes, again.resumes)
	f.records = append(f.records, ring.Record{1: uint64(ring.KindResume) | 1<<8, 2: 50, 4: at(4), 5: 77 | 2<<32})
	rank.Pass(at(5), again.emit(t))
	require.Len(t, again.resumes, 2)
	assert.Equal(t, []int64{2, 50}, []int64{again.resumes[1].Number, again.resumes[1].Step})
}

// A step is missing where nothing of it could be read, and incomplete where it began before the
// first record behind what was lost.
func TestMissing_StepsThatWereOverwritten_AreListed(t *testing.T) {
	f, out := newFakeRing(0, 1), newGot()
	rank := NewNode(DefaultConfig()).Attach(f, "job")
	op := func(step int64, micro uint64) {
		f.op(opSpec{fn: "AllReduce", seq: uint64(step), step: step, launch: micro, start: micro + 1, end: micro + 2})
	}
	f.mark(0, 1)
	op(0, 2)
	f.mark(1, 10)
	rank.Pass(at(20), out.emit(t))
	assert.Equal(t, []int64{0}, out.steps())
	f.lost, f.lostUntil = 7, at(510)
	op(50, 508)
	f.mark(51, 520)
	op(51, 521)
	f.mark(52, 530)
	rank.Pass(at(540), out.emit(t))
	assert.Equal(t, []int64{0, 1, 50, 51}, out.steps())
	assert.Equal(t, []model.MissingSteps{{First: 2, Last: 49, Records: 7, Time: unixAt(540), Reason: model.MissingOverwritten}}, out.missing)
	for step, lost := range map[int64]int64{0: 0, 1: 7, 50: 7, 51: 0} {
		assert.Equal(t, lost, out.sums[step].Lost, "step %d", step)
	}
	assert.Equal(t, int64(48), rank.Stats().StepsMissing)
	f.mark(60, 600) // a program that leaves numbers out loses nothing
	rank.Pass(at(610), out.emit(t))
	f.mark(61, 620)
	rank.Pass(at(630), out.emit(t))
	assert.Equal(t, int64(48), rank.Stats().StepsMissing)
}
