// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// switchAnswers is what a switch does that speaks STAMP and not our TLV: the base packet, with
// its time of day.
func switchAnswers(request []byte) []byte {
	in, err := stamp.DecodeRequest(request, nil)
	if err != nil {
		return nil
	}
	now := stamp.PTP(time.Now().UnixNano())
	out := stamp.Reply{
		Seq: in.Seq, SSID: in.SSID, Error: stamp.Estimate(1), Received: now, Time: now,
		SenderSeq: in.Seq, SenderTime: in.Time, SenderError: in.Error, SenderTTL: 64,
	}
	return out.Append(nil, nil)
}

func TestReflectorsOfOthersHaveAClockOfTheirOwn(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		n := w.node(0, list)
		other := mesh.Member{Node: "switch", Addr: addr(200)}
		w.serve(t, other.Addr, switchAnswers)
		list.set(n.member(), other)
		n.start(t)
		clock := "stamp:" + other.Addr.Addr().String() + "/realtime"
		n.some(t, "an estimate of its time of day", func(o Outcome) bool { return estimated(o, clock) })
		for _, o := range n.outcomes() {
			for _, e := range o.Edges {
				if e.Dst != clock {
					continue
				}
				at, ok := n.clock.TrueOfRaw(e.At)
				require.True(t, ok)
				truth := at - e.At // its clock is this machine's, which is true time
				assert.LessOrEqual(t, e.Lower, truth)
				assert.GreaterOrEqual(t, e.Upper, truth)
				assert.Equal(t, model.StampUser, e.Stamps)
			}
		}
	})
}

func TestHostileAnswersAreRefusedAndBounded(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		n := w.node(0, list)
		names := mesh.Member{Node: "names", Addr: addr(201)}
		echo := mesh.Member{Node: "echo", Addr: addr(202)}
		noise := mesh.Member{Node: "noise", Addr: addr(203)}
		var lives atomic.Int64
		w.serve(t, names.Addr, func(request []byte) []byte { // another clock with each packet
			clock := stamp.Clock{ID: "host:x/" + time.Unix(lives.Add(1), 0).UTC().Format("150405") + "/raw", Received: 1, ReceivedKind: stamp.KindKernel}
			tlvs, err := stamp.TLVs(nil).AppendClock(&clock)
			if err != nil {
				return nil
			}
			tlvs[0] = 0 // recognized
			in, err := stamp.DecodeRequest(request, nil)
			if err != nil {
				return nil
			}
			out := stamp.Reply{
				Seq: in.Seq, SSID: in.SSID, Error: stamp.Estimate(1), Received: stamp.PTP(1), Time: stamp.PTP(1),
				SenderSeq: in.Seq, SenderTime: in.Time, SenderError: in.Error, TLVs: tlvs,
			}
			return out.Append(nil, nil)
		})
		w.serve(t, echo.Addr, slices.Clone[[]byte])
		w.serve(t, noise.Addr, func([]byte) []byte { return make([]byte, 7) })
		list.set(n.member(), names, echo, noise)
		n.start(t)
		n.some(t, "names refused", func(o Outcome) bool { return o.Counters["clock.many"] > 0 })
		n.some(t, "short replies refused", func(o Outcome) bool { return o.Counters["sender.short"] > 0 })
		n.some(t, "echoed requests refused or of no use", func(o Outcome) bool {
			return slices.ContainsFunc(o.Trips, func(s TripStats) bool { return s.Dst == endPoint(noise) && s.Unanswered > 0 })
		})
		n.Close()
		assert.LessOrEqual(t, n.clocks.pairs.Len(), 1, "one boot at a time")
	})
}

