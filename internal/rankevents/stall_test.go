// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func TestOperationsThatDoNotEnd(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StallAfter, cfg.StallRepeat = time.Millisecond, 10*time.Millisecond
	f := newFakeRing(0, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 41, step: 5, launch: 300, start: 310, end: 320, handle: 2}, ring.SlotEnqueued)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, bytes: 64, handle: 1}, ring.SlotStarted)
	f.slots[1].Proxy, f.slots[1].ProxyPeer, f.slots[1].ProxySince = ring.ProxySendPeer, 3, at(200)
	f.fronts = []ring.Frontier{{
		Comm: 1, Func: uint8(f.code("AllReduce")),
		Enqueued: ring.Mark{Known: true, Seq: 41}, Started: ring.Mark{Known: true, Seq: 40}, Completed: ring.Mark{Known: true, Seq: 39, At: at(50)},
	}}
	r.Pass(at(1000), g.emit(t))
	assert.Empty(t, g.open, "not for long yet")
	r.Pass(at(1200), g.emit(t))
	require.Len(t, g.open, 1, "the oldest of the communicator, for all behind it")
	o := g.open[0]
	assert.Equal(t, model.StatusOpen, o.Status)
	assert.Equal(t, model.Some(int64(40)), o.Op.Collective.Seq)
	assert.Equal(t, "started", o.Op.Collective.State)
	assert.Equal(t, model.Some(int64(5)), o.Op.Step)
	assert.Equal(t, model.Some(int64(3)), o.Op.Peer)
	assert.Equal(t, "send_peer", o.ProxyState)
	assert.InDelta(t, 1e-3, o.ProxyFor.V, 1e-9)
	assert.InDelta(t, 1.1e-3, o.Age, 1e-9)
	assert.Equal(t, int64(1), o.Behind)
	assert.Equal(t, []model.Optional[int64]{model.Some(int64(41)), model.Some(int64(40)), model.Some(int64(39))},
		[]model.Optional[int64]{o.Enqueued, o.Started, o.Completed})

	r.Pass(at(5000), g.emit(t))
	assert.Len(t, g.open, 1, "not yet again")
	r.Pass(at(11_300), g.emit(t))
	require.Len(t, g.open, 2)
	assert.Equal(t, model.StatusUpdated, g.open[1].Status)

	f.slots = f.slots[:1] // the first ended
	f.fronts[0].Completed = ring.Mark{Known: true, Seq: 40, At: at(11_900)}
	r.Pass(at(12_000), g.emit(t))
	require.Len(t, g.open, 3, "the next waited for its turn, and its turn has just come")
	assert.Equal(t, model.StatusClosed, g.open[2].Status)
	r.Pass(at(12_800), g.emit(t))
	require.Len(t, g.open, 3)
	r.Pass(at(12_900), g.emit(t))
	require.Len(t, g.open, 4)
	assert.Equal(t, model.StatusOpen, g.open[3].Status)
	assert.InDelta(t, 12.6e-3, g.open[3].Age, 1e-9, "since it was enqueued")

	r.Finish(at(13_000), true, g.emit(t))
	last := g.open[len(g.open)-1]
	assert.True(t, last.ProcessDied)
	assert.Equal(t, int64(1), last.InFlight)
	assert.Equal(t, model.Some(int64(41)), last.Op.Collective.Seq)
}

// A host that runs seconds ahead of its device has operations in flight for long
// while all goes well.
func TestAQueueThatMovesIsNoStall(t *testing.T) {
	for _, frontier := range []bool{true, false} { // a communicator may have found no room for one
		cfg := DefaultConfig()
		cfg.StallAfter = time.Millisecond
		f := newFakeRing(0, 4)
		r, g := attach(f, cfg)
		f.mark(5, 0)
		const queued = 20
		for i := range uint64(queued) {
			f.open(opSpec{fn: "AllReduce", seq: 40 + i, step: 5, launch: 100, start: 110, end: 120, handle: 1 + i}, ring.SlotEnqueued)
		}
		for i := range uint64(queued) {
			now := 200 + 600*i
			r.Pass(at(now), g.emit(t))
			f.slots = f.slots[1:]
			if frontier {
				f.fronts = []ring.Frontier{{Comm: 1, Completed: ring.Mark{Known: true, Seq: 40 + i, At: at(now + 300)}}}
			}
		}
		r.Pass(at(200+600*queued), g.emit(t))
		assert.Empty(t, g.open)
	}
}

