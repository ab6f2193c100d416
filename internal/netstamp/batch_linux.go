// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// batchSize messages are fetched by one call at most.
	batchSize = 16
	// controlSize holds all control messages that are asked for.
	controlSize = 256
)

// mmsghdr is struct mmsghdr of <sys/socket.h>.
type mmsghdr struct {
	header unix.Msghdr
	length uint32
}

// batch is the memory of one recvmmsg(2).
type batch struct {
	headers [batchSize]mmsghdr
	vectors [batchSize]unix.Iovec
	from    [batchSize]unix.RawSockaddrInet6 // or Inet4, which is shorter
	data    [batchSize][MaxPacket]byte
	control [batchSize][controlSize]byte
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.headers {
		b.vectors[i].Base = &b.data[i][0]
		b.vectors[i].SetLen(MaxPacket)
		h := &b.headers[i].header
		h.Iov, h.Name, h.Control = &b.vectors[i], (*byte)(unsafe.Pointer(&b.from[i])), &b.control[i][0]
		h.SetIovlen(1)
	}
	return b
}

// receive fetches messages without waiting.
func (b *batch) receive(fd, flags int) (int, error) {
	for i := range b.headers {
		h := &b.headers[i].header
		h.Namelen = uint32(unsafe.Sizeof(b.from[i]))
		h.SetControllen(controlSize)
		h.Flags = 0
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.headers[0])),
		batchSize, uintptr(flags|unix.MSG_DONTWAIT), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// message is one of a batch, valid until the next receive.
type message struct {
	data, control []byte
	flags         int
	name          *unix.RawSockaddrInet6
}

func (b *batch) message(i int) message {
	m := &b.headers[i]
	return message{
		data:    b.data[i][:min(m.length, MaxPacket)],
		control: b.control[i][:min(m.header.Controllen, controlSize)],
		flags:   int(m.header.Flags),
		name:    &b.from[i],
	}
}

func (m message) sender() netip.AddrPort {
	switch m.name.Family {
	case unix.AF_INET:
		a := (*unix.RawSockaddrInet4)(unsafe.Pointer(m.name))
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), bigEndian(a.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(m.name.Addr).Unmap()
		if m.name.Scope_id != 0 {
			a = a.WithZone(zoneName(m.name.Scope_id))
		}
		return netip.AddrPortFrom(a, bigEndian(m.name.Port))
	}
	return netip.AddrPort{}
}

// bigEndian swaps a port, which the kernel has in the network's order.
func bigEndian(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}
