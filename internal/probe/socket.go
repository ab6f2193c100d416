// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"math"
	"net/netip"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// sentRing is how many packets of a socket can await their transmit stamp. The
// kernel hands stamps out within a millisecond; what is overtaken stays unstamped.
const sentRing = 1 << 12

// sentPackets remembers of which packet of whom the kernel's number is.
type sentPackets[T any] struct {
	ring [sentRing]struct {
		id   uint32
		used bool
		what T
	}
}

func (p *sentPackets[T]) put(id uint32, what T) (overwrote bool) {
	e := &p.ring[id%sentRing]
	overwrote = e.used
	e.id, e.used, e.what = id, true, what
	return overwrote
}

func (p *sentPackets[T]) take(id uint32) (what T, ok bool) {
	e := &p.ring[id%sentRing]
	if !e.used || e.id != id {
		return what, false
	}
	e.used = false
	return e.what, true
}

// socket is one UDP source port of an end point: one path to each of its peers.
type socket struct {
	conn  netstamp.PacketConn
	path  int
	clock netstamp.Clock
	count *counts

	// mu guards the sessions of this socket, whoever of the pacer, the socket's
	// goroutine and the window's end uses them.
	mu       sync.Mutex
	sessions map[netip.AddrPort]*session
	sent     sentPackets[sentProbe]
	buf      [2][]byte
}

type sentProbe struct {
	session *session
	seq     uint32
}

// probe sends a coded pair of a session.
func (k *socket) probe(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sessions[s.peer.Addr] != s {
		return
	}
	var seq [2]uint32
	// Both are made before the first is sent, so that nothing stands between them.
	now := userStamp(k.clock)
	for i, part := range [2]stamp.Part{stamp.First, stamp.Second} {
		k.buf[i], seq[i] = s.sender.Next(now, part, k.buf[i][:0])
	}
	for i := range k.buf {
		id, err := k.conn.Send(k.buf[i], s.peer.Addr)
		if err != nil {
			k.count.sendErrors.Add(1)
			continue
		}
		if k.sent.put(id, sentProbe{s, seq[i]}) {
			k.count.stampsLost.Add(1)
		}
	}
}

// Received implements netstamp.Handler.
func (k *socket) Received(data []byte, from netip.AddrPort, at stamp.Stamp, ttl uint8) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[from]
	if s == nil {
		k.count.strangers.Add(1)
		return
	}
	s.received(data, at)
}

// Sent implements netstamp.Handler.
func (k *socket) Sent(id uint32, at stamp.Stamp) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p, ok := k.sent.take(id); ok {
		p.session.sender.Sent(p.seq, at)
	}
}

// userStamp is a stamp of a packet that is about to leave.
func userStamp(c netstamp.Clock) stamp.Stamp {
	p := c.Pair()
	return stamp.Stamp{Raw: p.Raw, Unix: p.Realtime, Kind: stamp.KindUser, Width: uint32(min(p.Width, math.MaxUint32))}
}

func (k *socket) open(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions[s.peer.Addr] = s
}

func (k *socket) close(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sessions[s.peer.Addr] == s {
		delete(k.sessions, s.peer.Addr)
	}
}

// reflecting is the socket on which an end point answers.
type reflecting struct {
	conn  netstamp.PacketConn
	clock netstamp.Clock
	count *counts

	mu        sync.Mutex // guards what follows against who reads counters
	reflector *stamp.Reflector
	sent      sentPackets[sentReply]
	buf       []byte
}

type sentReply struct {
	peer   netip.AddrPort
	number stamp.Number
}

// Received implements netstamp.Handler.
func (r *reflecting) Received(data []byte, from netip.AddrPort, at stamp.Stamp, ttl uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !at.OK() { // late, and no more wrong than that
		at = userStamp(r.clock)
	}
	reply, err := r.reflector.Handle(data, from, at, ttl, r.clock.Pair().Raw, r.buf[:0])
	if err != nil {
		r.count.culprits.add(requestReason(err), from.Addr()) // counted by the reflector
		return
	}
	if r.reflector.Marked() {
		r.count.copied(from.Addr())
	}
	r.buf = reply
	id, err := r.conn.Send(reply, from)
	if err != nil {
		r.count.sendErrors.Add(1)
		return
	}
	if r.sent.put(id, sentReply{from, r.reflector.Number()}) {
		r.count.stampsLost.Add(1)
	}
}

// Sent implements netstamp.Handler.
func (r *reflecting) Sent(id uint32, at stamp.Stamp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.sent.take(id); ok {
		r.reflector.Sent(p.peer, p.number, at)
	}
}