// A reader that comes late tells at its first look what has hung since before.
func TestAHangIsToldAtTheFirstLook(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StallAfter = time.Millisecond
	f := newFakeRing(0, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotEnqueued)
	f.fronts = []ring.Frontier{{Comm: 1, Completed: ring.Mark{Known: true, Seq: 39, At: at(5_000)}}}
	r.Pass(at(500_000), g.emit(t))
	require.Len(t, g.open, 1)
}

// What completes on other streams of a communicator does not hide a hang on one.
func TestAHangBesideOtherStreamsIsTold(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StallAfter = time.Millisecond
	f := newFakeRing(0, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "Send", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotStarted)
	for now := uint64(200); now < 1_800; now += 200 {
		f.fronts = []ring.Frontier{{Comm: 1, Completed: ring.Mark{Known: true, Seq: now, At: at(now - 10)}}}
		r.Pass(at(now), g.emit(t))
	}
	require.Len(t, g.open, 1)
}

// What is sent and what is received are told of apart: each may hide the other.
func TestWaitsOfBothDirectionsAreTold(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StallAfter = time.Millisecond
	f := newFakeRing(0, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotStarted)
	s := &f.slots[0]
	s.Send = ring.Wait{State: ring.ProxySendGPU, Peer: 1, Since: at(200)}
	s.Receive = ring.Wait{State: ring.ProxyRecv, Peer: 3, Since: at(300)}
	s.Proxy, s.ProxyPeer, s.ProxySince = s.Send.State, s.Send.Peer, s.Send.Since
	r.Pass(at(1200), g.emit(t))
	require.Len(t, g.open, 1)
	o := g.open[0]
	assert.Equal(t, "send_gpu", o.ProxyState)
	assert.Equal(t, "send_gpu", o.Send.State)
	assert.InDelta(t, 1e-3, o.Send.For.V, 1e-9)
	assert.Equal(t, model.Some(int64(1)), o.Send.Peer)
	assert.Equal(t, "recv_peer_or_wire", o.Receive.State)
	assert.InDelta(t, 0.9e-3, o.Receive.For.V, 1e-9)
	assert.Equal(t, model.Some(int64(3)), o.Receive.Peer)
	assert.False(t, o.Silent.OK, "no heartbeat is known")
}

// Silence is told of once, before the operation's turn to be told of again.
func TestSilenceOfAProcessIsTold(t *testing.T) {
	assert.Equal(t, ring.DeathSilence, model.SilentAfter)
	const second = 1_000_000
	f := newFakeRing(0, 4)
	r, g := attach(f, DefaultConfig())
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotStarted)
	f.beat = at(second)
	r.Pass(at(3*second), g.emit(t))
	require.Len(t, g.open, 1)
	assert.InDelta(t, 2.0, g.open[0].Silent.V, 1e-9)
	r.Pass(at(3.9*second), g.emit(t))
	require.Len(t, g.open, 1)
	r.Pass(at(4*second), g.emit(t))
	require.Len(t, g.open, 2)
	assert.Equal(t, model.StatusUpdated, g.open[1].Status)
	assert.InDelta(t, 3.0, g.open[1].Silent.V, 1e-9)
	f.beat = at(5 * second)
	r.Pass(at(6*second), g.emit(t))
	r.Pass(at(9*second), g.emit(t))
	require.Len(t, g.open, 2, "once")
	f.beat = at(33 * second)
	r.Pass(at(34*second), g.emit(t))
	require.Len(t, g.open, 3)
	assert.InDelta(t, 1.0, g.open[2].Silent.V, 1e-9)
}

// An event is a sign of life as a heartbeat is.
func TestAnEventEndsSilence(t *testing.T) {
	const second = 1_000_000
	f := newFakeRing(0, 4)
	r, g := attach(f, DefaultConfig())
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotStarted)
	f.beat, f.slots[0].Last = at(second), at(4*second)
	r.Pass(at(5*second), g.emit(t))
	require.Len(t, g.open, 1)
	assert.InDelta(t, 1.0, g.open[0].Silent.V, 1e-9)
}

