// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// recorder keeps what it is told.
type recorder struct {
	mu       sync.Mutex
	sent     map[uint32]stamp.Stamp
	twice    int
	received []arrival
	onPacket func(data []byte, from netip.AddrPort)
}

type arrival struct {
	data string
	from netip.AddrPort
	stamp.Stamp
	ttl uint8
}

func (r *recorder) Received(data []byte, from netip.AddrPort, s stamp.Stamp, ttl uint8) {
	r.mu.Lock()
	r.received = append(r.received, arrival{string(data), from, s, ttl})
	r.mu.Unlock()
	if r.onPacket != nil {
		r.onPacket(data, from)
	}
}

func (r *recorder) Sent(id uint32, s stamp.Stamp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.sent[id]; ok {
		r.twice++
	}
	if r.sent == nil {
		r.sent = map[uint32]stamp.Stamp{}
	}
	r.sent[id] = s
}

func (r *recorder) counts() (sent, received int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent), len(r.received)
}

// open listens and runs until the test ends.
func open(t *testing.T, c Config, h Handler) *Conn {
	t.Helper()
	conn, err := Listen(c)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- conn.Run(h) }()
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		require.NoError(t, <-done)
	})
	return conn
}

func loopback(v6 bool) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(netip.IPv6Loopback(), 0)
	}
	return netip.MustParseAddrPort("127.0.0.1:0")
}

const patience = 10 * time.Second

func TestEveryPacketIsStampedOnBothSides(t *testing.T) {
	for name, v6 := range map[string]bool{"IPv4": false, "IPv6": true} {
		t.Run(name, func(t *testing.T) {
			const packets = 1000
			pairs := NewPairs(nil)
			from, to := &recorder{}, &recorder{}
			a := open(t, Config{Addr: loopback(v6), Pairs: pairs, TTL: 77}, from)
			b := open(t, Config{Addr: loopback(v6), Pairs: pairs}, to)
			require.Empty(t, a.Fallback())
			// Kernels switch on receive stamps some time after they were asked to.
			require.Eventually(t, func() bool {
				_, err := a.Send([]byte("warm"), b.LocalAddr())
				require.NoError(t, err)
				return b.Counters().ReceivedStamps[stamp.KindKernel] > 0
			}, patience, time.Millisecond)
			warm := a.Counters().PacketsSent

			before := pairs.Read()
			for i := range packets {
				id, err := a.Send([]byte("probe"), b.LocalAddr())
				require.NoError(t, err)
				require.Equal(t, uint32(warm)+uint32(i), id)
				if i%50 == 49 { // leave room in the receiver's buffer
					require.Eventually(t, func() bool { return b.Counters().PacketsReceived >= int64(i+1) }, patience, time.Millisecond)
				}
			}
			all := int(a.Counters().PacketsSent)
			require.Eventually(t, func() bool {
				sent, _ := from.counts()
				_, received := to.counts()
				return sent == all && received == all
			}, patience, time.Millisecond)
			after := pairs.Read()

			assert.Zero(t, from.twice)
			assert.GreaterOrEqual(t, a.Counters().SentStamps[stamp.KindKernel], int64(packets))
			assert.Positive(t, warm)
			for i, r := range to.received[warm:] {
				require.Equal(t, "probe", r.data)
				require.Equal(t, a.LocalAddr(), r.from)
				require.Equal(t, uint8(77), r.ttl)
				require.Equal(t, stamp.KindKernel, int(r.Kind))
				s := from.sent[uint32(int(warm)+i)]
				require.Equal(t, stamp.KindKernel, int(s.Kind))
				// It left after the test began and before it arrived.
				require.LessOrEqual(t, before.Raw-before.Width, s.Raw+int64(s.Width))
				require.LessOrEqual(t, s.Raw-int64(s.Width), r.Raw+int64(r.Width))
				require.LessOrEqual(t, s.Unix, r.Unix)
				require.LessOrEqual(t, r.Raw-int64(r.Width), after.Raw+after.Width)
			}
		})
	}
}
