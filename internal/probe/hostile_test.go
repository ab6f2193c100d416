// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/mesh"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// TestWhoIsOnThePathMovesNoClock: packets are signed, and somebody between both
// nodes puts TLVs of one packet behind the base of another, cuts them off, sends
// recorded ones again and makes some of its own.
func TestWhoIsOnThePathMovesNoClock(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		key, err := stamp.NewKey([]byte("0123456789abcdef"))
		require.NoError(t, err)
		list := &members{}
		a, b := w.node(0, list), w.node(1, list)
		a.cfg.Key, b.cfg.Key = key, key
		between := mesh.Member{Node: "b", Addr: addr(211)}
		b.cfg.Peers = &members{all: []mesh.Member{a.member(), b.member()}}
		list.set(a.member(), between)
		b.start(t)
		b.some(t, "it knows the list", func(o Outcome) bool { return o.Neighbours == 1 })
		m := &middle{old: w.record400(t, key, a.cfg.Locals[0].Addr(), b.cfg.Locals[0])}
		w.relay(t, between.Addr, b.cfg.Locals[0], m.change)
		a.start(t)
		a.some(t, "a measurement in spite of it", func(o Outcome) bool { return estimated(o, "host:b/1/raw") })
		a.some(t, "all of it refused", func(o Outcome) bool {
			c := o.Counters
			return c["sender.faulty"] >= 9*spoils/10 && c["sender.forged"] > 5 && c["sender.duplicate"] > 5 && c["sender.mismatched"] > 5
		})
		checked := 0
		for _, o := range a.outcomes() {
			for _, e := range o.Edges {
				if e.Source != model.EdgeProbe {
					continue
				}
				require.Equal(t, "host:b/1/raw", e.Dst, "what was cut off makes no other clock")
				at, ok := a.clock.TrueOfRaw(e.At)
				require.True(t, ok)
				truth := netstamp.Offset(a.clock, b.clock, at)
				assert.LessOrEqual(t, e.Lower, truth)
				assert.GreaterOrEqual(t, e.Upper, truth)
				checked++
			}
		}
		assert.Positive(t, checked)
	})
}

// record400 are the replies of a session of before, by their numbers, as somebody on the path
// has them.
func (w *world) record400(t *testing.T, key *stamp.Key, from netip.Addr, to netip.AddrPort) map[uint32][]byte {
	t.Helper()
	var replies inbox
	port := w.open(t, netip.AddrPortFrom(from, 0), replies.receive)
	s, err := stamp.NewSender(stamp.SenderConfig{Key: key, SSID: 1, ClockID: "host:a/1/raw"})
	require.NoError(t, err)
	for seq := range uint32(400) {
		request, _ := s.Next(stamp.Stamp{Raw: int64(seq), Unix: 1, Kind: stamp.KindUser}, stamp.Single, nil)
		port.Send(request, to)
		time.Sleep(time.Millisecond) // within the reflector's rate
	}
	time.Sleep(100 * time.Millisecond)
	old := map[uint32][]byte{}
	for _, b := range replies.packets() {
		reply, err := stamp.DecodeReply(b, key)
		require.NoError(t, err)
		old[reply.Seq] = b
	}
	require.Greater(t, len(old), 300)
	return old
}

// middle changes replies, each in its turn.
type middle struct {
	n      int
	old    map[uint32][]byte
	spoilt int
}

// spoils is how many replies are spoilt; of these, a few may come too late.
const spoils = 100

// change returns what is sent instead of a reply.
func (m *middle) change(reply []byte) [][]byte {
	old := m.old[binary.BigEndian.Uint32(reply)]
	m.n++
	switch {
	case old == nil || m.spoilt == spoils:
	case m.n%4 == 1:
		m.spoilt++ // the stamps of another reply with the same number
		return [][]byte{slices.Concat(reply[:stamp.BaseLenAuth], old[stamp.BaseLenAuth:])}
	case m.n%8 == 2 && m.n > 50:
		m.spoilt++
		return [][]byte{reply[:stamp.BaseLenAuth]}
	case m.n%8 == 3:
		forged := slices.Clone(reply)
		forged[40]++
		return [][]byte{forged, reply}
	case m.n%8 == 4:
		return [][]byte{reply, old, reply}
	}
	return [][]byte{reply}
}

// TestAPeerNamesOneClock: a peer that says that it is many clocks, of whatever form,
// is at most one.
func TestAPeerNamesOneClock(t *testing.T) {
	inMemory(t, func(t *testing.T, w *world) {
		list := &members{}
		n := w.node(0, list)
		liar := mesh.Member{Node: "liar", Addr: addr(212)}
		names := []string{
			"host:victim/b/realtime", "service:checkout/realtime", "utc:chrony/7f7f0101", "timeline:x", "nic:me/eth0/phc", "gpu:0", "x",
			"stamp:10.0.0.1/realtime", "host:p/1/raw", "host:q/1/raw", "host:p/2/raw", "host:p/3/raw", "host:p/4/raw",
		}
		var turn atomic.Int64
		w.serve(t, liar.Addr, func(request []byte) []byte {
			return ownReply(request, names[int(turn.Add(1))%len(names)])
		})
		list.set(n.member(), liar)
		n.start(t)
		n.some(t, "refused by reason", func(o Outcome) bool {
			return o.Counters["clock.unusable"] > 20 && o.Counters["clock.many"] > 5
		})
		since := len(n.outcomes())
		n.some(t, "some more windows", func(Outcome) bool { return len(n.outcomes()) > since+3 })
		for _, o := range n.outcomes() {
			clocks := map[string]bool{}
			for _, e := range o.Edges {
				if e.Source == model.EdgeProbe {
					clocks[e.Dst] = true
					_, _, ok := parseClock(e.Dst)
					assert.True(t, ok, e.Dst)
				}
			}
			assert.LessOrEqual(t, len(clocks), 1, fmt.Sprint(clocks))
		}
	})
}

// ownReply answers a request with a TLV of ours that names a clock.
func ownReply(request []byte, name string) []byte {
	in, err := stamp.DecodeRequest(request, nil)
	if err != nil {
		return nil
	}
	now := int64(in.Seq) * 1_000_000
	tlvs, err := stamp.TLVs(nil).AppendClock(&stamp.Clock{ID: name, Received: now, ReceivedKind: stamp.KindKernel})
	if err != nil {
		return nil
	}
	tlvs[0] = 0 // understood
	out := stamp.Reply{
		Seq: in.Seq, SSID: in.SSID, Error: stamp.Estimate(1), Received: stamp.PTP(now), Time: stamp.PTP(now),
		SenderSeq: in.Seq, SenderTime: in.Time, SenderError: in.Error, TLVs: tlvs,
	}
	return out.Append(nil, nil)
}

func TestEndPointsOnPortsSideBySide(t *testing.T) {
	list := &members{}
	n := newTestNode(0, list)
	first := n.cfg.Locals[0]
	n.cfg.Locals = append(n.cfg.Locals, netip.AddrPortFrom(first.Addr(), first.Port()+1))
	n.start(t) // and no path takes the second's port
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(n.cfg.Locals[1]))
	if err == nil {
		conn.Close()
	}
	require.Error(t, err, "it is in use")
}
