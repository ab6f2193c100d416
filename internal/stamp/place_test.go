// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSessionsOfOneAddressAreBounded: one recorded packet, sent again from all the
// ports of an address, takes as many sessions as that address may have, a quarter of its rate
// in replies, and none of the credit of the sessions that it has.
func TestSessionsOfOneAddressAreBounded(t *testing.T) {
	w := newWire(t, SenderConfig{Key: testKey(t)}, true)
	recorded := w.send(second, Single)
	now, answered := int64(second), 0
	for port := range 20_000 {
		now += ms / 10
		_, err := w.r.Handle(recorded, netip.AddrPortFrom(peerB.Addr(), uint16(port+1)), w.stamp(now), 60, now, nil)
		if answered++; err != nil {
			answered--
			require.GreaterOrEqual(t, port, DefaultPerPeer)
			require.ErrorIs(t, err, ErrRate)
		}
	}
	passing := DefaultRate / newcomers * int(now-second+minBurst) / second
	// Steps are uneven by a third of their mean: of some hundreds, by a twentieth of that together.
	assert.LessOrEqual(t, answered, DefaultPerPeer+passing+passing/5)
	l, _ := w.r.peers.Peek(peerB.Addr())
	assert.LessOrEqual(t, l.next, 2*now/3, "what is charged is what has a session")
	_, err := w.r.Handle(w.send(now, Single), peerA, w.stamp(now), 60, now, nil)
	require.NoError(t, err, "somebody else")
	assert.Len(t, w.r.held[peerB.Addr()], DefaultPerPeer)
	assert.Len(t, w.r.held[peerA.Addr()], 1)
	now += idle
	_, err = w.r.Handle(recorded, peerB, w.stamp(now), 60, now, nil)
	require.NoError(t, err, "the old sessions are over")
	assert.Len(t, w.r.held[peerB.Addr()], 1)
	assert.Len(t, w.r.held, 1)
}

// crowd sends recorded requests again from the ports of an address, at a rate.
type crowd struct {
	*wire
	rng    *rand.Rand
	now    int64
	next   int64
	every  int64
	packet func(n int) (port int, b []byte)
	n      int
}

func (c *crowd) handle(b []byte, port int) ([]byte, error) {
	return c.r.Handle(b, netip.AddrPortFrom(peerA.Addr(), uint16(port)), c.stamp(c.now), 60, c.now, nil)
}

func (c *crowd) until(at int64) {
	for c.next = max(c.next, c.now); c.next < at; c.next += c.every/2 + c.rng.Int64N(c.every) {
		port, b := c.packet(c.n)
		c.n++
		c.now = c.next
		_, _ = c.handle(b, port)
	}
	c.now = at
}

// pair is a pair of requests of a sender, which learns from the replies; answered says how
// many there were.
func (c *crowd) pair(s *Sender, port int) (answered int) {
	for _, part := range []Part{First, Second} {
		b, _ := s.Next(c.stamp(c.now), part, nil)
		reply, err := c.handle(b, port)
		if err != nil {
			continue
		}
		if _, err = s.Received(reply, c.stamp(c.now+ms), nil); err == nil {
			answered++
		}
		c.r.Sent(netip.AddrPortFrom(peerA.Addr(), uint16(port)), c.r.Number(), c.stamp(c.now+ms/2))
	}
	return answered
}

func newCrowd(t *testing.T, what string, rate int) *crowd {
	t.Helper()
	w := newWire(t, SenderConfig{Key: testKey(t), SSID: 7}, true)
	c := &crowd{wire: w, rng: rand.New(rand.NewPCG(1, uint64(rate))), now: second, next: second, every: second / int64(rate)}
	var recorded [][]byte
	for range 200 {
		recorded = append(recorded, w.send(second, Single))
	}
	anyPort := func() int { return 1024 + c.rng.IntN(60_000) }
	port := 0
	c.packet = map[string]func(int) (int, []byte){
		"one request": func(int) (int, []byte) { return anyPort(), recorded[0] },
		"three in a row": func(n int) (int, []byte) {
			if n%3 == 0 {
				port = anyPort()
			}
			return port, recorded[n%3]
		},
		"sessions that go on": func(n int) (int, []byte) {
			const ports = 2 * DefaultPerPeer
			if r := n / ports; r < len(recorded) {
				return 1024 + n%ports, recorded[r]
			}
			return anyPort(), recorded[0]
		},
		"without TLVs": func(int) (int, []byte) { return anyPort(), recorded[0][:BaseLenAuth] },
	}[what]
	return c
}

// path is one of a sender that starts anew.
type path struct {
	*Sender
	port     int
	goesOn   int // rounds since it was proven
	instance uint32
}

// round sends a pair. Once a path is proven it is always answered, in one session.
func (c *crowd) round(p *path) {
	answered := c.pair(p.Sender, p.port)
	s, _ := c.r.sessions.Peek(sessionKey{netip.AddrPortFrom(peerA.Addr(), uint16(p.port)), p.Sender.cfg.SSID})
	if p.goesOn > 0 {
		require.Equal(c.t, 2, answered)
		require.Equal(c.t, p.instance, p.Sender.instance)
	}
	if s != nil && s.proven {
		p.goesOn++
		p.instance = s.instance
	}
}

