// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func (m *image) text(code uint64, s string) {
	at := m.offset[sStrings] + code*stringWords*8
	m.write(at+8, append([]byte(s), 0))
	m.set(at, stringSet)
}

func TestString(t *testing.T) {
	m := newImage(1, 8)
	m.text(1, "AllReduce")
	m.text(2, "evil\x1b]0;\xff")
	m.text(3, "half")
	m.set(m.offset[sStrings]+3*stringWords*8, 1)
	m.text(4, "0123456789012345678901234567890123456789012345678901234") // 55 bytes and the NUL
	r := m.open(t)
	assert.Equal(t, "AllReduce", r.String(1))
	assert.Equal(t, "evil\ufffd]0;\ufffd", r.String(2))
	assert.Empty(t, r.String(3), "being written")
	m.text(3, "whole")
	assert.Equal(t, "whole", r.String(3))
	assert.Len(t, r.String(4), 55)
	for _, code := range []uint16{0, 5, 8, 65535} {
		assert.Empty(t, r.String(code), "code %d", code)
	}
	m.text(1, "changed")
	assert.Equal(t, "AllReduce", r.String(1), "a code means one thing")
}

func TestCommsAndGPUs(t *testing.T) {
	m := newImage(1, 8)
	c := m.offset[sComms] + 2*commWords*8
	m.set(c+8, 0xabcd)
	for i, v := range []int32{8, 3, None} {
		m.set32(c+16+uint64(4*i), uint32(v))
	}
	m.set32(c+28, 5)
	m.set32(c+32, 1)
	m.set(c+40, 77)
	m.write(c+48, []byte("dp\x00"))
	g := m.offset[sGPUs] + gpuWords*8
	m.write(g+8, []byte("0123456789abcdef"))
	m.set32(g+24, 6)
	r := m.open(t)
	assert.Empty(t, r.Comms(nil))
	for _, state := range []uint64{1, 4, 1 << 40} {
		m.set(c, state)
		assert.Empty(t, r.Comms(nil), "state %d", state)
	}
	m.set(c, entryLive)
	m.set(g, entryLive)
	want := Comm{Index: 2, Hash: 0xabcd, Ranks: 8, Rank: 3, Nodes: None, ABI: 5, GPU: 1, Created: 77, Name: "dp"}
	assert.Equal(t, []Comm{want}, r.Comms(nil))
	m.set(c, entryEnded)
	want.Ended = true
	assert.Equal(t, []Comm{want}, r.Comms(nil))
	assert.Equal(t, []GPU{{Index: 1, UUID: "GPU-30313233-3435-3637-3839-616263646566", Device: 6}}, r.GPUs(nil))
}

func TestInFlight(t *testing.T) {
	m := newImage(1, 8)
	r := m.open(t)
	at := func(slot, word uint64) uint64 { return m.offset[sSlots] + (slot*slotWords+word)*8 }
	for i := range uint64(slotWords) {
		m.set(at(2, i), 1000+i)
	}
	m.set(at(2, 0), 9<<8|uint64(SlotStarted))
	m.set(at(2, slotChildren), 3|4<<32)
	for i := range uint64(2 * slotWaitCount) {
		m.set(at(2, slotWaits+i), 0)
	}
	m.set(at(2, slotWaits+2), uint64(ProxySendPeer)|7<<8|1<<16|5<<32)
	m.set(at(2, slotWaits+3), 1019)
	for i, state := range []uint64{0, 1, 6} { // free, being filled, of no meaning
		m.set(at([]uint64{0, 1, 3}[i], 0), 1<<8|state)
	}
	slots := r.InFlight(nil)
	assert.Len(t, slots, 1)
	s := slots[0]
	assert.Equal(t, uint64(1002), s.Record.Handle())
	s.Record = Record{}
	assert.Equal(t, Slot{
		Index: 2, Generation: 9, State: SlotStarted, Order: 1016, OpenKernelChannels: 3, OpenProxyOps: 4,
		Send:  Wait{State: ProxySendPeer, Channel: 7, Peer: 5, Since: 1019},
		Proxy: ProxySendPeer, ProxyChannel: 7, ProxySend: true, ProxyPeer: 5, ProxySince: 1019, Last: 1018,
	}, s)
	assert.Equal(t, "sending: waits for the peer to be ready", s.Proxy.String())

	// Of two directions, the one that has waited longer is what hangs.
	m.set(at(2, slotWaits+4), uint64(ProxyRecv)|2<<8|6<<32)
	m.set(at(2, slotWaits+5), 1018)
	s = r.InFlight(nil)[0]
	assert.Equal(t, []any{ProxyRecv, false, int32(6), uint64(1018)}, []any{s.Proxy, s.ProxySend, s.ProxyPeer, s.ProxySince})
	m.set(at(2, slotWaits+2), 0)
	m.set(at(2, slotWaits+5), 2000)
	assert.Equal(t, ProxyRecv, r.InFlight(nil)[0].Proxy, "the only one that waits")
}

