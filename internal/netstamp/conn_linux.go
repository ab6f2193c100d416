// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

const (
	// missingAfter is when a transmit stamp that did not come is given up. Queues
	// of a sending host are shorter.
	missingAfter = 200 * time.Millisecond
	// receiveBuffer bounds what the kernel keeps for us, error queue included.
	receiveBuffer = 1 << 20
)

// Conn is a UDP socket whose packets are stamped. Send may be called from several
// goroutines; Run by one.
type Conn struct {
	udp   *net.UDPConn
	raw   syscall.RawConn
	pairs *Pairs
	own   bool // pairs is this socket's own
	v6    bool

	fallback string // why stamps are worse than asked for
	kernel   bool   // the kernel stamps
	flags    int    // of SO_TIMESTAMPING
	phc      *phc   // the NIC's clock, where it stamps
	start    time.Time

	closed   atomic.Bool
	counters counters

	mu      sync.Mutex // orders sends, so that the kernel counts them as we do
	next    uint32     // number of the next packet
	epochs  [2]epoch   // of the kernel's numbers, the present one first
	choose  bool       // the kernel lets us choose the numbers
	pending pending
	armed   bool // Run wakes to give up waiting
	out     outgoing

	transmit func(fd uintptr) // write, bound once

	// Run's.
	stamps, packets *batch
	overflowed      uint32 // of the kernel's counter, what was counted
}

// epoch is the time from which on the kernel has counted packets from 0.
type epoch struct {
	base  uint32 // our number of the first of them
	since int64  // realtime of the machine
}

// Listen opens a socket.
func Listen(c Config) (*Conn, error) {
	network := "udp4"
	if c.Addr.Addr().Is6() {
		network = "udp6"
	}
	conn := &Conn{v6: network == "udp6", pairs: c.Pairs, choose: true, start: time.Now(), stamps: newBatch(), packets: newBatch()}
	if conn.pairs == nil {
		conn.pairs, conn.own = NewPairs(c.Clock), true
	}
	l := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if e := raw.Control(func(fd uintptr) { err = conn.options(int(fd), c) }); e != nil {
			return e
		}
		return err
	}}
	packets, err := l.ListenPacket(context.Background(), network, c.Addr.String())
	if err != nil {
		if conn.phc != nil {
			err = errors.Join(err, conn.phc.device.Close())
		}
		return nil, fmt.Errorf("listen on %v: %w", c.Addr, err)
	}
	conn.udp = packets.(*net.UDPConn)
	if conn.raw, err = conn.udp.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("get descriptor: %w", err), conn.udp.Close())
	}
	conn.out.init()
	conn.transmit = conn.write
	return conn, nil
}

// LocalAddr is where the socket listens.
func (c *Conn) LocalAddr() netip.AddrPort {
	a := c.udp.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// Fallback says why stamps are of a worse kind than was asked for; empty if they
// are not.
func (c *Conn) Fallback() string { return c.fallback }

// Pairs is what carries this socket's stamps over.
func (c *Conn) Pairs() *Pairs { return c.pairs }

// Counters returns the counts so far.
func (c *Conn) Counters() Counters { return c.counters.snapshot() }

// Close ends Run, and makes Send fail. It must not be called from a Handler.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	err := c.udp.Close()
	if c.phc != nil {
		err = errors.Join(err, c.phc.device.Close())
	}
	return err
}

// Run hands what passes to h until Close, when it returns nil. One goroutine
// fetches the stamps and the packets: two would wait for each other on the
// descriptor's lock.
func (c *Conn) Run(h Handler) error {
	if c.own {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { c.pairs.Run(ctx) })
		defer wg.Wait()
		defer cancel()
	}
	for {
		var failed error
		err := c.raw.Read(func(fd uintptr) bool {
			failed = c.drain(int(fd), h)
			return failed != nil || c.closed.Load()
		})
		c.giveUp(h)
		c.disarm()
		if failed == nil && err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
			failed, err = c.unpollable(h), nil
		}
		switch {
		case failed != nil:
			return c.ended("receive", failed)
		case c.closed.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			return c.ended("wait", err)
		}
	}
}

// unpollable drains where Go's poller refuses to wait: it does from when the error
// queue fills while there is no room for sending, until there is.
func (c *Conn) unpollable(h Handler) (failed error) {
	if err := c.raw.Control(func(fd uintptr) { failed = c.drain(int(fd), h) }); err != nil {
		return err
	}
	time.Sleep(time.Millisecond)
	return failed
}

func (c *Conn) ended(verb string, err error) error {
	if c.closed.Load() {
		return nil
	}
	return fmt.Errorf("%s on %v: %w", verb, c.LocalAddr(), err)
}

// drain empties the error queue and the packets until both are. A batch that is
// not full did; what comes after it wakes Run again.
func (c *Conn) drain(fd int, h Handler) error {
	for !c.closed.Load() {
		stamps, moreStamps, err := c.fetch(c.stamps, fd, unix.MSG_ERRQUEUE)
		if err != nil {
			return err
		}
		packets, morePackets, err := c.fetch(c.packets, fd, 0)
		if err != nil {
			return err
		}
		if stamps+packets > 0 {
			c.handle(stamps, packets, h)
		}
		if !moreStamps && !morePackets {
			return nil
		}
	}
	return nil
}

