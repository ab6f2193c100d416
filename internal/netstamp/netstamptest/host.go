// SPDX-License-Identifier: Apache-2.0

package netstamptest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// stampWithin is by when the stamp of a packet that was sent is handed out: replies that
// are quick come before it.
const stampWithin = time.Millisecond

// Host returns a machine on the network, whichever addresses it listens on.
func (n *Network) Host() netstamp.Host { return host{n} }

type host struct{ network *Network }

// NewPacer implements netstamp.Host.
func (host) NewPacer(rate float64) (*netstamp.Pacer, error) {
	return netstamp.NewPacerBy(bubbleTimer{}, rate)
}

type bubbleTimer struct{}

func (bubbleTimer) Now() int64         { return time.Now().UnixNano() }
func (bubbleTimer) SleepUntil(t int64) { time.Sleep(time.Duration(t - time.Now().UnixNano())) }

// Listen implements netstamp.Host.
func (h host) Listen(c netstamp.Config) (netstamp.PacketConn, error) {
	if c.Pairs == nil || c.Hardware || c.Device != "" {
		return nil, fmt.Errorf("listen on %v in memory: want pairs of clocks, and no device: %w", c.Addr, errors.ErrUnsupported)
	}
	conn := &conn{pairs: c.Pairs, events: make(chan event, maxEvents), closed: make(chan struct{})}
	var err error
	if conn.Port, err = h.network.Open(c.Addr, conn.arrived); err != nil {
		return nil, err
	}
	at := conn.LocalAddr()
	conn.rng = rand.New(rand.NewPCG(h.network.seed, uint64(at.Port())))
	return conn, nil
}

// maxEvents is how many packets and stamps a socket keeps for its program.
const maxEvents = 1 << 12

// conn is a socket whose packets the network stamps, as a kernel does.
type conn struct {
	*Port
	pairs  *netstamp.Pairs
	events chan event
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	rng      *rand.Rand
	next     uint32
	counters netstamp.Counters
	overflow atomic.Int64
}

// event is a packet that arrived, or one that left, at a true time.
type event struct {
	at   int64
	data []byte // nil: it left
	from netip.AddrPort
	id   uint32
}

// Fallback implements netstamp.PacketConn.
func (*conn) Fallback() string { return "" }

// Counters implements netstamp.PacketConn.
func (c *conn) Counters() netstamp.Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.counters
	all.Overflow = c.overflow.Load()
	return all
}

// Close implements netstamp.PacketConn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.Port.Close()
		close(c.closed)
	})
	return nil
}

func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Send implements netstamp.PacketConn.
func (c *conn) Send(b []byte, to netip.AddrPort) (id uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return 0, netstamp.ErrClosed
	}
	if len(b) == 0 || len(b) > netstamp.MaxPacket {
		c.counters.SendErrors++
		return 0, fmt.Errorf("send to %v: got %d bytes; want 1 to %d", to, len(b), netstamp.MaxPacket)
	}
	left := event{at: c.Port.Send(b, to), id: c.next}
	time.AfterFunc(time.Duration(c.rng.Int64N(int64(stampWithin))), func() { c.put(left) })
	c.next++
	c.counters.PacketsSent++
	return left.id, nil
}

func (c *conn) arrived(b []byte, from netip.AddrPort) {
	c.put(event{at: c.network.Now(), data: b, from: from})
}

func (c *conn) put(e event) {
	select {
	case c.events <- e:
	default:
		c.overflow.Add(1)
	}
}

// Run implements netstamp.PacketConn.
func (c *conn) Run(h netstamp.Handler) error {
	for {
		select {
		case <-c.closed:
			return nil
		case e := <-c.events:
			if !c.isClosed() {
				c.handle(e, h)
			}
		}
	}
}

func (c *conn) handle(e event, h netstamp.Handler) {
	c.pairs.Read() // after the stamp was taken
	s := c.pairs.StampOf(e.at, stamp.KindKernel)
	c.count(&e, s)
	switch {
	case e.data != nil:
		h.Received(e.data, e.from, s, 64)
	case s.OK():
		h.Sent(e.id, s)
	}
}

func (c *conn) count(e *event, s stamp.Stamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.data != nil:
		c.counters.PacketsReceived++
		c.counters.ReceivedStamps[s.Kind]++
		if !s.OK() {
			c.counters.ReceivedDropped++
		}
	case s.OK():
		c.counters.SentStamps[s.Kind]++
	default:
		c.counters.SentDropped++
	}
}