// One direction does not hide the other.
func TestInFlightWaitsOfBothDirections(t *testing.T) {
	m := newImage(1, 8)
	at := func(word uint64) uint64 { return m.offset[sSlots] + word*8 }
	m.set(at(0), 1<<8|uint64(SlotStarted))
	for i, w := range []struct{ what, since uint64 }{
		{uint64(ProxySendGPU) | 2<<8 | 1<<16 | 1<<32, 500},
		{uint64(ProxySendWire) | 3<<8 | 1<<16 | 2<<32, 400},
		{uint64(ProxyRecv) | 4<<8 | 3<<32, 700},
		{uint64(ProxyRecvGPU) | 5<<8 | 6<<32, 800},
	} {
		m.set(at(slotWaits+uint64(2*i)), w.what)
		m.set(at(slotWaits+uint64(2*i)+1), w.since)
	}
	s := m.open(t).InFlight(nil)[0]
	assert.Equal(t, Wait{State: ProxySendWire, Channel: 3, Peer: 2, Since: 400}, s.Send)
	assert.Equal(t, Wait{State: ProxyRecv, Channel: 4, Peer: 3, Since: 700}, s.Receive)
	assert.Equal(t, []any{ProxySendWire, true, int32(2), uint64(400)}, []any{s.Proxy, s.ProxySend, s.ProxyPeer, s.ProxySince})
}

func TestFrontiers(t *testing.T) {
	m := newImage(1, 8)
	at := m.offset[sFrontiers] + 3*frontierWords*8
	m.set(at, 1|5<<16|2<<32)
	for i, v := range []uint64{11, 100, 10, 90, 0, 0, 2, 11, 1} {
		m.set(at+8+uint64(8*i), v)
	}
	assert.Equal(t, []Frontier{{
		Comm: 5, Func: 2, Enqueued: Mark{true, 10, 100}, Started: Mark{true, 9, 90},
		Open: 2, Total: 11, Inferred: 1,
	}}, m.open(t).Frontiers(nil), "completed nothing yet")
}

func TestClockPairs(t *testing.T) {
	m := newImage(1, 8)
	// 33 readings: the last took the place of the first.
	for n := range uint64(clockPairs + 1) {
		at := atPairs + n%clockPairs*pairWords*8
		for i, v := range []uint64{10 * n, 20 * n, 3, n + 1} {
			m.set(at+uint64(8*i), v)
		}
	}
	m.set(atPairs+5*pairWords*8+24, 0) // being written
	pairs := m.open(t).ClockPairs(nil)
	assert.Len(t, pairs, clockPairs-1)
	assert.Equal(t, ClockPair{Number: 1, Raw: 10, Realtime: 20, Width: 3}, pairs[0])
	assert.Equal(t, uint64(clockPairs), pairs[len(pairs)-1].Number)
	for i := 1; i < len(pairs); i++ {
		assert.Less(t, pairs[i-1].Number, pairs[i].Number)
	}
}

func TestDropsAndHeaderWords(t *testing.T) {
	m := newImage(1, 8)
	for i := range uint64(DropCount) {
		m.set(atDrops+8*i, 100+i)
	}
	m.set(atHeartbeat, 9)
	m.set(atStep, ^uint64(0))
	m.set(atLevel, 2)
	r := m.open(t)
	for i, n := range r.Drops() {
		assert.Equal(t, uint64(100+i), n)
	}
	assert.Equal(t, "shared_lane", DropName(0))
	assert.Equal(t, "control", DropName(15))
	assert.Equal(t, "links", DropName(25))
	assert.Equal(t, "unknown", DropName(DropCount))
	assert.Equal(t, uint64(9), r.Heartbeat())
	assert.Equal(t, LevelCollectives, r.Level())
	_, marked := r.Step()
	assert.False(t, marked)
	m.set(atStep, 12)
	step, marked := r.Step()
	assert.True(t, marked)
	assert.Equal(t, int64(12), step)
}
