// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// bears answers with the name of a clock that may change.
func (w *world) bears(t *testing.T, i int, node, clock string) (mesh.Member, *atomic.Pointer[string]) {
	t.Helper()
	var name atomic.Pointer[string]
	name.Store(&clock)
	m := mesh.Member{Node: node, Addr: addr(i)}
	w.serve(t, m.Addr, func(request []byte) []byte { return ownReply(request, *name.Load()) })
	return m, &name
}

// windows waits for n more windows and returns them.
func (n *testNode) windows(t *testing.T, more int) []Outcome {
	t.Helper()
	since := len(n.outcomes())
	n.some(t, "more windows", func(Outcome) bool { return len(n.outcomes()) >= since+more })
	return n.outcomes()[since:]
}

// measured checks that every bound on b's clock holds, and returns in how many windows
// there is one.
func measured(t *testing.T, a, b *testNode, windows []Outcome) (in int) {
	t.Helper()
	for _, o := range windows {
		for _, e := range o.Edges {
			if e.Source != model.EdgeProbe {
				continue
			}
			require.Equal(t, b.cfg.rawClock(), e.Dst)
			at, ok := a.clock.TrueOfRaw(e.At)
			require.True(t, ok)
			truth := netstamp.Offset(a.clock, b.clock, at)
			assert.LessOrEqual(t, e.Lower, truth)
			assert.GreaterOrEqual(t, e.Upper, truth)
			in++
		}
	}
	return in
}

// TestALiarWithOurNameSilencesNobody: it comes into a mesh that works, and answers as
// if it were the node that asks.
func TestALiarWithOurNameSilencesNobody(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		list.set(a.member(), b.member())
		w.SetPath(addr(1).Addr(), addr(2).Addr(), perfect) // a duplicate would be refused, too
		w.SetPath(addr(2).Addr(), addr(1).Addr(), perfect)
		var mu sync.Mutex
		var warned []string
		b.start(t)
		a.start(t, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, err.Error())
		})
		a.some(t, "b is measured", func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) })
		a.windows(t, 2*idleWindows) // peers were heard in 16 of them

		liar, _ := w.bears(t, 210, "liar", a.cfg.rawClock())
		list.set(a.member(), b.member(), liar)
		a.some(t, "it is heard", func(o Outcome) bool { return o.Counters["clock.own"] > 20 })
		after := a.windows(t, idleWindows)
		assert.Positive(t, measured(t, a, b, after), "the others are measured on")
		for _, o := range after {
			assert.Zero(t, o.Counters["clock.edges_withheld"])
			for reason, from := range o.Refused {
				assert.Equal(t, []netip.Addr{liar.Addr.Addr()}, from, reason)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		named := slices.DeleteFunc(slices.Clone(warned), func(w string) bool { return !strings.Contains(w, `"liar"`) })
		assert.Equal(t, []string{`check clock of node "liar": it says that it is host "a", as we are: its measurements are left out until it is silent`}, named)
	})
}

// TestTwoMachinesOfOneSnapshot: a node ran in it, and each of both remembers that it bore
// its name alone for long. Neither says anything while it hears the other.
func TestTwoMachinesOfOneSnapshot(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		listA, listB := &members{}, &members{}
		a, b, c := w.node(0, listA), w.node(1, listB), w.node(2, listA)
		b.cfg.HostID = a.cfg.HostID
		memory := newLineage()
		a.memory, b.memory = &memory, &memory
		d := w.node(3, listB)
		listA.set(a.member(), c.member())
		listB.set(b.member(), d.member())
		a.start(t)
		b.start(t)
		c.start(t)
		d.start(t)
		a.some(t, "c is measured", func(o Outcome) bool { return estimated(o, c.cfg.rawClock()) })
		b.some(t, "d is measured", func(o Outcome) bool { return estimated(o, d.cfg.rawClock()) })
		a.windows(t, 2*idleWindows)
		b.windows(t, 1)
		for _, n := range []*testNode{a, b} {
			for _, o := range n.outcomes() {
				require.Zero(t, o.Counters["clock.edges_withheld"])
			}
		}

		all := []mesh.Member{a.member(), b.member(), c.member(), d.member()}
		listA.set(all...)
		listB.set(all...)
		for _, n := range []*testNode{a, b} {
			n.some(t, "the other is known", func(o Outcome) bool { return o.Counters["clock.copied"] > 0 && o.Counters["clock.edges_withheld"] > 0 })
		}
		for _, n := range []*testNode{a, b} {
			for _, o := range n.windows(t, 3) {
				assert.Empty(t, o.Edges)
			}
		}
		listA.set(a.member(), c.member())
		listB.set(d.member())
		require.NoError(t, b.Close())
		since := len(a.outcomes())
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(a.outcomes()[since:], func(o Outcome) bool { return estimated(o, c.cfg.rawClock()) })
		}, 30*time.Second, 20*time.Millisecond, "b is gone")
	})
}

// TestAMarkIsOfNoUseToALiar: what we ask it bears a mark, which it repeats to us.
func TestAMarkIsOfNoUseToALiar(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		liar := mesh.Member{Node: "liar", Addr: addr(210)}
		var answers inbox
		port := w.open(t, netip.AddrPortFrom(liar.Addr.Addr(), 0), answers.receive)
		var told atomic.Int64
		w.serve(t, liar.Addr, func(request []byte) []byte {
			port.Send(request, a.cfg.Locals[0])
			told.Add(1)
			return ownReply(request, "host:liar/1/raw")
		})
		list.set(a.member(), b.member(), liar)
		b.start(t)
		a.start(t)
		a.some(t, "it went on", func(Outcome) bool { return told.Load() > 50 })
		assert.NotEmpty(t, answers.packets(), "it is answered")
		for _, o := range a.windows(t, 3) {
			assert.Zero(t, o.Counters["clock.copied"])
			assert.Zero(t, o.Counters["clock.edges_withheld"])
		}
	})
}

