// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// perjurer is a member with the key that lies in every field of what it answers and
// asks, by chance, mostly with one field at a time so that the rest is believed.
type perjurer struct {
	mu    sync.Mutex
	rng   *rand.Rand
	key   *stamp.Key
	names []string
	old   [][]byte // replies of before
	seq   uint32
}

func newPerjurer(seed uint64, key *stamp.Key, names ...string) *perjurer {
	return &perjurer{rng: rand.New(rand.NewPCG(seed, 0x11a5)), key: key, names: names}
}

func (p *perjurer) one(in int) bool { return p.rng.IntN(in) == 0 }

// time is a reading of any size, the likely ones more often.
func (p *perjurer) time() int64 {
	switch p.rng.IntN(8) {
	case 0:
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, farthest, -farthest, farthest + 1}[p.rng.IntN(8)]
	case 1:
		return int64(p.rng.Uint64())
	default:
		return time.Now().UnixNano() + p.rng.Int64N(4e9) - 2e9
	}
}

func (p *perjurer) width() uint32 {
	return []uint32{0, 1, 100, 1_000_000, math.MaxUint32, p.rng.Uint32()}[p.rng.IntN(6)]
}

func (p *perjurer) near(seq uint32) uint32 {
	if p.one(8) {
		return p.rng.Uint32()
	}
	return seq - 4 + p.rng.Uint32N(8)
}

func (p *perjurer) clock(seq uint32) stamp.Clock {
	c := stamp.Clock{
		Flags: stamp.ClockStateful, Instance: 7, ID: p.names[0], Received: time.Now().UnixNano(), ReceivedKind: stamp.KindKernel,
		Path: uint8(p.rng.Uint32()), Pair: p.near(seq), Count: uint8(p.rng.IntN(stamp.MaxFollows + 1)),
	}
	if p.one(4) {
		c.ID = p.names[p.rng.IntN(len(p.names))]
	}
	if p.one(4) {
		c.Flags = uint8(p.rng.Uint32())
	}
	if p.one(4) {
		c.Instance = p.rng.Uint32N(3)
	}
	if p.one(3) {
		c.Received, c.ReceivedKind, c.ReceivedWidth = p.time(), uint8(p.rng.IntN(6)), p.width()
	}
	for i := range c.Follows[:c.Count] {
		c.Follows[i] = stamp.Follow{Seq: p.near(seq), Sent: p.time(), Kind: uint8(p.rng.IntN(4)), Width: p.width()}
	}
	return c
}

func (p *perjurer) tlvs(seq uint32, reply bool) (t stamp.TLVs) {
	for range 1 + p.rng.IntN(2)*p.rng.IntN(3) {
		at := len(t)
		switch p.rng.IntN(6) {
		case 0:
			t = t.AppendFollowUp()
		case 1:
			t, _ = t.Append(uint8(p.rng.Uint32()), make([]byte, p.rng.IntN(40)))
		default:
			c := p.clock(seq)
			t, _ = t.AppendClock(&c)
		}
		if reply && !p.one(16) {
			t[at] = 0 // understood
		}
	}
	for range p.rng.IntN(2) * p.rng.IntN(4) {
		t[p.rng.IntN(len(t))] = uint8(p.rng.Uint32())
	}
	return t
}

// answer lies to who asks.
func (p *perjurer) answer(request []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, err := stamp.DecodeRequest(request, p.key)
	if err != nil {
		return nil
	}
	switch {
	case p.one(20):
		return nil
	case p.one(20) && len(p.old) > 0:
		return p.old[p.rng.IntN(len(p.old))]
	case p.one(40):
		return request
	}
	p.seq++
	out := stamp.Reply{
		Seq: p.seq, SSID: in.SSID, Error: stamp.Estimate(1), Received: stamp.PTP(time.Now().UnixNano()), Time: stamp.PTP(time.Now().UnixNano()),
		SenderSeq: in.Seq, SenderTime: in.Time, SenderError: in.Error, SenderTTL: uint8(p.rng.Uint32()),
	}
	for _, lie := range []func(){
		func() { out.Seq = p.near(p.seq) },
		func() { out.SSID = uint16(p.rng.Uint32()) },
		func() { out.Error = stamp.ErrorEstimate(p.rng.Uint32()) },
		func() { out.Received, out.Time = stamp.PTP(p.time()), stamp.PTP(p.time()) },
		func() { out.SenderSeq = p.near(in.Seq) },
		func() { out.SenderTime = stamp.PTP(p.time()) },
	} {
		if p.one(12) {
			lie()
		}
	}
	if !p.one(10) {
		out.TLVs = p.tlvs(p.seq, true)
	}
	b := out.Append(nil, p.key)
	if len(p.old) < 64 {
		p.old = append(p.old, b)
	}
	return b
}

// ports are eight of an address.
func (w *world) ports(t *testing.T, from netip.Addr) (ports [8]*netstamptest.Port) {
	t.Helper()
	for i := range ports {
		ports[i] = w.open(t, netip.AddrPortFrom(from, 0), func([]byte, netip.AddrPort) {})
	}
	return ports
}

