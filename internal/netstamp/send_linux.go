// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outgoing is the memory of one sendmsg(2).
type outgoing struct {
	header  unix.Msghdr
	vector  unix.Iovec
	to      unix.RawSockaddrInet6 // or Inet4
	control [64]byte              // SCM_TS_OPT_ID
	errno   unix.Errno
}

// id returns where the packet's number stands in the control message.
func (o *outgoing) id() *uint32 {
	return (*uint32)(unsafe.Pointer(&o.control[unix.CmsgLen(0)]))
}

func (o *outgoing) init() {
	o.header.Name, o.header.Iov = (*byte)(unsafe.Pointer(&o.to)), &o.vector
	o.header.SetIovlen(1)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&o.control[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_TS_OPT_ID
	h.SetLen(unix.CmsgLen(int(unsafe.Sizeof(*o.id()))))
}

// address sets the destination.
func (o *outgoing) address(to netip.AddrPort, v6 bool) error {
	a := to.Addr().Unmap()
	switch {
	case to.Port() == 0 || a.Is4() == v6 || !a.IsValid():
		return fmt.Errorf("got address %v; want one of the socket's family with a port", to)
	case a.Is4():
		s := (*unix.RawSockaddrInet4)(unsafe.Pointer(&o.to))
		*s = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: bigEndian(to.Port()), Addr: a.As4()}
		o.header.Namelen = uint32(unsafe.Sizeof(*s))
	default:
		o.to = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: bigEndian(to.Port()), Addr: a.As16(), Scope_id: zoneIndex(a.Zone())}
		o.header.Namelen = uint32(unsafe.Sizeof(o.to))
	}
	return nil
}

func zoneIndex(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	i, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}

func zoneName(index uint32) string { return strconv.FormatUint(uint64(index), 10) }

// Send sends b without waiting and returns the number by which Handler.Sent names
// the packet. Full buffers and queues are errors: a probe that waits is worse
// than none. b may be used again after it.
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
	if err := c.out.address(to, c.v6); err != nil {
		c.counters.sendErrors.Add(1)
		return 0, fmt.Errorf("send to %v: %w", to, err)
	}
	c.out.vector.Base = &b[0]
	c.out.vector.SetLen(len(b))
	id = c.next
	err = c.send(id)
	c.out.vector.Base = nil
	if err != nil {
		return 0, c.refused(to, err)
	}
	c.next++
	c.counters.packetsSent.Add(1)
	return id, nil
}

// send sends what c.out holds, under the number id.
func (c *Conn) send(id uint32) error {
	now := time.Now()
	overflow := c.pending.put(waiting{id: id, before: now.UnixNano(), since: now.Sub(c.start)})
	err := c.try(id)
	if errors.Is(err, unix.EINVAL) && c.chooses() {
		c.choose = false // a kernel before 6.13
		if err = c.try(id); err != nil {
			c.choose = true // it was not that
		} else {
			c.epochs[0] = epoch{base: id}
		}
	} else if err != nil && peerError(err) {
		// An error that an earlier packet met is told to the next.
		c.counters.peerErrors.Add(1)
		c.recount(id)
		err = c.try(id)
	}
	if err != nil {
		c.pending.drop(id)
		c.recount(id)
		return err
	}
	if overflow {
		c.counters.pendingOverflow.Add(1)
	}
	if !c.armed {
		c.arm(now)
	}
	return nil
}

// arm wakes Run when it is time to give up waiting for stamps.
func (c *Conn) arm(now time.Time) {
	c.armed = true
	if c.kernel {
		now = now.Add(missingAfter)
	}
	_ = c.udp.SetReadDeadline(now)
}

func (c *Conn) chooses() bool { return c.kernel && c.choose }

func (c *Conn) try(id uint32) error {
	c.out.header.Control = nil
	c.out.header.SetControllen(0)
	if c.chooses() {
		*c.out.id() = id
		c.out.header.Control = &c.out.control[0]
		c.out.header.SetControllen(unix.CmsgSpace(int(unsafe.Sizeof(id))))
	}
	if err := c.raw.Control(c.transmit); err != nil {
		return ErrClosed
	}
	if c.out.errno != 0 {
		return c.out.errno
	}
	return nil
}

// write calls sendmsg(2) for what c.out holds.
func (c *Conn) write(fd uintptr) {
	_, _, c.out.errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&c.out.header)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// recount makes the kernel count from 0 again. Whether it counted a packet that
// it refused depends on how far the packet had come.
func (c *Conn) recount(next uint32) {
	if c.choose || !c.kernel {
		return
	}
	c.counters.resets.Add(1)
	_ = c.raw.Control(func(fd uintptr) { _ = c.count(int(fd)) })
	if c.epochs[0].base != next { // stamps of the epoch before may still come
		c.epochs[1] = c.epochs[0]
	}
	c.epochs[0] = epoch{base: next, since: time.Now().UnixNano()}
}

func (c *Conn) refused(to netip.AddrPort, err error) error {
	if errors.Is(err, ErrClosed) || c.closed.Load() {
		return ErrClosed
	}
	c.counters.sendErrors.Add(1)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		c.counters.sendBusy.Add(1)
	}
	return fmt.Errorf("send to %v: %w", to, err)
}