func TestANodeWithTwoAddressesHasOneClock(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		b.cfg.Locals = append(b.cfg.Locals, addr(120))
		list.set(a.member(), b.member(), mesh.Member{Node: "b", Addr: b.cfg.Locals[1]})
		a.start(t)
		b.start(t)
		a.some(t, "both addresses, one edge", func(o Outcome) bool {
			edges := 0
			for _, e := range o.Edges {
				if e.Dst == "host:b/1/raw" && e.Sigma > 0 {
					edges++
				}
			}
			dst := map[string]bool{}
			for _, p := range o.Paths {
				if len(p.Delays) > 0 {
					dst[p.Dst] = true
				}
			}
			return edges == 1 && dst[endPoint(b.member())] && dst["b/"+b.cfg.Locals[1].Addr().String()]
		})
		b.some(t, "it probes from both", func(o Outcome) bool { return o.Neighbours == 2 && estimated(o, "host:a/1/raw") })
		for _, o := range append(a.outcomes(), b.outcomes()...) {
			assert.Zero(t, o.Counters["clock.other_owner"]+o.Counters["clock.own"]+o.Counters["clock.many"])
		}
	})
}

func TestOwnAddressesOfAnyNameAreNotProbed(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		a.cfg.Locals = append(a.cfg.Locals, addr(121))
		byName := func(at netip.AddrPort) mesh.Member { return mesh.Member{Node: at.Addr().String(), Addr: at} }
		// As DNS lists them:
		list.set(byName(a.cfg.Locals[0]), byName(a.cfg.Locals[1]), byName(b.cfg.Locals[0]))
		a.start(t)
		b.start(t)
		a.some(t, "b alone", func(o Outcome) bool { return o.Neighbours == 2 && estimated(o, "host:b/1/raw") })
		for _, o := range a.outcomes() {
			assert.Zero(t, o.Counters["clock.own"])
		}
	})
}

func TestStartFailsWithoutALeak(t *testing.T) {
	list := &members{}
	n := newTestNode(0, list)
	list.set(n.member())
	n.cfg.Locals = append(n.cfg.Locals, netip.MustParseAddrPort("192.0.2.1:28862")) // not ours
	node, err := New(n.cfg)
	require.NoError(t, err)
	require.ErrorContains(t, node.Start(), "192.0.2.1:28862")
	require.NoError(t, node.Close())
	n.cfg.Locals = n.cfg.Locals[:1]
	n.start(t) // the address is free again
}

func TestConfigIsChecked(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"check node id: got none":                                 func(c *Config) { c.NodeID = "" },
		"check host id and boot id: got \"\" and \"1\"":           func(c *Config) { c.HostID = "" },
		"check host id and boot id: got \"a/b\"":                  func(c *Config) { c.HostID = "a/b" },
		"check host id and boot id: got \"ä\"":                    func(c *Config) { c.HostID = "ä" },
		"check host id and boot id: got \"a\" and \"1/2\"":        func(c *Config) { c.BootID = "1/2" },
		"check end points: got 0; want 1 to 64":                   func(c *Config) { c.Locals = nil },
		"check end point: got 0.0.0.0:28862; want one":            func(c *Config) { c.Locals[0] = netip.MustParseAddrPort("0.0.0.0:28862") },
		"check end point: got " + loopback(1).String() + " twice": func(c *Config) { c.Locals = append(c.Locals, c.Locals[0]) },
		"check peers: got no source":                              func(c *Config) { c.Peers = nil },
		"check neighbours: got 65; want 1 to 64":                  func(c *Config) { c.K = 65 },
		"check rate: got 2001 packets/s; want 0.1 to 2000":        func(c *Config) { c.Rate = 2001 },
		"check paths: got -1; want 1 to 16":                       func(c *Config) { c.Paths = -1 },
		"check window: got 1m1s; want 100ms to 1m0s":              func(c *Config) { c.Window = 61 * time.Second },
		"check tolerance: got -1ns; want 0 or more":               func(c *Config) { c.Tolerance = -1 },
		"check clocks: got a limit of -1; want at least 1":        func(c *Config) { c.MaxClocks = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			n := newTestNode(0, &members{})
			spoil(&n.cfg)
			_, err := New(n.cfg)
			assert.ErrorContains(t, err, want)
		})
	}
}

