// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netstamp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// Conn is a UDP socket. On this system the program stamps its packets. Send may
// be called from several goroutines; Run by one.
type Conn struct {
	udp   *net.UDPConn
	pairs *Pairs
	own   bool

	closed   atomic.Bool
	counters counters

	mu      sync.Mutex
	next    uint32
	start   time.Time
	pending pending
}

// Listen opens a socket.
func Listen(c Config) (*Conn, error) {
	if c.Device != "" || c.Hardware {
		return nil, fmt.Errorf("listen on %v: devices: %w", c.Addr, errors.ErrUnsupported)
	}
	network := "udp4"
	if c.Addr.Addr().Is6() {
		network = "udp6"
	}
	udp, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(c.Addr))
	if err != nil {
		return nil, fmt.Errorf("listen on %v: %w", c.Addr, err)
	}
	conn := &Conn{udp: udp, pairs: c.Pairs, start: time.Now()}
	if conn.pairs == nil {
		conn.pairs, conn.own = NewPairs(c.Clock), true
	}
	return conn, nil
}

// LocalAddr is where the socket listens.
func (c *Conn) LocalAddr() netip.AddrPort {
	a := c.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Fallback says why stamps are of a worse kind than was asked for.
func (c *Conn) Fallback() string { return "no kernel stamps: the system is not Linux" }

// Pairs is what carries this socket's stamps over.
func (c *Conn) Pairs() *Pairs { return c.pairs }

// Counters returns the counts so far.
func (c *Conn) Counters() Counters { return c.counters.snapshot() }

// Close ends Run, and makes Send fail. It must not be called from a Handler.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.udp.Close()
}

// Send sends b and returns the number by which Handler.Sent names the packet.
func (c *Conn) Send(b []byte, to netip.AddrPort) (id uint32, err error) {
	if len(b) == 0 || len(b) > MaxPacket {
		c.counters.sendErrors.Add(1)
		return 0, fmt.Errorf("send to %v: got %d bytes; want 1 to %d", to, len(b), MaxPacket)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return 0, ErrClosed
	}
	now := time.Now()
	if _, err := c.udp.WriteToUDPAddrPort(b, to); err != nil {
		c.counters.sendErrors.Add(1)
		return 0, fmt.Errorf("send to %v: %w", to, err)
	}
	id = c.next
	c.next++
	if c.pending.put(waiting{id: id, before: now.UnixNano(), since: now.Sub(c.start)}) {
		c.counters.pendingOverflow.Add(1)
	}
	c.counters.packetsSent.Add(1)
	_ = c.udp.SetReadDeadline(now) // Run gives the stamp
	return id, nil
}

// Run hands what passes to h until Close, when it returns nil.
func (c *Conn) Run(h Handler) error {
	if c.own {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { c.pairs.Run(ctx) })
		defer wg.Wait()
		defer cancel()
	}
	buffer := make([]byte, MaxPacket+1)
	for !c.closed.Load() {
		_ = c.udp.SetReadDeadline(time.Now().Add(ReadEvery))
		n, from, err := c.udp.ReadFromUDPAddrPort(buffer)
		switch {
		case c.closed.Load():
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return fmt.Errorf("receive on %v: %w", c.LocalAddr(), err)
		default:
			c.received(buffer[:n], from, h)
		}
		c.sent(h)
	}
	return nil
}

func (c *Conn) received(b []byte, from netip.AddrPort, h Handler) {
	if len(b) > MaxPacket {
		c.counters.truncated.Add(1)
		return
	}
	c.counters.packetsReceived.Add(1)
	now := time.Now().UnixNano()
	c.pairs.Read()
	s := c.pairs.StampOf(now, stamp.KindUser)
	c.counters.receivedStamps[s.Kind].Add(1)
	h.Received(b, netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), s, 0)
}

func (c *Conn) sent(h Handler) {
	limit := time.Since(c.start)
	c.pairs.Read() // after all of these were sent
	for {
		c.mu.Lock()
		w, ok := c.pending.expired(limit, c.next)
		c.mu.Unlock()
		if !ok {
			return
		}
		if s := c.pairs.StampOf(w.before, stamp.KindUser); s.Kind != stamp.KindNone {
			c.counters.sentStamps[s.Kind].Add(1)
			h.Sent(w.id, s)
		} else {
			c.counters.sentDropped.Add(1)
		}
	}
}