// TestReplaysDoNotShutOutWhoStartsAnew: recorded packets come from random ports of a member
// all the time, more of them than its own, and it starts anew: however slowly it probes, it
// is answered soon on all of its paths, and its sessions last.
func TestReplaysDoNotShutOutWhoStartsAnew(t *testing.T) {
	for _, what := range []string{"one request", "three in a row", "sessions that go on"} {
		for _, probing := range []struct {
			flood, paths int
			interval     int64
		}{{300, 16, second / 5}, {300, 1, 2 * second}, {300, 1, 20 * second}, {4000, 16, second / 5}, {4000, 1, 2 * second}} {
			t.Run(fmt.Sprintf("%s, %d a second, %d paths in %d ms", what, probing.flood, probing.paths, probing.interval/ms), func(t *testing.T) {
				c := newCrowd(t, what, probing.flood)
				c.until(3 * second)
				require.Len(t, c.r.held[peerA.Addr()], DefaultPerPeer)
				paths := make([]*path, probing.paths)
				for i := range paths {
					paths[i] = &path{port: 100 + i, Sender: newSender(t, SenderConfig{Key: testKey(t), SSID: uint16(7000 + i), ClockID: c.s.cfg.ClockID})}
				}
				for range 200 {
					for _, p := range paths {
						c.until(c.now + probing.interval/int64(len(paths)))
						c.round(p)
					}
					if !slices.ContainsFunc(paths, func(p *path) bool { return p.goesOn < 5 }) {
						break
					}
				}
				for _, p := range paths {
					assert.GreaterOrEqual(t, p.goesOn, 5)
				}
				assert.LessOrEqual(t, c.r.sessions.Len(), DefaultPerPeer)
			})
		}
	}
}

// TestReplaysDoNotEndWhatIsProven: whoever cuts TLVs off pretends to be of a sender that
// has none.
func TestReplaysDoNotEndWhatIsProven(t *testing.T) {
	c := newCrowd(t, "without TLVs", 1000)
	s := newSender(t, SenderConfig{Key: testKey(t), SSID: 7000, ClockID: c.s.cfg.ClockID})
	require.Equal(t, 2, c.pair(s, 100))
	c.now += ms
	require.Equal(t, 2, c.pair(s, 100))
	instance := s.instance
	for range 3 {
		c.until(c.now + 20*second)
		require.Len(t, c.r.held[peerA.Addr()], DefaultPerPeer)
		require.Equal(t, 2, c.pair(s, 100))
		require.Equal(t, instance, s.instance)
	}
}

// TestAFullTableHasRoomForWhoIsProven: recorded requests come from so many
// addresses that all places are taken.
func TestAFullTableHasRoomForWhoIsProven(t *testing.T) {
	w := newWire(t, SenderConfig{Key: testKey(t), SSID: 7}, true)
	recorded := w.send(second, Single)
	c := &crowd{wire: w, now: second}
	for i := range DefaultSessions {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i / DefaultPerPeer)}), uint16(1+i%DefaultPerPeer))
		_, err := w.r.Handle(recorded, from, w.stamp(c.now), 60, c.now, nil)
		require.NoError(t, err)
	}
	s := newSender(t, SenderConfig{Key: testKey(t), SSID: 7000, ClockID: w.s.cfg.ClockID})
	for range 3 {
		assert.Equal(t, 2, c.pair(s, 100))
		c.now += second
	}
	assert.Equal(t, DefaultSessions, w.r.sessions.Len())
	assert.Len(t, w.r.held[peerA.Addr()], 1)
}

// TestATicketIsOfItsPort: the ticket of one port is of no use to another.
func TestATicketIsOfItsPort(t *testing.T) {
	w := newWire(t, SenderConfig{Key: testKey(t)}, true)
	k := sessionKey{peerA, 7}
	tickets := map[uint32]bool{}
	for _, other := range []sessionKey{k, {netip.AddrPortFrom(peerA.Addr(), 1), 7}, {netip.AddrPortFrom(peerB.Addr(), peerA.Port()), 7}, {peerA, 8}} {
		tickets[w.r.ticket(other)] = true
	}
	assert.Len(t, tickets, 4)
	assert.True(t, tickets[w.r.ticket(k)])
	assert.NotEqual(t, w.r.ticket(k), newReflector(t, ReflectorConfig{Stateful: true}).ticket(k))
}

// TestRawGoesBack: the machine was restored, and its raw clock with it. Requests of sessions
// of before are answered at once, and what is told late of replies of before is of none of
// the new ones.
func TestRawGoesBack(t *testing.T) {
	for _, by := range []int64{ms, 5 * second, 1000 * second} {
		w := newWire(t, SenderConfig{Key: testKey(t)}, true)
		now, then := int64(2000*second), int64(2000*second) // the sender's, and the reflector's
		exchange := func() (*Exchange, Number) {
			b := w.send(now, Single)
			reply, err := w.r.Handle(b, peerA, w.stamp(then), 60, then, nil)
			require.NoError(t, err)
			got, err := w.receive(reply, now+ms)
			require.NoError(t, err)
			now, then = now+100*ms, then+100*ms
			if len(got) == 0 {
				return nil, w.r.Number()
			}
			return &got[0], w.r.Number()
		}
		var before Number
		for range 100 {
			_, before = exchange()
			w.r.Sent(peerA, before, w.stamp(then))
		}
		then -= by + 100*ms
		_, n := exchange()
		assert.NotEqual(t, before.Instance, n.Instance)
		_, stale := exchange()
		w.r.Sent(peerA, Number{Instance: before.Instance, Seq: stale.Seq}, w.stamp(then+by))
		assert.Equal(t, int64(1), w.r.Counters().Stray)
		x, _ := exchange()
		assert.Nil(t, x)
		for range 1000 {
			exchange()
		}
		assert.Equal(t, int64(1103), w.r.Counters().Replies)
	}
}
