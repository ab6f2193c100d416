// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// stampedTrip is a trip with all four readings, each to 10 ns.
func stampedTrip(t1, t2, t3, t4 int64) trip {
	at := func(raw int64) stamp.Stamp { return stamp.Stamp{Raw: raw, Kind: stamp.KindKernel, Width: 10} }
	return trip{sent: t1, out: newLeg(at(t1), at(t2)), back: newLeg(at(t4), at(t3)), roundTrip: -1}
}

func TestATripIsJudgedByItself(t *testing.T) {
	const ahead = 1_000_000_000_000
	for name, c := range map[string]struct {
		trip      trip
		want      verdict
		roundTrip int64
	}{
		"as it should be":      {stampedTrip(0, ahead+1000, ahead+3000, 5000), sound, 3000},
		"the widths allow it":  {stampedTrip(0, ahead, ahead+5042, 5000), sound, 0},
		"held for too long":    {stampedTrip(0, ahead, ahead+5048, 5000), crossed, -1},
		"rates may differ":     {stampedTrip(0, ahead, ahead+1_000_900_000, 1_000_000_000), sound, 0},
		"by 1,000 ppm":         {stampedTrip(0, ahead, ahead+1_001_000_100, 1_000_000_000), crossed, -1},
		"left before it came":  {stampedTrip(0, ahead+1000, ahead-90_000, 5000), early, -1},
		"at the ends of int64": {stampedTrip(0, -farthest, farthest, 5000), crossed, -1},
		"one stamp is missing": {trip{out: leg{ok: true, peer: 9}, roundTrip: -1}, sound, -1},
	} {
		assert.Equal(t, c.want, c.trip.judge(), name)
		assert.Equal(t, c.roundTrip, c.trip.roundTrip, name)
	}
}

func TestReadingsBeyondReachAreRefused(t *testing.T) {
	for _, raw := range []int64{math.MinInt64, math.MaxInt64, farthest + 1, -farthest - 1} {
		s := &session{count: &counts{}, byClock: map[string]*heard{}}
		s.done = []stamp.Exchange{{
			PeerClock: "host:b/1/raw",
			T1:        stamp.Stamp{Raw: 1, Kind: stamp.KindKernel}, T2: stamp.Stamp{Raw: raw, Kind: stamp.KindKernel},
		}}
		s.keep()
		assert.Empty(t, s.byClock["host:b/1/raw"].trips)
		assert.Equal(t, int64(1), s.count.farReadings.Load())
	}
	a, b := leg{peer: -farthest}, leg{peer: farthest, ours: 1_000_000}
	assert.Positive(t, spacing(&a, &b))
	assert.Positive(t, spacing(&b, &a))
}

// judged returns the edges of a window of ten trips a peer, so many of them crossed by
// a receive stamp that is 1 ms early.
func judged(c *clocks, window int64, wrong int, peers ...string) []model.ClockEdge {
	return judgedAs(c, window, func(i int, x *stamp.Exchange) {
		if i < wrong {
			x.T2.Raw -= 1_000_000
		}
	}, peers...)
}

// judgedAs is judged with exchanges that were changed.
func judgedAs(c *clocks, window int64, change func(i int, x *stamp.Exchange), peers ...string) []model.ClockEdge {
	const ahead = 1_000_000_000
	start := 1_000_000_000_000 + window*int64(c.cfg.Window)
	var paths []pathTrips
	for _, peer := range peers {
		s := &session{
			from: "a/10.0.0.1", peer: mesh.Member{Node: peer}, ownClock: c.cfg.rawClock(), count: c.count, byClock: map[string]*heard{},
			sender: mustSender(),
		}
		for i := range 10 {
			at := start + int64(i)*10_000_000
			x := stamp.Exchange{Seq: uint32(i), PeerClock: "host:" + peer + "/1/raw"}
			for to, raw := range map[*stamp.Stamp]int64{&x.T1: at, &x.T2: at + ahead + 10_000, &x.T3: at + ahead + 30_000, &x.T4: at + 40_000} {
				*to = stamp.Stamp{Raw: raw, Kind: stamp.KindKernel, Width: 10}
			}
			change(i, &x)
			s.done = append(s.done, x)
		}
		s.keep()
		s.done = nil
		paths = append(paths, s.take(start+int64(c.cfg.Window))...)
	}
	edges, _, _ := c.judge(start+int64(c.cfg.Window), paths)
	return edges
}