// What is told first of a process that is silent already is not told of twice.
func TestSilenceIsToldWithTheFirst(t *testing.T) {
	const second = 1_000_000
	f := newFakeRing(0, 4)
	r, g := attach(f, DefaultConfig())
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, handle: 1}, ring.SlotStarted)
	f.beat = at(second)
	r.Pass(at(5*second), g.emit(t))
	r.Pass(at(6*second), g.emit(t))
	require.Len(t, g.open, 1)
	assert.InDelta(t, 4.0, g.open[0].Silent.V, 1e-9)
}

// A death is noticed late; what it left is told of as of its last sign of life.
func TestADeathIsOfItsLastSignOfLife(t *testing.T) {
	for name, tc := range map[string]struct{ beat, last, want uint64 }{ // µs
		"heartbeat":     {beat: 50, last: 40, want: 50},
		"event":         {beat: 30, last: 45, want: 45},
		"enqueueing":    {beat: 10, want: 20},
		"of the future": {beat: 30, last: 7000, want: 5000},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeRing(0, 2)
			f.beat = at(tc.beat)
			f.open(opSpec{fn: "AllReduce", step: 0, launch: 20, start: 20, end: 20}, ring.SlotStarted)
			if tc.last != 0 {
				f.slots[0].Last = at(tc.last)
			}
			f.slots[0].Send = ring.Wait{State: ring.ProxySendPeer, Peer: 1, Since: at(20)}
			r, g := NewNode(DefaultConfig()).Attach(f, ""), newGot()
			r.Finish(at(5000), true, g.emit(t))
			require.Len(t, g.open, 1)
			o := g.open[0]
			assert.True(t, o.ProcessDied)
			assert.Equal(t, unixAt(tc.want), o.Time)
			assert.InDelta(t, float64(tc.want-20)*1e-6, o.Age, 1e-9)
			assert.InDelta(t, float64(tc.want-20)*1e-6, o.Send.For.V, 1e-9)
			assert.False(t, o.Silent.OK)
		})
	}
}

// The end of an operation says nothing that was so while it was open.
func TestTheEndRepeatsNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.StallAfter = time.Millisecond
	f := newFakeRing(0, 4)
	r, g := attach(f, cfg)
	f.mark(5, 0)
	f.open(opSpec{fn: "AllReduce", seq: 40, step: 5, launch: 100, start: 110, end: 120, bytes: 64, handle: 1}, ring.SlotStarted)
	f.open(opSpec{fn: "AllReduce", seq: 41, step: 5, launch: 130, start: 140, end: 150, handle: 2}, ring.SlotEnqueued)
	f.open(opSpec{fn: "AllReduce", seq: 42, step: 5, launch: 1290, start: 1291, end: 1292, handle: 3}, ring.SlotEnqueued)
	f.beat = at(900)
	s := &f.slots[0]
	s.Receive = ring.Wait{State: ring.ProxyRecv, Peer: 3, Since: at(300)}
	s.Proxy, s.ProxyPeer, s.ProxySince = s.Receive.State, s.Receive.Peer, s.Receive.Since
	f.fronts = []ring.Frontier{{Comm: 1, Func: uint8(f.code("AllReduce")), Completed: ring.Mark{Known: true, Seq: 39, At: at(50)}}}
	r.Pass(at(1200), g.emit(t))
	require.Len(t, g.open, 1)
	assert.Equal(t, model.Some(int64(3)), g.open[0].Op.Peer)

	f.slots = f.slots[2:]
	f.fronts[0].Completed = ring.Mark{Known: true, Seq: 41, At: at(1250)}
	r.Pass(at(1300), g.emit(t))
	require.Len(t, g.open, 2)
	first, o := g.open[0], g.open[1]
	want := first.Op
	want.Peer, want.Collective.State = model.Optional[int64]{}, ""
	assert.Equal(t, want, o.Op)
	assert.Equal(t, model.StatusClosed, o.Status)
	assert.InDelta(t, 1.2e-3, o.Age, 1e-9)
	assert.Equal(t, []int64{1, 1}, []int64{o.Behind, o.InFlight}, "as of now")
	assert.Equal(t, model.Some(int64(41)), o.Completed, "as of now")
	assert.Empty(t, o.ProxyState)
	assert.Equal(t, []model.ProxyWait{{}, {}}, []model.ProxyWait{o.Send, o.Receive})
	assert.Equal(t, []model.Optional[float64]{{}, {}}, []model.Optional[float64]{o.ProxyFor, o.Silent})
}
