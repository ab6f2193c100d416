// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// fakeRing is a ring in memory. Times of tests are µs from base.
type fakeRing struct {
	header  ring.Header
	records []ring.Record
	slots   []ring.Slot
	comms   []ring.Comm
	strings []string
	fronts  []ring.Frontier
	step    int64
	lost    uint64
	until   uint64 // MissingUntil of the last poll
	// lostUntil is that of the next that loses something; 0 stands for the maximum.
	lostUntil uint64
	before    uint64
	corrupt   uint64
	beat      uint64
	scopes    []ring.OpenScope
	feeds     ring.Witness
	cupti     ring.CUPTIState
	old       []ring.Record // handed on already
	closed    bool
	holder    int // 0: no process holds the lock
	drops     [ring.DropCount]uint64
	drift     uint64 // of the host's clocks, ns
	resuming  bool   // the first poll reads what was known
	known     int
}

// reopened is the ring as another reader finds it.
func (f *fakeRing) reopened() *fakeRing {
	g := *f
	g.records, g.old = append(slices.Clone(f.old), f.records...), nil
	return &g
}

const (
	base  = uint64(1_000_000_000_000)
	us    = uint64(1000)
	epoch = int64(1_700_000_000_000_000_000)
	hash0 = uint64(0xfeed)
)

func at(micro uint64) uint64 { return base + micro*us }

// unixAt is the same instant in what is handed on.
func unixAt(micro uint64) int64 { return int64(at(micro)) + epoch }

func newFakeRing(rank, world int32) *fakeRing {
	return &fakeRing{
		header: ring.Header{
			PID: 100 + uint64(rank), BootID: "boot", HostName: "h", HostID: "hid", JobID: "job",
			Rank: rank, LocalRank: rank, WorldSize: world, Restart: 0,
			Created: base, RetainSeconds: 60, Lanes: 2, Capacity: 1 << 20,
		},
		comms:   []ring.Comm{{}, {Index: 1, Hash: hash0, Ranks: world, Rank: rank, ABI: 5, Name: "world"}},
		strings: []string{""},
		step:    -1,
	}
}

func (f *fakeRing) Header() ring.Header { return f.header }
func (f *fakeRing) Poll(_ ring.Level, fn func(int, *ring.Record)) ring.Counts {
	batch, rest := f.records, []ring.Record(nil)
	if f.resuming {
		f.resuming = false
		batch, rest = f.records[:f.known], f.records[f.known:]
	}
	again := min(len(batch), f.known)
	f.known = 0
	c := ring.Counts{Read: uint64(len(batch) - again), Reread: uint64(again), Lost: f.lost, Before: f.before, Corrupt: f.corrupt}
	f.until = 0
	if f.lost > 0 {
		f.until = cmp.Or(f.lostUntil, math.MaxUint64)
	}
	f.records, f.lost, f.before = rest, 0, 0
	for i := range batch {
		batch[i][0] = uint64(len(f.old)+i) + 1
		fn(1, &batch[i])
	}
	f.old = append(f.old, batch...)
	return c
}

func (f *fakeRing) Snapshot(fn func(int, *ring.Record)) (c ring.Counts) {
	for i := range f.old {
		fn(1, &f.old[i])
	}
	return c
}

func (f *fakeRing) Resume(places []ring.Place) error {
	p := places[1]
	f.old, f.records = f.records[:p.From:p.From], f.records[p.From:]
	f.resuming, f.known = true, int(p.Known-p.From)
	return nil
}

func (f *fakeRing) MissingUntil() uint64                          { return f.until }
func (f *fakeRing) Cursors(dst []uint64) []uint64                 { return append(dst, 0, uint64(len(f.old))) }
func (f *fakeRing) InFlight(dst []ring.Slot) []ring.Slot          { return append(dst, f.slots...) }
func (f *fakeRing) Frontiers(dst []ring.Frontier) []ring.Frontier { return append(dst, f.fronts...) }
func (f *fakeRing) Comms(dst []ring.Comm) []ring.Comm             { return append(dst, f.comms...) }
func (f *fakeRing) GPUs(dst []ring.GPU) []ring.GPU                { return dst }
func (f *fakeRing) String(code uint16) string {
	if int(code) < len(f.strings) {
		return f.strings[code]
	}
	return ""
}