func TestRareProbesUseFewPaths(t *testing.T) {
	for rate, want := range map[float64]int{0.1: 1, 1: 1, 3.9: 1, 4: 2, 10: 4, 1000: 4} {
		c := Config{Rate: rate}.withDefaults()
		assert.Equal(t, want, c.paths(), "%v", rate)
		interval := time.Duration(2 * float64(want) / rate * float64(time.Second))
		assert.Greater(t, c.patience(), 2*interval, "a stamp comes with the next pair, or the one after")
		assert.GreaterOrEqual(t, float64(c.pending()), rate/float64(want)*c.patience().Seconds())
	}
}

// TestTwoMachinesOfOneImage: they share an id and no boot, so that what each says is of
// a clock of its own; others cannot tell which of both the id means.
func TestTwoMachinesOfOneImage(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		_, nodes := w.mesh3(t, func(i int, n *testNode) {
			if i == 2 {
				n.cfg.HostID, n.cfg.BootID = "b", "2"
			}
		})
		a := nodes[0]
		a.some(t, "both are refused", func(o Outcome) bool { return o.Counters["clock.other_owner"] > 0 })
		for _, n := range nodes[1:] {
			n.some(t, "our own id refused", func(o Outcome) bool { return o.Counters["clock.own"] > 0 })
			assert.Positive(t, measured(t, n, a, n.windows(t, 5)), "all but the other one")
			for _, o := range n.outcomes() {
				assert.Zero(t, o.Counters["clock.edges_withheld"])
			}
		}
		for _, o := range a.windows(t, 3) {
			assert.False(t, slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool { return e.Source == model.EdgeProbe }))
		}
	})
}

func TestHostileRequestsAreNotAnswered(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		key, err := stamp.NewKey([]byte("0123456789abcdef"))
		require.NoError(t, err)
		other, err := stamp.NewKey([]byte("fedcba9876543210"))
		require.NoError(t, err)
		list := &members{}
		n := w.node(0, list)
		n.cfg.Key = key
		list.set(n.member(), mesh.Member{Node: "hostile", Addr: addr(230)})
		n.start(t)
		n.some(t, "it knows the list", func(o Outcome) bool { return o.Neighbours == 1 })
		w.SetPath(addr(230).Addr(), addr(1).Addr(), perfect) // each packet arrives, once and in order
		w.SetPath(addr(1).Addr(), addr(230).Addr(), perfect)
		w.SetPath(addr(231).Addr(), addr(1).Addr(), perfect)
		var answers inbox
		stranger := w.open(t, addr(231), answers.receive)
		member := w.open(t, netip.AddrPortFrom(addr(230).Addr(), 0), answers.receive)
		request := func(seq uint32) *stamp.Request {
			return &stamp.Request{Seq: seq, Time: stamp.PTP(1), Error: stamp.Estimate(1), SSID: 1}
		}
		hostile := [][]byte{
			request(1).Append(nil, nil),                                        // not signed, and shorter for it
			request(2).Append(nil, other),                                      // signed by another
			request(3).Append(nil, key)[:stamp.BaseLenAuth-1],                  // cut
			append(request(4).Append(nil, key), make([]byte, stamp.MaxLen)...), // too long
			make([]byte, stamp.BaseLenAuth),
			{0},
		}
		good := request(5).Append(nil, key)
		stranger.Send(request(1).Append(nil, key), n.cfg.Locals[0]) // signed, and of no member's address
		for _, p := range hostile {
			member.Send(p, n.cfg.Locals[0])
		}
		for range 2 { // the second is a replay
			member.Send(good, n.cfg.Locals[0])
		}
		time.Sleep(time.Second)
		got := answers.packets()
		if len(got) != 1 {
			t.Fatalf("got %d answers; want one, to the good request", len(got))
		}
		reply, err := stamp.DecodeReply(got[0], key)
		require.NoError(t, err)
		assert.Equal(t, uint32(5), reply.SenderSeq)
		assert.Len(t, got[0], len(good), "no longer than its request")
		n.some(t, "each counted under its reason", func(o Outcome) bool {
			c := o.Counters
			return c["reflector.forged"] == 2 && c["reflector.short"] == 3 && c["reflector.long"] == 1 &&
				c["reflector.replayed"] == 1 && c["reflector.stranger"] == 1 && c["reflector.replies"] == 1
		})
	})
}
