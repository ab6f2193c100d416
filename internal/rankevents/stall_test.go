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