// fetch fetches one batch, and says whether there may be more.
func (c *Conn) fetch(b *batch, fd, flags int) (n int, more bool, err error) {
	n, err = b.receive(fd, flags)
	switch {
	case err == nil:
		return n, n == batchSize, nil
	case errors.Is(err, unix.EAGAIN):
		return 0, false, nil
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		c.counters.overflow.Add(1)
		return 0, false, nil
	case peerError(err):
		c.counters.peerErrors.Add(1)
		return 0, true, nil // the kernel forgot it by saying it
	}
	return 0, false, err
}

// handle hands on what was fetched. The clocks are read after it was.
func (c *Conn) handle(stamps, packets int, h Handler) {
	now := c.pairs.Read()
	if c.phc != nil {
		c.phc.pairs.Read()
	}
	for i := range stamps {
		c.sent(c.stamps.message(i), h)
	}
	for i := range packets {
		c.received(c.packets.message(i), now, h)
	}
}

// peerError tells what a peer or the network did from what is wrong with us.
func peerError(err error) bool {
	for _, e := range []error{
		unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENETDOWN,
		unix.ENOPROTOOPT, unix.EPROTO, unix.EMSGSIZE, unix.EACCES, unix.EINTR, unix.EOPNOTSUPP,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// parse reads a message's control messages and counts what they say of us.
func (c *Conn) parse(m message) control {
	p := parseControl(m.control)
	if p.malformed {
		c.counters.malformedControl.Add(1)
	}
	if p.overflow != 0 { // a total; the kernel's counter begins with the socket
		c.counters.overflow.Add(int64(p.overflow - c.overflowed))
		c.overflowed = p.overflow
	}
	return p
}

func (c *Conn) received(m message, now Pair, h Handler) {
	control := c.parse(m)
	if m.flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		c.counters.truncated.Add(1)
		return
	}
	c.counters.packetsReceived.Add(1)
	s, tried := c.carry(control)
	switch {
	case !tried:
		s = stamp.Stamp{Raw: now.Raw, Unix: now.Realtime, Kind: stamp.KindUser, Width: uint32(min(now.Width, math.MaxUint32))}
	case s.Kind == stamp.KindNone:
		c.counters.receivedDropped.Add(1)
	}
	c.counters.receivedStamps[s.Kind].Add(1)
	h.Received(m.data, m.sender(), s, control.ttl)
}

// carry brings the better of a message's stamps over to raw; tried is false where
// it has none.
func (c *Conn) carry(m control) (s stamp.Stamp, tried bool) {
	if m.hardware != 0 && c.phc != nil {
		if s = c.phc.carry(m.hardware); s.Kind != stamp.KindNone {
			return s, true
		}
	}
	if m.software == 0 {
		return stamp.Stamp{}, m.hardware != 0
	}
	return c.pairs.StampOf(m.software, stamp.KindKernel), true
}

func (c *Conn) sent(m message, h Handler) {
	control := c.parse(m)
	if !control.transmit {
		c.counters.peerErrors.Add(1)
		return
	}
	id, s, state := c.settle(control)
	switch {
	case state == stampHeld:
	case state == stampUnknown:
		c.counters.unknownStamps.Add(1)
	case s.Kind == stamp.KindNone:
		c.counters.sentDropped.Add(1)
	default:
		c.counters.sentStamps[s.Kind].Add(1)
		h.Sent(id, s)
	}
}

const (
	stampFinal = iota
	stampHeld  // until the NIC's comes, or of a packet that has the NIC's
	stampUnknown
)

// settle finds the packet that a stamp is of and ends its wait. Where the NIC
// stamps, the kernel brings its own stamp first, taken before the NIC was told of
// the packet: it is held, and serves where the NIC's does not come or cannot be
// carried over.
func (c *Conn) settle(m control) (id uint32, s stamp.Stamp, state int) {
	s, _ = c.carry(m)
	software := m.hardware == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.find(m)
	switch {
	case w == nil && software && c.phc != nil && c.choose && c.pending.ended(m.id):
		return 0, s, stampHeld
	case w == nil:
		return 0, s, stampUnknown
	case software && c.phc != nil:
		w.software = s
		return w.id, s, stampHeld
	}
	if s.Kind == stamp.KindNone {
		s = w.software
	}
	c.pending.end(w)
	return w.id, s, stampFinal
}

// find returns the packet that a stamp is of; nil where it is none's that waits.
func (c *Conn) find(m control) *waiting {
	if c.choose {
		return c.pending.find(m.id, m.software)
	}
	for _, e := range c.epochs {
		if m.software == 0 || m.software >= e.since {
			if w := c.pending.find(e.base+m.id, m.software); w != nil {
				return w
			}
		}
	}
	return nil
}

// disarm lets Run sleep as long as nothing waits for a stamp.
func (c *Conn) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending.n > 0 {
		c.arm(time.Now())
		return
	}
	c.armed = false
	_ = c.udp.SetReadDeadline(time.Time{})
}

// giveUp hands on what there is for packets that waited for a better stamp in
// vain: the kernel's, else the program's.
func (c *Conn) giveUp(h Handler) {
	limit := time.Since(c.start)
	if c.kernel {
		limit -= missingAfter
	}
	c.pairs.Read() // after all that is given up was sent
	for {
		c.mu.Lock()
		w, ok := c.pending.expired(limit, c.next)
		c.mu.Unlock()
		if !ok {
			return
		}
		if c.kernel {
			c.counters.missingStamps.Add(1)
		}
		s := w.software
		if s.Kind == stamp.KindNone {
			s = c.pairs.StampOf(w.before, stamp.KindUser)
		}
		if s.Kind == stamp.KindNone {
			c.counters.sentDropped.Add(1)
			continue
		}
		c.counters.sentStamps[s.Kind].Add(1)
		h.Sent(w.id, s)
	}
}