func TestAMarkIsOfOneMemoryAndOneEndPoint(t *testing.T) {
	one, other := newLineage(), newLineage()
	same := one
	at := netip.MustParseAddrPort("10.0.0.1:18862")
	assert.Equal(t, one.mark(at), same.mark(at))
	assert.Equal(t, one.mark(at), one.mark(netip.MustParseAddrPort("[::ffff:10.0.0.1]:18862")))
	for _, to := range []string{"10.0.0.2:18862", "10.0.0.1:18863", "[fe80::1]:18862"} {
		assert.NotEqual(t, one.mark(at), one.mark(netip.MustParseAddrPort(to)), to)
	}
	assert.NotEqual(t, one.mark(at), other.mark(at))
}

// TestTwoNeighboursWithOurNameSilenceUs: that is no single liar's doing. It is over
// when one of them is.
func TestTwoNeighboursWithOurNameSilenceUs(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		list.set(a.member(), b.member())
		b.start(t)
		a.start(t)
		a.some(t, "b is measured", func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) })
		a.windows(t, 2*idleWindows)
		one, _ := w.bears(t, 210, "one", a.cfg.rawClock())
		two, name := w.bears(t, 211, "two", a.cfg.rawClock())
		list.set(a.member(), b.member(), one, two)
		a.some(t, "nothing is said", func(o Outcome) bool { return o.Counters["clock.edges_withheld"] > 0 })
		for _, o := range a.windows(t, 3) {
			assert.Empty(t, o.Edges)
		}
		other := "host:two/1/raw"
		name.Store(&other)
		a.some(t, "two is somebody else", func(o Outcome) bool {
			return len(o.Edges) > 0 && o.Counters["clock.edges_withheld"] > 0 && estimated(o, b.cfg.rawClock())
		})
	})
}

// TestWhoBearsTwoNamesIsNoCopy: a node that is heard as another host, too, is left out
// whole, and silences nobody.
func TestWhoBearsTwoNamesIsNoCopy(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		liar := mesh.Member{Node: "liar", Addr: addr(210)}
		var turn atomic.Int64
		w.serve(t, liar.Addr, func(request []byte) []byte {
			return ownReply(request, [...]string{"host:liar/1/raw", a.cfg.rawClock()}[turn.Add(1)%2])
		})
		list.set(a.member(), b.member(), liar)
		b.start(t)
		a.start(t)
		a.some(t, "it is refused", func(o Outcome) bool { return o.Counters["clock.own"] > 20 })
		a.some(t, "b is measured", func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) })
		after := a.windows(t, idleWindows)
		assert.Positive(t, measured(t, a, b, after), "b alone")
		for _, o := range after {
			assert.Zero(t, o.Counters["clock.edges_withheld"])
		}
	})
}

func TestWhoIsACopy(t *testing.T) {
	const windows = 3 * idleWindows
	for name, c := range map[string]struct {
		alone    int
		claims   []string // by a node each
		known    bool     // as another host
		disputed bool
	}{
		"nobody":                         {},
		"from the beginning":             {claims: []string{"host:a/1/raw"}, disputed: true},
		"before we bore it for long":     {alone: idleWindows - 1, claims: []string{"host:a/1/raw"}, disputed: true},
		"a late one":                     {alone: idleWindows, claims: []string{"host:a/1/raw"}},
		"two late ones":                  {alone: windows, claims: []string{"host:a/1/raw", "host:a/1/raw"}, disputed: true},
		"another boot":                   {claims: []string{"host:a/2/raw"}},
		"other boots":                    {claims: []string{"host:a/2/raw", "host:a/3/raw", "host:a/2/raw"}},
		"who was heard as somebody else": {claims: []string{"host:a/1/raw"}, known: true},
	} {
		o := newOwners(hostid.Host{ID: "a", Boot: "1"})
		window := int64(1)
		for range c.alone {
			o.endWindow(true)
			window++
		}
		for i, clock := range c.claims {
			node := fmt.Sprint(i)
			if c.known {
				require.NoError(t, o.claim("host:"+node+"/1/raw", node, window))
			}
			require.ErrorIs(t, o.claim(clock, node, window), errOwnClock, name)
			assert.True(t, o.addRival(clock, node, window), name)
			assert.False(t, o.addRival(clock, node, window), name)
		}
		assert.Equal(t, c.disputed, o.disputed(), name)
		o.endWindow(true)
		o.forget(window + 1)
		assert.False(t, o.disputed(), name)
		assert.Zero(t, o.rivals.Len(), name)
	}
	o := newOwners(hostid.Host{ID: "a", Boot: "1"})
	for range windows {
		o.endWindow(true)
	}
	assert.True(t, o.heardCopy(windows))
	assert.False(t, o.heardCopy(windows), "told once")
	assert.True(t, o.disputed())
	o.endWindow(true)
	o.forget(windows + 1)
	assert.False(t, o.disputed(), "it is silent")
	o.addRival("host:a/1/raw", "b", windows+2)
	assert.True(t, o.disputed(), "that we were alone before is nothing that it cannot say, too")

	o = newOwners(hostid.Host{ID: "a", Boot: "1"})
	for range windows {
		o.endWindow(false)
	}
	o.addRival("host:a/1/raw", "b", windows)
	assert.True(t, o.disputed(), "who hears nobody is not alone")
}
