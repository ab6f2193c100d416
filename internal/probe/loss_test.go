package probe

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mesh"
)

// relay stands between a node and its peer and treats packets badly, by their
// numbers: of 40 requests, number 10 is dropped, the reply to number 20 is, and
// number 30 is overtaken by the next.
type relay struct {
	conn *net.UDPConn
	peer netip.AddrPort
	done sync.WaitGroup

	mu                      sync.Mutex
	calm                    bool                        // pass everything
	change                  func(reply []byte) [][]byte // what is sent instead
	clients                 map[netip.AddrPort]*net.UDPConn
	droppedOut, droppedBack int64
	overtaken               int64
	held                    map[netip.AddrPort][]byte
}

func newRelay(t *testing.T, at, peer netip.AddrPort) *relay {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	require.NoError(t, err)
	r := &relay{conn: conn, peer: peer, clients: map[netip.AddrPort]*net.UDPConn{}, held: map[netip.AddrPort][]byte{}}
	r.done.Go(r.run)
	t.Cleanup(func() {
		conn.Close()
		r.mu.Lock()
		for _, c := range r.clients {
			c.Close()
		}
		r.mu.Unlock()
		r.done.Wait()
	})
	return r
}

func (r *relay) run() {
	buf := make([]byte, 2048)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		r.request(buf[:n], from)
	}
}

func (r *relay) request(packet []byte, from netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[from]
	if c == nil {
		var err error
		if c, err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from.Addr(), 0)), net.UDPAddrFromAddrPort(r.peer)); err != nil {
			return
		}
		r.clients[from] = c
		r.done.Go(func() { r.replies(c, from) })
	}
	seq := binary.BigEndian.Uint32(packet)
	switch {
	case !r.calm && seq%40 == 10:
		r.droppedOut++
		return
	case !r.calm && seq%40 == 30:
		r.held[from] = append([]byte(nil), packet...)
		return
	}
	_, _ = c.Write(packet)
	if held := r.held[from]; held != nil {
		delete(r.held, from)
		r.overtaken++
		_, _ = c.Write(held)
	}
}

func (r *relay) replies(c *net.UDPConn, to netip.AddrPort) {
	buf := make([]byte, 2048)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		r.mu.Lock()
		drop := !r.calm && binary.BigEndian.Uint32(buf[24:])%40 == 20 // the sender's number, in a reply
		if drop {
			r.droppedBack++
		}
		replies := [][]byte{buf[:n]}
		if r.change != nil {
			replies = r.change(buf[:n])
		}
		r.mu.Unlock()
		for _, b := range replies {
			if !drop {
				_, _ = r.conn.WriteToUDPAddrPort(b, to)
			}
		}
	}
}

func TestLossHasADirection(t *testing.T) {
	list := &members{}
	a, b := newTestNode(0, list), newTestNode(1, list)
	between := mesh.Member{Node: "b", Addr: loopback(210)}
	r := newRelay(t, between.Addr, b.cfg.Locals[0])
	b.cfg.Peers = &members{all: []mesh.Member{a.member(), b.member()}} // it answers a, past the relay
	list.set(a.member(), between)
	b.start(t)
	a.start(t)
	a.some(t, "a measurement through the relay", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
	var got [4]int64 // lost out, lost back, reordered out, unanswered
	sum := func() {
		got = [4]int64{}
		for _, o := range a.outcomes() {
			for _, p := range o.Paths {
				if p.Dst == endPoint(between) {
					got[0] += p.Lost
					got[2] += p.Reordered
				} else {
					got[1] += p.Lost
				}
			}
			for _, s := range o.Trips {
				got[3] += s.Unanswered
			}
		}
	}
	require.Eventually(t, func() bool { sum(); return got[0] > 5 && got[1] > 5 && got[2] > 0 }, 30*time.Second, 50*time.Millisecond)
	r.mu.Lock()
	r.calm = true
	out, back, overtaken := r.droppedOut, r.droppedBack, r.overtaken
	r.mu.Unlock()
	require.Eventually(t, func() bool { sum(); return got[0] >= out && got[1] >= back }, 30*time.Second, 50*time.Millisecond,
		"every packet that was dropped, by its direction")
	assert.GreaterOrEqual(t, got[3], out+back)
	all := a.outcomes()
	// On a busy machine, a reply may come after it was given up.
	assert.LessOrEqual(t, got[0]+got[1], out+back+all[len(all)-1].Counters["sender.late"], "and nothing else")
	assert.LessOrEqual(t, got[2], overtaken+1, "and only those that were overtaken; one may have been since")
}