func (f *fakeRing) ClockPairs(dst []ring.ClockPair) []ring.ClockPair {
	return append(dst, ring.ClockPair{Raw: base, Realtime: uint64(int64(base)+epoch) + f.drift, Width: 100})
}

func (f *fakeRing) OpenScopes(dst []ring.OpenScope) []ring.OpenScope {
	return append(dst, f.scopes...)
}
func (f *fakeRing) Witnesses() ring.Witness          { return f.feeds }
func (f *fakeRing) CUPTI() (ring.CUPTIState, uint32) { return f.cupti, 0 }
func (f *fakeRing) Heartbeat() uint64                { return f.beat }
func (f *fakeRing) Alive() (bool, bool, error)       { return !f.closed, f.closed, nil }
func (f *fakeRing) Holder() (int, bool)              { return f.holder, f.holder > 0 }
func (f *fakeRing) Drops() [ring.DropCount]uint64    { return f.drops }
func (f *fakeRing) Step() (int64, bool)              { return f.step, f.step >= 0 }

func (f *fakeRing) code(text string) uint64 {
	for i, s := range f.strings {
		if s == text {
			return uint64(i)
		}
	}
	f.strings = append(f.strings, text)
	return uint64(len(f.strings) - 1)
}

// opSpec is one operation: enqueued at launch, from start to end by its proxy.
type opSpec struct {
	comm               uint16
	fn                 string
	seq                uint64
	step               int64 // -1: none marked
	launch, start, end uint64
	bytes              uint64
	flags              ring.Flags
	peer               int32
	group              uint32
	wire               uint64 // µs
	wirePeer           int32
	handle             uint64
	stream             uint16 // 0: the first
}

func (f *fakeRing) record(o opSpec) ring.Record {
	var r ring.Record
	comm := o.comm
	if comm == 0 {
		comm = 1
	}
	flags := o.flags | ring.FlagProxy
	if o.wire > 0 {
		flags |= ring.FlagWaits
		r[2] = 1 << 48 // sent steps
	}
	if o.group != 0 {
		flags |= ring.FlagGroup
	}
	step := uint64(0xffffffff)
	if o.step >= 0 {
		step = uint64(o.step)
	}
	r[1] = uint64(ring.KindOp) | 1<<8 | uint64(flags)<<16 | uint64(comm)<<32 | f.code(o.fn)<<48
	r[2], r[3], r[4] = r[2]|o.handle, o.seq, o.bytes
	r[5] = uint64(uint32(o.peer))
	r[6], r[7] = at(o.launch), 1000|step<<32
	r[10] = uint64(uint32(o.wirePeer)) << 32
	r[11] = at(o.end)
	r[12] = (o.start-o.launch)*10 | (o.end-o.launch)*10<<32
	r[13] = uint64(o.group) | uint64(max(o.stream, 1))<<32
	r[15] = o.wire * 10
	return r
}

func (f *fakeRing) op(o opSpec) { f.records = append(f.records, f.record(o)) }

func (f *fakeRing) mark(step int64, micro uint64) {
	var r ring.Record
	r[1] = uint64(ring.KindStep) | 1<<8
	r[2], r[3] = uint64(step), at(micro)
	f.records = append(f.records, r)
	f.step = step
}

func (f *fakeRing) scope(name string, step int64, begin, end uint64, phase ring.Phase) {
	var r ring.Record
	r[1] = uint64(ring.KindScope) | 1<<8
	r[2], r[3], r[4], r[5] = at(begin), at(end), uint64(step)|77<<32, f.code(name)|uint64(phase)<<48
	f.records = append(f.records, r)
}

