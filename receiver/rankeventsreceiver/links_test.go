// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// twoRanks are rings of two ranks of one node that exchange two chunks, which
// take 50 and 100 µs.
type twoRanks struct {
	rankevents.Source // what is not asked for
	rank              int32
	records           []ring.Record
	step              int64
}

const startNS = 1_000_000_000

func (f *twoRanks) Header() ring.Header { return ring.Header{Rank: f.rank, WorldSize: 2} }
func (f *twoRanks) Comms(dst []ring.Comm) []ring.Comm {
	return append(dst, ring.Comm{Index: 1, Hash: 0xfeed, Ranks: 2, Rank: f.rank})
}

func (f *twoRanks) ClockPairs(dst []ring.ClockPair) []ring.ClockPair {
	return append(dst, ring.ClockPair{Raw: 1, Realtime: 1})
}
func (f *twoRanks) InFlight(dst []ring.Slot) []ring.Slot { return dst }
func (f *twoRanks) Frontiers([]ring.Frontier) []ring.Frontier {
	return nil
}
func (f *twoRanks) Drops() (d [ring.DropCount]uint64) { return d }
func (f *twoRanks) GPUs(dst []ring.GPU) []ring.GPU    { return dst }
func (f *twoRanks) String(uint16) string              { return "AllReduce" }
func (f *twoRanks) CUPTI() (ring.CUPTIState, uint32)  { return ring.CUPTIUnasked, 0 }
func (f *twoRanks) Witnesses() ring.Witness           { return ring.WitnessNCCL }
func (f *twoRanks) Step() (int64, bool)               { return f.step, true }
func (f *twoRanks) MissingUntil() uint64              { return 0 }
func (f *twoRanks) Poll(_ ring.Level, fn func(int, *ring.Record)) ring.Counts {
	for i := range f.records {
		fn(0, &f.records[i])
	}
	f.records = nil
	return ring.Counts{}
}

func (f *twoRanks) mark(n, at uint64) {
	f.step = int64(n)
	f.records = append(f.records, ring.Record{1: uint64(ring.KindStep), 2: n, 3: startNS + at*1000})
}

// chunk writes a proxy step on channel 2 that entered the wait that counts at.
func (f *twoRanks) chunk(send bool, number, at uint64) {
	r := ring.Record{1: uint64(ring.KindProxyStep) | 1<<32, 3: number, 4: uint64(1-f.rank) | 2<<32, 5: startNS, 9: startNS + at*1000}
	if send {
		r[4] |= 1 << 40
		r[8] = startNS + at*1000
	} else {
		r[7] = startNS + at*1000
	}
	f.records = append(f.records, r)
}

// What the README shows is what is written.
func TestLinksAreWrittenAsDocumented(t *testing.T) {
	node := rankevents.NewNode(rankevents.DefaultConfig())
	sender, receiver := &twoRanks{}, &twoRanks{rank: 1}
	src, dst := node.Attach(sender, ""), node.Attach(receiver, "")
	text := ""
	emit := func(b *rankevents.Batch) {
		for _, s := range b.Summaries {
			text += marshalLinks(s.Links)
		}
	}
	pass := func(at uint64) {
		src.Pass(startNS+at*1000, emit)
		dst.Pass(startNS+at*1000, emit)
	}
	receiver.mark(0, 0)
	pass(1)
	sender.chunk(true, 0, 100)
	sender.chunk(true, 1, 200)
	receiver.chunk(false, 0, 150)
	receiver.chunk(false, 1, 300)
	pass(400)
	receiver.mark(1, 500)
	pass(600)

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.NotEmpty(t, text)
	assert.JSONEq(t, `{"v":1,"scale":7,"links":[{"comm":"0x000000000000feed","channel":2,"src":0,"dst":1,"n":2,"sum":0.00015,"b":[-1829,1,-1701,1]}]}`, text)
	assert.Contains(t, strings.Split(string(readme), "\n"), text)
	assert.Empty(t, marshalLinks(nil))
}
