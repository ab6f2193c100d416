// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// proxy writes one proxy step: its waits entered at three instants.
func (f *fakeRing) proxy(send bool, peer int32, channel uint8, seq uint64, number uint32, begin uint64, waits [3]uint64, stop uint64) {
	var r ring.Record
	r[1] = uint64(ring.KindProxyStep) | 3<<8 | 1<<32 | f.code("AllReduce")<<48
	r[3] = uint64(number)
	r[4] = uint64(uint32(peer)) | uint64(channel)<<32
	if send {
		r[4] |= 1 << 40
	}
	r[5], r[9], r[10], r[11] = at(begin), at(stop), 4096, seq
	for i, w := range waits {
		r[6+i] = at(w)
	}
	f.records = append(f.records, r)
}

func TestInBandDelayOfLocalRanks(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Level = ring.LevelAll
	n := NewNode(cfg)
	a, b := newFakeRing(0, 3), newFakeRing(1, 3)
	ra, rb := n.Attach(a, ""), n.Attach(b, "")
	ga, gb := newGot(), newGot()
	a.mark(0, 0)
	b.mark(0, 0)
	ra.Pass(at(1), ga.emit(t))
	rb.Pass(at(1), gb.emit(t))
	var links []Link
	emit := func(batch *Batch) {
		for _, s := range batch.Summaries {
			for _, l := range s.Links {
				h := *l.Recorder
				l.Recorder = &h
				links = append(links, l)
			}
		}
		gb.emit(t)(batch)
	}
	a.proxy(true, 1, 2, 7, 0, 10, [3]uint64{10, 20, 30}, 90)  // sent at 30
	a.proxy(true, 1, 2, 7, 1, 10, [3]uint64{40, 50, 60}, 190) // sent at 60
	a.proxy(true, 2, 2, 7, 0, 10, [3]uint64{40, 50, 60}, 190) // to another node
	b.proxy(false, 0, 2, 7, 0, 5, [3]uint64{5, 80, 85}, 95)   // received at 80
	b.proxy(false, 0, 2, 7, 1, 5, [3]uint64{90, 160, 165}, 170)
	b.proxy(false, 0, 2, 8, 0, 5, [3]uint64{90, 160, 165}, 170) // its other half never comes
	ra.Pass(at(300), ga.emit(t))
	rb.Pass(at(300), emit)
	b.mark(1, 400)
	rb.Pass(at(500), emit)

	require.Len(t, links, 1)
	l := links[0]
	assert.Equal(t, "0x000000000000feed", l.Comm)
	assert.Equal(t, []int64{0, 1, 2}, []int64{l.Src, l.Dst, int64(l.Channel)})
	assert.Equal(t, int64(2), l.Count)
	assert.Equal(t, 150*us, l.Sum, "50 us and 100 us")
	assert.Len(t, n.links.halves, 1)
	assert.Empty(t, n.links.take(1, nil), "told once")

	sends := opsOf(ga.ops, model.KindHost)
	require.Len(t, sends, 3)
	s := sends[0]
	assert.Equal(t, "proxy send", s.Name)
	assert.Equal(t, "proxy send channel 2 peer 1", s.Key)
	assert.InDelta(t, 10e-6, s.Waits.GPU.V, 1e-9)
	assert.InDelta(t, 10e-6, s.Waits.Peer.V, 1e-9)
	assert.InDelta(t, 60e-6, s.Waits.Wire.V, 1e-9)
	recv := opsOf(gb.ops, model.KindHost)[0]
	assert.InDelta(t, 75e-6, recv.Waits.Peer.V, 1e-9)
	assert.InDelta(t, 5e-6, recv.Waits.Flush.V, 1e-9)
	assert.InDelta(t, 10e-6, recv.Waits.GPU.V, 1e-9)
}

func TestHalvesAreBounded(t *testing.T) {
	var l linkTable
	l.init()
	for i := range uint64(3 * maxHalves) {
		l.add(halfKey{seq: i}, half{at: 1}, Link{})
	}
	assert.LessOrEqual(t, len(l.halves), maxHalves)
	assert.Positive(t, l.overflowed)
}

func TestDetailAfterTheFact(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	f.proxy(true, 1, 0, 0, 0, 1, [3]uint64{1, 2, 3}, 4)
	r.Pass(at(10), g.emit(t))
	before := len(g.ops)
	r.Detail(at(20), g.emit(t))
	require.Len(t, g.ops, before+1, "the operation was handed on before, its proxy step was not")
	assert.Equal(t, "proxy send", g.ops[before].Name)
}