// ask sends requests of any kind until it is told to stop.
func (p *perjurer) ask(ports [8]*netstamptest.Port, to netip.AddrPort, stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for n := uint32(0); ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		r := stamp.Request{Seq: p.near(n / 8), Time: stamp.PTP(p.time()), Error: stamp.ErrorEstimate(p.rng.Uint32()), SSID: uint16(p.rng.Uint32N(32)), TLVs: p.tlvs(n, false)}
		if p.one(8) {
			r.SSID = uint16(p.rng.Uint32())
		}
		b := r.Append(nil, p.key)
		port := ports[p.rng.IntN(len(ports))]
		p.mu.Unlock()
		port.Send(b, to)
	}
}

// TestAMemberThatLiesInEveryField: it has the key. Nothing grows beyond what one member
// may have, and what is said of the honest ones is true.
func TestAMemberThatLiesInEveryField(t *testing.T) {
	key, err := stamp.NewKey([]byte("0123456789abcdef"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		names []string
		// named: it also says that it is the others.
		named bool
	}{
		"of itself": {names: []string{"host:liar/1/raw", "host:liar/2/raw", "host:liar/3/raw", "", "x", "stamp:10.0.0.1/realtime", "host:liar/1/realtime"}},
		"of the others": {
			names: []string{"host:liar/1/raw", "host:a/1/raw", "host:b/1/raw", "host:b/2/raw", "host:a/2/raw", "host:other/1/raw"}, named: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, w *world) {
				for seed := range uint64(2) {
					list := &members{}
					a, b := w.node(0, list), w.node(1, list)
					a.cfg.Key, b.cfg.Key = key, key
					list.set(a.member(), b.member())
					b.start(t)
					a.start(t)
					a.some(t, "b is measured", func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) })
					liar := mesh.Member{Node: "liar", Addr: addr(213)}
					p := newPerjurer(seed, key, c.names...)
					silence := w.serve(t, liar.Addr, p.answer)
					list.set(a.member(), b.member(), liar)
					stop, done := make(chan struct{}), make(chan struct{})
					from := w.ports(t, liar.Addr.Addr())
					go func() {
						defer close(done)
						p.ask(from, a.cfg.Locals[0], stop)
					}()
					a.windows(t, idleWindows+5)
					close(stop)
					<-done
					during := a.outcomes()
					require.NoError(t, a.Close())
					require.NoError(t, b.Close())
					silence.Close()
					assertTrueOfHonest(t, a, b, during)
					assertNobodyElseAccused(t, during, b.outcomes())
					if !c.named {
						o := during[len(during)-5:]
						assert.True(t, slices.ContainsFunc(o, func(o Outcome) bool { return estimated(o, b.cfg.rawClock()) }), "b is measured on")
					}
					last := during[len(during)-1].Counters
					assert.Positive(t, last["sender.mismatched"]+last["sender.late"], "it was heard")
					assert.Positive(t, last["reflector.replayed"]+last["reflector.future"])
					assertSmall(t, a)
				}
			})
		})
	}
}

func assertTrueOfHonest(t *testing.T, a, b *testNode, windows []Outcome) {
	t.Helper()
	for _, o := range windows {
		for _, e := range o.Edges {
			if e.Source != model.EdgeProbe || e.Dst != b.cfg.rawClock() {
				continue
			}
			at, ok := a.clock.TrueOfRaw(e.At)
			require.True(t, ok)
			truth := netstamp.Offset(a.clock, b.clock, at)
			require.LessOrEqual(t, e.Lower, truth)
			require.GreaterOrEqual(t, e.Upper, truth)
		}
	}
}

// assertNobodyElseAccused solves what both say, as a gateway does.
func assertNobodyElseAccused(t *testing.T, of ...[]Outcome) {
	t.Helper()
	solver := graph.New(graph.Options{})
	all := slices.Concat(of...)
	slices.SortFunc(all, func(x, y Outcome) int { return x.Until.Compare(y.Until) })
	taken := 0
	for _, o := range all {
		for _, e := range o.Edges {
			if solver.Add(e) == nil {
				taken++
			}
		}
		for _, m := range solver.Solve().Models() {
			require.False(t, m.Untrusted && !strings.HasPrefix(m.Clock, "host:liar/"), m.Clock)
		}
	}
	assert.Positive(t, taken)
}

// assertSmall checks what a node that was closed keeps, with two neighbours on two paths.
func assertSmall(t *testing.T, n *testNode) {
	t.Helper()
	c := n.clocks
	assert.LessOrEqual(t, c.pairs.Len(), 2+1, "b, the liar, and its address as a reflector of others")
	assert.LessOrEqual(t, len(c.owners.hosts), 2+1+1, "and a host that it was before")
	assert.LessOrEqual(t, c.owners.nodes.Len(), 2)
	assert.LessOrEqual(t, c.owners.rivals.Len(), 1)
	assert.LessOrEqual(t, len(c.warned), 4)
	assert.LessOrEqual(t, len(c.waits), 2*2*4)
	for key, w := range c.waits {
		assert.LessOrEqual(t, len(w.out)+len(w.back), 2*maxTrips, "%v", key)
	}
	for _, target := range n.targets {
		for _, s := range target.sessions {
			assert.LessOrEqual(t, len(s.byClock), clocksPerPeer)
			assert.LessOrEqual(t, s.held, maxTrips)
		}
	}
	assert.LessOrEqual(t, len(n.count.culprits.by), 16)
}
