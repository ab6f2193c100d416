// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/netstamp/netstamptest"
)

// world is a network in memory, in a bubble in which windows take no time.
type world struct{ *netstamptest.Network }

// harsh is what paths are like where a test says nothing else.
var harsh = netstamptest.Path{Delay: 90 * time.Microsecond, Jitter: 20 * time.Microsecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01}

// perfect is a wire.
var perfect = netstamptest.Path{Delay: 50 * time.Microsecond}

// inMemory runs a test on a network in memory. Among the first addresses, no two
// directions take equally long.
func inMemory(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{netstamptest.New(1, harsh)}
		for from := range 8 {
			for to := range 8 {
				path := harsh
				path.Delay = time.Duration(40+30*from+11*to) * time.Microsecond
				w.SetPath(addr(from).Addr(), addr(to).Addr(), path)
			}
		}
		test(t, w)
	})
}

// addr is end point i on a network in memory.
func addr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 28862)
}

// node makes node i on the network.
func (w *world) node(i int, source mesh.Source) *testNode {
	n := newNode(i, source, addr(i+1), func(at, rawAt, realtimeAt int64, raw, realtime []netstamp.Change) *netstamp.Skewed {
		return netstamp.NewSkewedBy(w.Now, at, rawAt, realtimeAt, raw, realtime)
	})
	n.cfg.Host = w.Host()
	return n
}

// mesh3 starts three nodes that probe each other.
func (w *world) mesh3(t *testing.T, change func(i int, n *testNode)) (*members, []*testNode) {
	t.Helper()
	list := &members{}
	var nodes []*testNode
	var all []mesh.Member
	for i := range 3 {
		n := w.node(i, list)
		if change != nil {
			change(i, n)
		}
		nodes = append(nodes, n)
		all = append(all, n.member())
	}
	list.set(all...)
	for _, n := range nodes {
		n.start(t)
	}
	return list, nodes
}

// open takes a port until the test is over.
func (w *world) open(t *testing.T, at netip.AddrPort, receive func(b []byte, from netip.AddrPort)) *netstamptest.Port {
	t.Helper()
	p, err := w.Open(at, receive)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// serve answers packets until the test is over, or the port is closed.
func (w *world) serve(t *testing.T, at netip.AddrPort, answer func(request []byte) []byte) *netstamptest.Port {
	t.Helper()
	var p *netstamptest.Port
	p = w.open(t, at, func(b []byte, from netip.AddrPort) {
		if reply := answer(b); reply != nil {
			p.Send(reply, from)
		}
	})
	return p
}

// inbox keeps packets.
type inbox struct {
	mu  sync.Mutex
	all [][]byte
}

func (i *inbox) receive(b []byte, _ netip.AddrPort) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, b)
}

func (i *inbox) packets() [][]byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.all
}
