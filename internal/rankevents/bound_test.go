// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// An end that nobody observed is in no histogram and not in the split, and is
// said to be none.
func TestInferredEndsAreNoMeasurements(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags ring.Flags
		seen  uint64 // µs; 0: abandoned
		state string
		end   uint64
	}{
		{"by a later one", ring.FlagInferred, 900, "started", 500},
		{"abandoned", 0, 0, "started", 500},
		{"enqueued only", ring.FlagEnqueuedOnly, 900, "started", 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeRing(0, 2)
			r, g := attach(f, DefaultConfig())
			f.mark(0, 0)
			f.op(opSpec{fn: "AllReduce", seq: 1, step: 0, launch: 30, start: 500, end: 600})
			rec := f.record(opSpec{fn: "AllReduce", seq: 0, step: 0, launch: 10, start: 20, end: 900, flags: tc.flags})
			if rec[11] = at(tc.seen); tc.seen == 0 {
				rec[11] = 0
			}
			f.records = append(f.records, rec)
			f.mark(1, 1000)
			r.Pass(at(1100), g.emit(t))
			sum := g.sums[0]
			assert.Equal(t, int64(2), sum.Ops)
			assert.Equal(t, int64(1), sum.Unmeasured)
			assert.Equal(t, map[string]int64{"all_reduce world": 1}, g.hist[0])
			assert.InDelta(t, 100e-6, sum.Transfer, 1e-9)
			assert.Equal(t, int64(1), r.Stats().EndsInferred)
			ops := opsOf(g.ops, model.KindCollective)
			require.Len(t, ops, 2)
			assert.False(t, ops[0].EndInferred)
			assert.Equal(t, "completed", ops[0].Collective.State)
			assert.True(t, ops[1].EndInferred)
			assert.Equal(t, tc.state, ops[1].Collective.State)
			assert.Equal(t, unixAt(tc.end), ops[1].End)
		})
	}
}

// Who sends nothing waits for no wire, and is not said to have waited for 0 s.
func TestWireWaitsNeedSends(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	sends := f.record(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 30, wire: 5, wirePeer: 1})
	none := f.record(opSpec{fn: "AllReduce", seq: 1, step: 0, launch: 31, start: 32, end: 60, wire: 5, wirePeer: -1})
	receives := f.record(opSpec{fn: "AllReduce", seq: 2, step: 0, launch: 61, start: 62, end: 90, wire: 5, wirePeer: 1})
	sends[2], none[2], receives[2] = 12<<48, 12<<48, 0
	f.records = append(f.records, sends, none, receives)
	f.mark(1, 100)
	r.Pass(at(110), g.emit(t))
	ops := opsOf(g.ops, model.KindCollective)
	require.Len(t, ops, 3)
	assert.Equal(t, model.Some(5e-6), ops[0].Waits.Wire)
	assert.Equal(t, model.Some(int64(12)), ops[0].Waits.WireSteps)
	assert.Equal(t, model.Some(int64(1)), ops[0].Peer)
	for _, op := range ops[1:] {
		assert.False(t, op.Waits.Wire.OK)
		assert.False(t, op.Waits.WireSteps.OK)
		assert.False(t, op.Peer.OK)
		assert.True(t, op.Waits.GPU.OK)
	}
}

// The start of a later operation bounds an end only where the two run one after
// the other.
func TestInferredEndsAreBoundByTheirStream(t *testing.T) {
	const seen, later = 900, 500
	for _, tc := range []struct {
		name          string
		abi           uint32
		stream, other uint16
		end           uint64
	}{
		{"same stream", 5, 3, 3, later},
		{"another stream", 5, 3, 4, seen},
		{"streams beyond those that are told apart", 5, 16, 16, seen},
		{"no stream is known", 5, 0, 0, seen},
		{"NCCL told of no streams", 4, 0, 0, later},
		{"a communicator of which nothing is known", 0, 3, 3, seen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFakeRing(0, 2)
			c := &commState{comm: ring.Comm{ABI: tc.abi}}
			rec := f.record(opSpec{fn: "AllReduce", launch: 10, start: 20, end: seen, flags: ring.FlagInferred})
			rec[13] = uint64(tc.stream) << 32
			c.note(at(30), at(later), tc.other)
			c.note(at(40), at(700), tc.other)
			assert.Equal(t, at(tc.end), c.endBefore(&rec, times{launch: at(10), start: at(20)}))
		})
	}
}