func mustSender() *stamp.Sender {
	s, err := stamp.NewSender(stamp.SenderConfig{})
	if err != nil {
		panic(err)
	}
	return s
}

func testClocks() *clocks {
	cfg := Config{HostID: "a", BootID: "1", Window: 2 * time.Second}.withDefaults()
	return newClocks(&cfg, &counts{})
}

// TestCrossedTripsAreTold: the graph refuses the edge that tells of them, remembers
// who was part of it, and cuts off who was part of three.
func TestCrossedTripsAreTold(t *testing.T) {
	solver := graph.New(graph.Options{})
	refused := 0
	// Three honest nodes see one another, and that what node d receives it stamps too early.
	for self, others := range map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}} {
		cfg := Config{HostID: self, BootID: "1", Window: 2 * time.Second}.withDefaults()
		c := newClocks(&cfg, &counts{})
		for window := range int64(4) {
			for _, e := range judged(c, window, 10, "d") {
				require.ErrorContains(t, solver.Add(e), "lower bound above the upper")
				assert.Equal(t, int64(10), e.Samples)
				assert.Equal(t, int64(1_000_000-20_000-40), e.Lower-e.Upper, "1 ms less what was under way and the widths")
				assert.Equal(t, "host:d/1/raw", e.Dst)
				refused++
			}
			assert.Equal(t, 10*(window+1), c.count.crossed.Load())
		}
		for _, e := range judged(c, 4, 0, others...) {
			e.At = 1_000_000_000_000
			require.NoError(t, solver.Add(e))
		}
	}
	assert.Equal(t, 12, refused, "one for each window")
	solution := solver.Solve()
	for _, m := range solution.Models() {
		assert.Equal(t, m.Clock == "host:d/1/raw", m.Untrusted, m.Clock)
	}
	d, ok := solution.Model("host:d/1/raw")
	require.True(t, ok)
	assert.Len(t, d.Evidence, 3)
}

func TestFewCrossedTripsAreNotTold(t *testing.T) {
	c := testClocks()
	for window := range int64(20) {
		for _, e := range judged(c, window, 1, "b") {
			assert.LessOrEqual(t, e.Lower, e.Upper, "one in ten")
		}
	}
	assert.Equal(t, int64(20), c.count.crossed.Load(), "but counted")
	crossedEdges := func(wrong int) (n int) {
		c := testClocks()
		edges := judged(c, 0, wrong, "b")
		for i, e := range edges {
			if e.Lower > e.Upper {
				n++
				assert.Equal(t, len(edges)-1, i, "behind the ordinary one, which would take it back")
			}
		}
		return n
	}
	assert.Equal(t, 0, crossedEdges(2))
	assert.Equal(t, 1, crossedEdges(3))
}

// TestCrossedTripsMoveNothing: they are neither evidence nor round trips, and count as
// answered.
func TestCrossedTripsMoveNothing(t *testing.T) {
	c := testClocks()
	for window := range int64(4) {
		for _, e := range judged(c, window, 4, "b") {
			if e.Lower <= e.Upper {
				assert.LessOrEqual(t, e.Lower, int64(1_000_000_000))
				assert.GreaterOrEqual(t, e.Upper, int64(1_000_000_000))
			}
		}
	}
	for _, held := range c.waits {
		for _, l := range held.out {
			assert.Equal(t, int64(1_000_010_000), l.peer-l.ours)
		}
	}
}

func TestRareTripsAreWeighedOverWindows(t *testing.T) {
	var r record
	for range 2 {
		assert.False(t, r.wrong())
		r.add(2, 2) // one probe a second
	}
	assert.True(t, r.wrong())
	for range 4 {
		r.add(20, 0)
	}
	assert.False(t, r.wrong(), "it is over")
}

