// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// members is a list that can be changed.
type members struct {
	mu  sync.Mutex
	all []mesh.Member
}

func (m *members) Members(context.Context) (mesh.List, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return mesh.List{Members: slices.Clone(m.all)}, nil
}

func (m *members) set(all ...mesh.Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = all
}

// testNode is a node with a clock of its own.
type testNode struct {
	*Node
	cfg   Config
	clock *netstamp.Skewed
	// memory, if any, is of the snapshot that it was resumed from.
	memory *lineage

	mu  sync.Mutex
	out []Outcome
}

func (n *testNode) emit(o Outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out = append(n.out, o)
}

func (n *testNode) outcomes() []Outcome {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.out)
}

func (n *testNode) member() mesh.Member {
	return mesh.Member{Node: n.cfg.NodeID, Addr: n.cfg.Locals[0]}
}

// loopback are addresses of this process's own, so that several can test at a time.
func loopback(i int) netip.AddrPort {
	pid := os.Getpid()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + pid>>8%254), byte(pid), byte(i)}), 28862)
}

// newNode makes node i, whose clock is i*10 ms ahead and runs i*20 ppm fast.
func newNode(i int, source mesh.Source, local netip.AddrPort,
	clock func(at, rawAt, realtimeAt int64, raw, realtime []netstamp.Change) *netstamp.Skewed,
) *testNode {
	now := time.Now().UnixNano()
	id := string(rune('a' + i))
	n := &testNode{clock: clock(now, 1_000_000_000_000+int64(i)*10_000_000, now,
		[]netstamp.Change{{At: now, Rate: float64(i) * 20e-6}}, nil)}
	n.cfg = Config{
		NodeID: id, HostID: id, BootID: "1", Locals: []netip.AddrPort{local}, Peers: source,
		Rate: 200, Paths: 2, Window: 200 * time.Millisecond, Refresh: 20 * time.Millisecond, Clock: n.clock, Emit: n.emit,
	}
	return n
}

// newTestNode makes node i on real sockets.
func newTestNode(i int, source mesh.Source) *testNode {
	return newNode(i, source, loopback(i+1), netstamp.NewSkewed)
}

func (n *testNode) start(t *testing.T, told ...func(error)) {
	t.Helper()
	n.cfg.Warn = func(err error) {
		t.Log(n.cfg.NodeID, err)
		for _, tell := range told {
			tell(err)
		}
	}
	var err error
	n.Node, err = New(n.cfg)
	require.NoError(t, err)
	if n.memory != nil {
		n.lineage = *n.memory
	}
	require.NoError(t, n.Start())
	t.Cleanup(func() { assert.NoError(t, n.Close()) })
}

// some waits until an outcome of the node satisfies what is asked.
func (n *testNode) some(t *testing.T, what string, ok func(Outcome) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.ContainsFunc(n.outcomes(), ok) }, 30*time.Second, 20*time.Millisecond, what)
}

// estimated reports whether an outcome has an estimate to each of the clocks.
func estimated(o Outcome, dst ...string) bool {
	for _, d := range dst {
		if !slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool { return e.Dst == d && e.Sigma > 0 }) {
			return false
		}
	}
	return true
}

func TestNodesMeasureEachOther(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		_, nodes := w.mesh3(t, nil)
		clock := func(i int) string { return fmt.Sprintf("host:%c/1/raw", 'a'+i) }
		for i, n := range nodes {
			n.some(t, "estimates of both others", func(o Outcome) bool { return estimated(o, clock((i+1)%3), clock((i+2)%3)) })
			n.some(t, "delays in both directions", func(o Outcome) bool {
				out := slices.ContainsFunc(o.Paths, func(p PathStats) bool { return len(p.Delays) > 0 && p.Src == endPoint(n.member()) })
				back := slices.ContainsFunc(o.Paths, func(p PathStats) bool { return len(p.Delays) > 0 && p.Dst == endPoint(n.member()) })
				return out && back
			})
			n.some(t, "realtime beside raw", func(o Outcome) bool { return estimated(o, fmt.Sprintf("host:%c/1/realtime", 'a'+i)) })
		}
		byEndPoint := map[string]netip.Addr{}
		for _, n := range nodes {
			byEndPoint[endPoint(n.member())] = n.cfg.Locals[0].Addr()
		}
		byClock := map[string]*netstamp.Skewed{clock(0): nodes[0].clock, clock(1): nodes[1].clock, clock(2): nodes[2].clock}
		checked := 0
		for _, n := range nodes {
			for _, o := range n.outcomes() {
				for _, e := range o.Edges {
					src, dst := byClock[e.Src], byClock[e.Dst]
					if e.Source != model.EdgeProbe {
						continue
					}
					at, ok := src.TrueOfRaw(e.At)
					require.True(t, ok)
					truth := netstamp.Offset(src, dst, at)
					assert.LessOrEqual(t, e.Lower, truth)
					assert.GreaterOrEqual(t, e.Upper, truth)
					assert.Equal(t, model.StampKernel, e.Stamps)
					checked++
				}
				for _, p := range o.Paths {
					least := w.Path(byEndPoint[p.Src], byEndPoint[p.Dst]).Delay
					for _, d := range p.Delays {
						assert.GreaterOrEqual(t, d+p.Bound, int64(least), "nothing is faster than its path")
					}
				}
			}
		}
		assert.Positive(t, checked)
	})
}

