// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
)

// messages sums what nodes say of the messages from one of them to another.
func messages(from, to *testNode, nodes ...*testNode) (lost, reordered int64) {
	for _, n := range nodes {
		for _, o := range n.outcomes() {
			for _, p := range o.Paths {
				if p.Src == endPoint(from.member()) && p.Dst == endPoint(to.member()) {
					lost += p.Lost
					reordered += p.Reordered
				}
			}
		}
	}
	return lost, reordered
}

func unanswered(n *testNode) (sum int64) {
	for _, o := range n.outcomes() {
		for _, s := range o.Trips {
			sum += s.Unanswered
		}
	}
	return sum
}

// twoThatProbe are two nodes on perfect paths that probe each other, so that requests and
// replies go either way. set changes the paths, settle waits until all that was lost is
// told of.
func twoThatProbe(t *testing.T, w *world) (a, b *testNode, set func(out, back netstamptest.Path), settle func()) {
	t.Helper()
	list := &members{}
	a, b = w.node(0, list), w.node(1, list)
	list.set(a.member(), b.member())
	set = func(out, back netstamptest.Path) {
		w.SetPath(addr(1).Addr(), addr(2).Addr(), out)
		w.SetPath(addr(2).Addr(), addr(1).Addr(), back)
	}
	settle = func() { time.Sleep(5*answerWithin + 2*a.cfg.Window) } // directions are told within four timeouts
	set(perfect, perfect)
	a.start(t)
	b.start(t)
	settle()
	return a, b, set, settle
}

func TestLossHasADirection(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		a, b, set, settle := twoThatProbe(t, w)
		noAnswer := unanswered(a) + unanswered(b) // the first to start asked nobody
		lostOut, _ := messages(a, b, a, b)
		lostBack, _ := messages(b, a, a, b)
		set(netstamptest.Path{Delay: 90 * time.Microsecond, Jitter: 20 * time.Microsecond, Loss: 0.03, Duplicate: 0.01},
			netstamptest.Path{Delay: 250 * time.Microsecond, Jitter: 50 * time.Microsecond, Loss: 0.01, Duplicate: 0.02})
		time.Sleep(10 * time.Second)
		set(perfect, perfect)
		settle()

		out, back := w.Counts(addr(1).Addr(), addr(2).Addr()), w.Counts(addr(2).Addr(), addr(1).Addr())
		require.Greater(t, out.Lost, int64(50))
		require.Greater(t, back.Lost, int64(10))
		gotOut, reorderedOut := messages(a, b, a, b)
		gotBack, reorderedBack := messages(b, a, a, b)
		assert.Equal(t, out.Lost, gotOut-lostOut, "every packet that was lost, by its direction, and nothing else")
		assert.Equal(t, back.Lost, gotBack-lostBack)
		assert.Equal(t, out.Lost+back.Lost, unanswered(a)+unanswered(b)-noAnswer)
		assert.Zero(t, reorderedOut+reorderedBack)
	})
}

func TestNode_OvertakenMessages_HaveADirection(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		a, b, set, settle := twoThatProbe(t, w)
		set(perfect, netstamptest.Path{Delay: 250 * time.Microsecond, Jitter: 50 * time.Microsecond, Reorder: 0.05})
		time.Sleep(10 * time.Second)
		set(perfect, perfect)
		settle()

		back := w.Counts(addr(2).Addr(), addr(1).Addr())
		require.Greater(t, back.Reordered, int64(100))
		_, gotOut := messages(a, b, a, b)
		_, gotBack := messages(b, a, a, b)
		assert.Zero(t, gotOut)
		// Of a pair, the second is not overtaken when it is held.
		assert.Greater(t, gotBack, back.Reordered/3)
		assert.LessOrEqual(t, gotBack, back.Reordered, "only those that were held")
	})
}
