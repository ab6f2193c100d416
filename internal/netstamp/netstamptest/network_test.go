// SPDX-License-Identifier: Apache-2.0

package netstamptest

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

var (
	one = netip.MustParseAddrPort("10.0.0.1:1")
	two = netip.MustParseAddrPort("10.0.0.2:2")
)

// arrival is a packet by its number, and how long it was under way.
type arrival struct {
	n    uint32
	took time.Duration
}

// transfer sends packets of a ms each from one to two.
func transfer(t *testing.T, seed uint64, packets int, p Path) (arrivals []arrival, counts Counts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, Path{})
		w.SetPath(one.Addr(), two.Addr(), p)
		var mu sync.Mutex
		left := map[uint32]int64{}
		_, err := w.Open(two, func(b []byte, from netip.AddrPort) {
			assert.Equal(t, one, from)
			mu.Lock()
			defer mu.Unlock()
			n := binary.BigEndian.Uint32(b)
			arrivals = append(arrivals, arrival{n, time.Duration(time.Now().UnixNano() - left[n])})
		})
		require.NoError(t, err)
		from, err := w.Open(one, nil)
		require.NoError(t, err)
		for n := range uint32(packets) {
			mu.Lock()
			left[n] = from.Send(binary.BigEndian.AppendUint32(nil, n), two)
			mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		counts = w.Counts(one.Addr(), two.Addr())
		assert.Zero(t, w.Counts(two.Addr(), one.Addr()), "the other direction")
	})
	return arrivals, counts
}

func TestNetwork_Delay_IsTheLeast(t *testing.T) {
	got, counts := transfer(t, 1, 5000, Path{Delay: 3 * time.Millisecond, Jitter: 10 * time.Millisecond})
	assert.Equal(t, Counts{Sent: 5000}, counts)
	require.Len(t, got, 5000)
	least, most := time.Hour, time.Duration(0)
	for i, a := range got {
		assert.Equal(t, uint32(i), a.n, "a queue keeps the order")
		least, most = min(least, a.took), max(most, a.took)
	}
	assert.GreaterOrEqual(t, least, 3*time.Millisecond)
	assert.Greater(t, most, 13*time.Millisecond)
}

func TestNetwork_Shares_AreMet(t *testing.T) {
	const packets = 10_000
	got, counts := transfer(t, 2, packets, Path{Delay: time.Millisecond, Loss: 0.1, Duplicate: 0.2, Reorder: 0.3})
	// Five standard deviations of each share.
	assert.InDelta(t, 0.1*packets, counts.Lost, 150)
	assert.InDelta(t, 0.9*0.2*packets, counts.Duplicated, 200)
	assert.InDelta(t, 0.9*0.3*packets, counts.Reordered, 230)
	assert.Len(t, got, packets-int(counts.Lost)+int(counts.Duplicated))
	overtaken := int64(0)
	var last uint32
	for _, a := range got {
		if a.n < last && a.took == time.Millisecond+heldFor {
			overtaken++
		}
		last = max(last, a.n)
	}
	assert.Greater(t, overtaken, counts.Reordered/2, "what is held is overtaken by one of two that follow")
}

func TestNetwork_Seed_DecidesAll(t *testing.T) {
	p := Path{Delay: time.Millisecond, Jitter: time.Millisecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1}
	first, _ := transfer(t, 3, 500, p)
	again, _ := transfer(t, 3, 500, p)
	other, _ := transfer(t, 4, 500, p)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, other)
}

func TestNetwork_OpenPorts_AreNotGivenTwice(t *testing.T) {
	w := New(1, Path{})
	a, err := w.Open(netip.AddrPortFrom(one.Addr(), 0), nil)
	require.NoError(t, err)
	b, err := w.Open(netip.AddrPortFrom(one.Addr(), 0), nil)
	require.NoError(t, err)
	assert.NotEqual(t, a.LocalAddr(), b.LocalAddr())
	_, err = w.Open(a.LocalAddr(), nil)
	require.ErrorContains(t, err, "listen on 10.0.0.1:49152: address already in use")
	a.Close()
	_, err = w.Open(a.LocalAddr(), nil)
	require.NoError(t, err)
}

// ends keeps what a socket is told.
type ends struct {
	mu   sync.Mutex
	sent map[uint32]stamp.Stamp
	got  []stamp.Stamp
}

func (e *ends) Received(_ []byte, _ netip.AddrPort, s stamp.Stamp, _ uint8) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, s)
}

func (e *ends) Sent(id uint32, s stamp.Stamp) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent[id] = s
}

// A socket's stamps hold the true times, as readings of its clock, which runs fast.
func TestHost_Sockets_StampBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1, Path{Delay: 5 * time.Millisecond})
		now := w.Now()
		clocks := [2]*netstamp.Skewed{
			netstamp.NewSkewedBy(w.Now, now, 1e12, now, []netstamp.Change{{At: now, Rate: 100e-6}}, nil),
			netstamp.NewSkewedBy(w.Now, now, 2e12, now, nil, nil),
		}
		var conns [2]netstamp.PacketConn
		var told [2]ends
		var running sync.WaitGroup
		for i, at := range []netip.AddrPort{one, two} {
			var err error
			conns[i], err = w.Host().Listen(netstamp.Config{Addr: at, Pairs: netstamp.NewPairs(clocks[i])})
			require.NoError(t, err)
			told[i].sent = map[uint32]stamp.Stamp{}
			running.Go(func() { assert.NoError(t, conns[i].Run(&told[i])) })
		}
		const packets = 100
		for n := range uint32(packets) {
			id, err := conns[0].Send([]byte{1}, two)
			require.NoError(t, err)
			assert.Equal(t, n, id)
			time.Sleep(10 * time.Millisecond)
		}
		for _, c := range conns {
			require.NoError(t, c.Close())
		}
		running.Wait()
		_, err := conns[0].Send([]byte{1}, two)
		require.ErrorIs(t, err, netstamp.ErrClosed)
		require.Len(t, told[0].sent, packets)
		require.Len(t, told[1].got, packets)
		for n := range uint32(packets) {
			sent, got := told[0].sent[n], told[1].got[n]
			left, ok := clocks[0].TrueOfRaw(sent.Raw)
			require.True(t, ok)
			arrived, ok := clocks[1].TrueOfRaw(got.Raw)
			require.True(t, ok)
			assert.InDelta(t, 5*time.Millisecond, arrived-left, float64(sent.Width+got.Width)+float64(readTakes))
			assert.Less(t, sent.Width, uint32(2000), "half a window's slew is no width")
		}
		assert.Equal(t, int64(packets), conns[0].Counters().SentStamps[stamp.KindKernel])
		assert.Equal(t, int64(packets), conns[1].Counters().ReceivedStamps[stamp.KindKernel])
	})
}