// What the kernel says of loopback's packets is evidence, too.
func TestNode_RealSockets_MeasuresItsPeer(t *testing.T) {
	list := &members{}
	a, b := newTestNode(0, list), newTestNode(1, list)
	list.set(a.member(), b.member())
	a.start(t)
	b.start(t)
	a.some(t, "an estimate", func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) })
	windows := a.outcomes()
	assert.Positive(t, measured(t, a, b, windows))
	for _, o := range windows {
		for _, e := range o.Edges {
			if e.Source == model.EdgeProbe && runtime.GOOS == "linux" {
				assert.Equal(t, model.StampKernel, e.Stamps)
			}
		}
	}
}

func TestWhoDoesNotAnswerIsLost(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		n := w.node(0, list)
		nobody := mesh.Member{Node: "nobody", Addr: addr(9)}
		list.set(n.member(), nobody)
		n.start(t)
		n.some(t, "loss", func(o Outcome) bool {
			return slices.ContainsFunc(o.Trips, func(s TripStats) bool {
				return s.Dst == endPoint(nobody) && s.Unanswered > 0 && s.Sent == s.Unanswered && len(s.RoundTrips) == 0
			})
		})
		for _, o := range n.outcomes() {
			for _, e := range o.Edges {
				assert.NotEqual(t, model.EdgeProbe, e.Source)
			}
		}
	})
}

func TestPeersWithOneIdentity(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list, nodes := w.mesh3(t, func(i int, n *testNode) {
			if i == 2 {
				n.cfg.HostID = "b" // a copy of b, in its boot
			}
			n.cfg.Peers = &members{}
		})
		for _, n := range nodes { // all at once, so that neither was there first
			n.cfg.Peers.(*members).set(list.all...)
		}
		nodes[0].some(t, "both are refused", func(o Outcome) bool { return o.Counters["clock.other_owner"] > 0 })
		for _, n := range nodes[1:] {
			n.some(t, "our own id refused", func(o Outcome) bool { return o.Counters["clock.own"] > 0 && o.Counters["clock.edges_withheld"] > 0 })
		}
		for i, n := range nodes {
			for _, o := range n.windows(t, 4)[1:] {
				assert.False(t, slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool { return e.Source == model.EdgeProbe }),
					"what two say of one clock is of nobody's")
				if i > 0 {
					assert.Empty(t, o.Edges)
				}
			}
		}
	})
}

func TestMembershipChangesLive(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list, nodes := w.mesh3(t, nil)
		a := nodes[0]
		a.some(t, "two neighbours", func(o Outcome) bool { return o.Neighbours == 2 && estimated(o, "host:b/1/raw", "host:c/1/raw") })
		list.set(a.member(), nodes[1].member())
		require.Eventually(t, func() bool { o := a.outcomes(); return o[len(o)-1].Neighbours == 1 }, 20*time.Second, 10*time.Millisecond)
		before := len(a.outcomes())
		require.Eventually(t, func() bool {
			o := a.outcomes()
			return len(o) > before+2 && estimated(o[len(o)-1], "host:b/1/raw")
		}, 20*time.Second, 10*time.Millisecond, "who stays is measured on")
		for _, o := range a.outcomes()[before+1:] {
			for _, s := range o.Trips {
				assert.NotEqual(t, endPoint(nodes[2].member()), s.Dst)
			}
		}
		list.set(a.member(), nodes[1].member(), nodes[2].member())
		require.Eventually(t, func() bool { o := a.outcomes(); return o[len(o)-1].Neighbours == 2 }, 20*time.Second, 10*time.Millisecond)
	})
}

func TestAPeerThatRestartsHasAnotherClock(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list, nodes := w.mesh3(t, nil)
		nodes[0].some(t, "first life", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
		require.NoError(t, nodes[1].Close())
		again := w.node(1, list)
		again.cfg.BootID = "2"
		// It counts from its boot again.
		again.clock.ChangeRaw(netstamp.Change{At: w.Now(), Step: -900_000_000_000})
		again.start(t)
		nodes[0].some(t, "second life", func(o Outcome) bool { return estimated(o, "host:b/2/raw") })
		for _, o := range nodes[0].outcomes() {
			for _, e := range o.Edges {
				if e.Dst != "host:b/2/raw" {
					continue
				}
				at, _ := nodes[0].clock.TrueOfRaw(e.At)
				truth := netstamp.Offset(nodes[0].clock, again.clock, at)
				assert.LessOrEqual(t, e.Lower, truth)
				assert.GreaterOrEqual(t, e.Upper, truth)
			}
		}
	})
}