// kernelSpec is what the device ran: µs, by CUPTI's clock what a clock of Unix shows.
type kernelSpec struct {
	name               string
	launch, start, end uint64 // launch 0: not seen
	flags              uint64 // of a kernel
	stream, corr       uint32
	bytes              uint64
	grid               [3]uint64
	ahead              uint64 // µs by which CUPTI's clock is ahead of what it should be
}

const (
	kCopy, kSet, kGraph, kComm = 1, 2, 4, 8
	kLaunch                    = 16
)

func cuptiAt(micro uint64) uint64 { return uint64(unixAt(micro)) }

func (f *fakeRing) kernel(k kernelSpec) {
	var r ring.Record
	if k.launch != 0 {
		k.flags |= kLaunch
		r[4] = cuptiAt(k.launch + k.ahead)
	}
	r[1] = uint64(ring.KindKernel) | 2<<8 | k.flags<<16
	r[2], r[3] = cuptiAt(k.start+k.ahead), cuptiAt(k.end+k.ahead)
	r[5] = 77 << 32
	if k.name != "" {
		r[5] |= f.code(k.name)
	}
	r[6], r[7], r[8] = uint64(k.stream), uint64(k.corr), k.grid[0]|k.grid[1]<<32|k.grid[2]<<48
	r[10] = k.bytes
	f.records = append(f.records, r)
}

// clock is a reading of CUPTI's clock, 100 ns wide.
func (f *fakeRing) clock(micro, ahead uint64) {
	f.records = append(f.records, ring.Record{1: uint64(ring.KindClock) | 1<<8, 2: at(micro), 3: cuptiAt(micro + ahead), 4: cuptiAt(micro), 5: 100 | 1<<32})
}

// link is a span that a step works for, named by one number.
func (f *fakeRing) link(step int64, n uint64, micro uint64) {
	f.records = append(f.records, ring.Record{1: uint64(ring.KindLink) | 1<<8, 2: uint64(step), 3: n, 4: 1, 5: n, 6: at(micro), 7: 77})
}

// open puts an operation in flight.
func (f *fakeRing) open(o opSpec, state ring.SlotState) {
	rec := f.record(o)
	f.slots = append(f.slots, ring.Slot{State: state, Record: rec, Order: o.seq + 1})
}

// got collects what is handed on.
type got struct {
	rank model.Rank
	ops  []model.Op
	sums map[int64]Summary // by step
	hist map[int64]map[string]int64
	open []model.OpenOp

	states  []model.RankState
	members []model.RankState
	resumes []model.Resume
	prints  []model.Fingerprint
	missing []model.MissingSteps
}

func newGot() *got { return &got{sums: map[int64]Summary{}, hist: map[int64]map[string]int64{}} }

func (g *got) emit(t *testing.T) Emit {
	t.Helper()
	return func(b *Batch) {
		g.rank = b.Rank
		g.ops = append(g.ops, b.Ops...)
		g.open = append(g.open, b.Open...)
		g.states = append(g.states, b.States...)
		g.members = append(g.members, b.Members...)
		g.resumes = append(g.resumes, b.Resumes...)
		g.prints = append(g.prints, b.Fingerprints...)
		g.missing = append(g.missing, b.Missing...)
		steps := b.ops(model.KindStep)
		require.Len(t, b.Summaries, len(steps))
		for i, s := range b.Summaries {
			g.sums[steps[i].Step.V] = s
			g.hist[steps[i].Step.V] = map[string]int64{}
			for _, h := range s.Histograms {
				g.hist[steps[i].Step.V][h.Key] = h.Count
			}
		}
	}
}

func (b *Batch) ops(kind model.OpKind) []model.Op { return opsOf(b.Ops, kind) }

func opsOf(ops []model.Op, kind model.OpKind) (out []model.Op) {
	for i := range ops {
		if ops[i].Kind == kind {
			out = append(out, ops[i])
		}
	}
	return out
}

// steps lists the steps that were handed on, in order.
func (g *got) steps() (out []int64) {
	for _, op := range opsOf(g.ops, model.KindStep) {
		out = append(out, op.Step.V)
	}
	return out
}