// TestWhoRepeatsOurNameIsNoRival: a reflector that only sends back what it is sent says
// our name, but knows no reading.
func TestWhoRepeatsOurNameIsNoRival(t *testing.T) {
	c := testClocks()
	echo := pathTrips{node: "e", answered: 3, trips: make([]trip, 3)}
	echo.clocks = clockPair{own: c.cfg.rawClock(), peer: c.cfg.rawClock()}
	c.judge(1e15, []pathTrips{echo})
	assert.Zero(t, c.owners.rivals.Len())
	assert.Equal(t, int64(3), c.count.ownClock.Load())
}

// TestOfTwoThatSayTheSameNeitherCounts: whoever comes first, and what is known from
// before.
func TestOfTwoThatSayTheSameNeitherCounts(t *testing.T) {
	c := testClocks()
	var warned []error
	c.cfg.Warn = func(err error) { warned = append(warned, err) }
	judged(c, 0, 0, "b")
	require.Equal(t, 1, c.pairs.Len())
	same := func(node string) pathTrips {
		at := clockPair{own: c.cfg.rawClock(), peer: "host:b/1/raw"}
		return pathTrips{pathKey: pathKey{from: "a", to: node, clocks: at}, node: node, answered: 1, trips: []trip{stampedTrip(0, 5, 6, 9)}}
	}
	edges, _, _ := c.judge(2e12, []pathTrips{same("b"), same("liar")})
	assert.Empty(t, edges)
	assert.Zero(t, c.pairs.Len(), "what was known may be of either")
	c.judge(3e12, []pathTrips{same("liar"), same("b")})
	assert.Equal(t, int64(4), c.count.otherOwner.Load())
	require.Len(t, warned, 1, "once")
	assert.ErrorContains(t, warned[0], `check clock host:b/1/raw: nodes "b" and "liar" both say`)
}

// TestRefusedTLVsMakeNoClock: a peer whose TLVs were spoilt or taken away is not a
// reflector of others, and one that takes a name that only we give is nobody.
func TestRefusedTLVsMakeNoClock(t *testing.T) {
	unix := stamp.Stamp{Unix: 1_700_000_000_000_000_000}
	kernel := stamp.Stamp{Raw: 1, Kind: stamp.KindKernel}
	for name, x := range map[string]stamp.Exchange{
		"spoilt":        {T1: kernel, T2: unix, T3: unix, T4: kernel, Faulty: true},
		"the switch's":  {T1: kernel, T2: kernel, T3: kernel, T4: kernel, PeerClock: "stamp:10.0.0.1/realtime"},
		"a realtime":    {T1: kernel, T2: kernel, T3: kernel, T4: kernel, PeerClock: "host:b/1/realtime"},
		"of no packets": {T1: kernel, T2: kernel, T3: kernel, T4: kernel, PeerClock: "service:checkout/realtime"},
	} {
		s := &session{peer: mesh.Member{Node: "b", Addr: loopback(1)}, count: &counts{}, byClock: map[string]*heard{}, sender: mustSender()}
		s.done = []stamp.Exchange{x}
		s.keep()
		s.done = nil
		paths := s.take(0)
		require.Len(t, paths, 1, name)
		assert.Empty(t, paths[0].clocks.peer, name)
		assert.Equal(t, int64(1), paths[0].sent, "answered it is")
		c := testClocks()
		c.judge(1e12, paths)
		assert.Zero(t, c.pairs.Len(), name)
		assert.Equal(t, int64(1), c.count.badClock.Load(), name)
	}
}

// A clock in use that is older than another one does not keep the other.
func TestClocks_IdleBehindOneInUse_IsForgotten(t *testing.T) {
	c := testClocks()
	judged(c, 0, 0, "in-use", "idle")
	for window := range int64(idleWindows) {
		require.Equal(t, 2, c.pairs.Len(), "after window %d", window)
		judged(c, window+1, 0, "in-use")
	}
	assert.Equal(t, 1, c.pairs.Len())
	assert.True(t, c.pairs.Has(clockPair{own: c.cfg.rawClock(), peer: "host:in-use/1/raw"}))
}
