// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"errors"
	"net/netip"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// MaxPacket is the longest packet that is received, in bytes; longer ones are
// dropped and counted. No packet of ours comes near it on an Ethernet.
const MaxPacket = 2048

// Config is what Listen needs.
type Config struct {
	// Addr is the local address; port 0 takes a free one. An IPv6 address takes
	// IPv6 only.
	Addr netip.AddrPort
	// Pairs carries stamps over to raw. Sockets of one host share one and its owner
	// calls Pairs.Run; nil gives the socket its own one on Clock.
	Pairs *Pairs
	// Clock serves where Pairs is nil; nil is System.
	Clock Clock
	// Device binds the socket to a network device (needs CAP_NET_RAW on kernels
	// before 5.7); empty leaves it to the routes.
	Device string
	// Hardware asks for stamps by Device's NIC (needs CAP_NET_ADMIN to switch them
	// on). Where it offers none, Conn.Fallback says why and the kernel stamps.
	Hardware bool
	// TTL is what packets are sent with, 1 to 255; 0 is 255, which lets the other
	// end count the hops.
	TTL uint8
	// NoKernelStamps leaves stamps to the program, for tests and comparisons.
	NoKernelStamps bool
}

// Handler is told what passed. It is called by Conn.Run's goroutine only, may
// call Conn.Send, and must not call Conn.Close.
type Handler interface {
	// Received gets a packet, when it came, and the TTL (hop limit) it came with, 0
	// where unknown. The stamp is of KindNone where it could not be carried over to
	// raw. data belongs to the handler until it returns.
	Received(data []byte, from netip.AddrPort, s stamp.Stamp, ttl uint8)
	// Sent gets the stamp of the packet that Send numbered id. It is called once at
	// most for each, and not at all where the stamp was lost or dropped.
	Sent(id uint32, s stamp.Stamp)
}

// ErrClosed is returned by Send after Close.
var ErrClosed = errors.New("netstamp: use of closed connection")

// Counters is what a Conn did and why it dropped what it dropped.
type Counters struct {
	PacketsSent, PacketsReceived int64
	SentStamps                   [4]int64 // by kind, stamp.KindUser, ...
	ReceivedStamps               [4]int64

	SendErrors       int64 // packets that Send refused or the kernel did
	SendBusy         int64 // of these: full buffers or queues, EAGAIN and ENOBUFS
	Truncated        int64 // packets longer than MaxPacket, or control messages cut off
	Overflow         int64 // packets that the kernel dropped: buffers that we emptied too late, or checksums that are wrong; it does not tell which
	PeerErrors       int64 // ICMP errors and the like, which are not stamps
	UnknownStamps    int64 // transmit stamps of no packet that waits for one
	MissingStamps    int64 // packets whose transmit stamp never came; they get the kernel's for a NIC's, else one of KindUser
	PendingOverflow  int64 // packets that waited for a stamp when newer ones took their place
	ReceivedDropped  int64 // receive stamps that could not be carried over; KindNone
	SentDropped      int64 // transmit stamps that could not be carried over; Sent is not called
	MalformedControl int64 // control messages that are not what the kernel writes
	Resets           int64 // times that the kernel had to count packets anew after an error
}