func TestNothingUnsignedMovesAClock(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		key := func(secret string) *stamp.Key {
			k, err := stamp.NewKey([]byte(secret))
			require.NoError(t, err)
			return k
		}
		_, nodes := w.mesh3(t, func(i int, n *testNode) {
			n.cfg.Key = [...]*stamp.Key{key("0123456789abcdef"), key("0123456789abcdef"), nil}[i]
		})
		nodes[0].some(t, "who signs is measured", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
		nodes[0].some(t, "who does not is lost", func(o Outcome) bool {
			return slices.ContainsFunc(o.Trips, func(s TripStats) bool { return s.Dst == endPoint(nodes[2].member()) && s.Unanswered > 0 })
		})
		for _, o := range nodes[0].outcomes() {
			assert.False(t, slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool { return e.Dst == "host:c/1/raw" }))
		}
		nodes[2].some(t, "loss for the one without a key, too", func(o Outcome) bool {
			return slices.ContainsFunc(o.Trips, func(s TripStats) bool { return s.Unanswered > 0 })
		})
		for _, o := range nodes[2].outcomes() {
			assert.False(t, slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool { return e.Source == model.EdgeProbe }))
		}
	})
}

func TestBoundsHoldWhenClocksChange(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		list.set(a.member(), b.member())
		a.start(t)
		b.start(t)
		a.some(t, "an estimate", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
		a.clock.ChangeRealtime(netstamp.Change{At: w.Now(), Step: 100_000_000})
		time.Sleep(300 * time.Millisecond)
		b.clock.ChangeRaw(netstamp.Change{At: w.Now(), Rate: 500e-6})
		b.clock.ChangeRealtime(netstamp.Change{At: w.Now(), Step: -100_000_000, Rate: 400e-6})
		fast := func(o Outcome) bool {
			return slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool {
				return e.Dst == "host:b/1/raw" && e.Drift > 400e-6 && e.Sigma > 0
			})
		}
		a.some(t, "the new frequency is seen", fast)
		checked := 0
		for _, o := range a.outcomes() {
			for _, e := range o.Edges {
				if e.Source != model.EdgeProbe {
					continue
				}
				at, ok := a.clock.TrueOfRaw(e.At)
				require.True(t, ok)
				truth := netstamp.Offset(a.clock, b.clock, at)
				assert.LessOrEqual(t, e.Lower, truth)
				assert.GreaterOrEqual(t, e.Upper, truth)
				checked++
			}
		}
		assert.Positive(t, checked)
		for _, o := range a.outcomes() {
			for _, p := range o.Paths {
				for _, d := range p.Delays {
					assert.GreaterOrEqual(t, d+p.Bound, int64(0))
					assert.Less(t, d-p.Bound, int64(50*time.Millisecond), "a step of realtime is no delay")
				}
			}
		}
	})
}

func TestIPv6(t *testing.T) {
	list := &members{}
	a, b := newTestNode(0, list), newTestNode(1, list)
	base := 20000 + os.Getpid()%20000
	for i, n := range []*testNode{a, b} {
		n.cfg.Locals = []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Loopback(), uint16(base+20*i))}
	}
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skipf("needs IPv6: %v", err)
	}
	require.NoError(t, c.Close())
	list.set(a.member(), b.member())
	a.start(t)
	b.start(t)
	a.some(t, "an estimate", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
}

// What is known of a host's own clocks needs no packets, and is told before the window
// ends.
func TestPairsOfOwnClocksComeBetweenWindows(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		told := make(chan Outcome, 1024)
		n := w.node(0, &members{})
		n.cfg.Window, n.cfg.PairInterval, n.cfg.Pairs = MaxWindow, MinPairInterval, func(o Outcome) { told <- o }
		n.start(t)
		until := int64(0)
		for range 5 {
			o := <-told
			require.NotEmpty(t, o.Edges)
			for _, e := range o.Edges {
				assert.Equal(t, model.EdgePair, e.Source)
				assert.True(t, e.Prompt)
				assert.Equal(t, n.cfg.rawClock(), e.Src)
				assert.Equal(t, n.cfg.realtimeClock(), e.Dst)
				assert.Greater(t, e.At+e.Span/2, until, "each tells of later readings")
				until = e.At + e.Span/2
				assert.LessOrEqual(t, until, o.Reading)
			}
		}
	})
}
