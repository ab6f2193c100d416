// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// sees is what a row's witness records.
type sees struct {
	kernelChannels, proxies, scopes, kernels bool
	kineto                                   bool
	// stages are told of each rank by an attribute, which no witness records.
	stages bool
}

var seen = map[Row]sees{
	HostEvents:     {},
	KernelChannels: {kernelChannels: true},
	ProxySteps:     {kernelChannels: true, proxies: true},
	Scopes:         {kernelChannels: true, proxies: true, scopes: true},
	CUPTI:          {kernelChannels: true, proxies: true, scopes: true, kernels: true},
	Kineto:         {kineto: true},
}

const (
	rawBase = uint64(1e12)
	epoch   = int64(1_700_000_000e9)
	gpuBase = uint64(1_700_000_500e9)
)

// ns is a true time on the clock of MONOTONIC_RAW that all nodes would share.
func ns(ms float64) uint64 { return rawBase + uint64(ms*1e6) }

// memory is the ring of one rank, in memory: what internal/ring reads of a real one.
type memory struct {
	header  ring.Header
	comms   []ring.Comm
	strings []string
	records []ring.Record
	real    int64 // added to raw by the host's real-time clock
	step    int64
	cupti   ring.CUPTIState
}

func (m *memory) Header() ring.Header { return m.header }

func (m *memory) Poll(_ ring.Level, fn func(int, *ring.Record)) ring.Counts {
	batch := m.records
	m.records = nil
	for i := range batch {
		fn(1, &batch[i])
	}
	return ring.Counts{Read: uint64(len(batch))}
}

func (m *memory) Snapshot(func(int, *ring.Record)) (c ring.Counts) { return c }
func (m *memory) InFlight(dst []ring.Slot) []ring.Slot             { return dst }
func (m *memory) Frontiers(dst []ring.Frontier) []ring.Frontier    { return dst }
func (m *memory) Comms(dst []ring.Comm) []ring.Comm                { return append(dst, m.comms...) }
func (m *memory) Cursors(dst []uint64) []uint64                    { return append(dst, 0) }
func (m *memory) Resume([]ring.Place) error                        { return nil }
func (m *memory) MissingUntil() uint64                             { return 0 }
func (m *memory) GPUs(dst []ring.GPU) []ring.GPU                   { return dst }
func (m *memory) Heartbeat() uint64                                { return 0 }
func (m *memory) Alive() (bool, bool, error)                       { return true, false, nil }
func (m *memory) Holder() (int, bool)                              { return 0, false }
func (m *memory) Drops() (d [ring.DropCount]uint64)                { return d }
func (m *memory) Step() (int64, bool)                              { return m.step, m.step >= 0 }
func (m *memory) OpenScopes(dst []ring.OpenScope) []ring.OpenScope { return dst }
func (m *memory) Witnesses() ring.Witness                          { return ring.WitnessNCCL }
func (m *memory) CUPTI() (ring.CUPTIState, uint32)                 { return m.cupti, 0 }
func (m *memory) String(code uint16) string                        { return m.strings[code] }
func (m *memory) ClockPairs(dst []ring.ClockPair) []ring.ClockPair {
	return append(dst, ring.ClockPair{Raw: rawBase, Realtime: uint64(int64(rawBase) + m.real), Width: 100})
}

func (m *memory) code(text string) uint64 {
	i := slices.Index(m.strings, text)
	if i < 0 {
		i = len(m.strings)
		m.strings = append(m.strings, text)
	}
	return uint64(i)
}

// watched is one rank with its ring and who reads it.
type watched struct {
	sees
	memory
	rng  *rand.Rand
	rank int
	gpu  uint64 // added to raw by the GPU's clock
	read *rankevents.Rank
	got  map[int64][]model.Op // by step
	id   model.Rank
	last float64
}

// watch returns the ranks of a job, each node with clocks of its own that are up to
// 3 ms apart, as those of hosts under NTP are.
func watch(s sees, seed int) []*watched {
	rng := rand.New(rand.NewPCG(uint64(seed), 5))
	out := make([]*watched, ranks)
	var node *rankevents.Node
	var off int64
	for r := range out {
		if r%perNode == 0 {
			node = rankevents.NewNode(rankevents.DefaultConfig())
			off = rng.Int64N(6e6) - 3e6
		}
		host := hostOf(r)
		w := &watched{sees: s, rank: r, rng: rng, gpu: gpuBase - rawBase + uint64(rng.Int64N(1e9)), got: map[int64][]model.Op{}}
		w.memory = memory{
			header: ring.Header{
				PID: uint64(100 + r), BootID: "boot-" + host, HostName: host, HostID: host, JobID: "job",
				Rank: int32(r), LocalRank: int32(r % perNode), WorldSize: ranks, Created: rawBase, RetainSeconds: 60,
			},
			comms: []ring.Comm{
				{},
				{Index: 1, Hash: 0xfeed, Ranks: ranks, Rank: int32(r), ABI: 6, GPU: 1, Name: "world"},
				{Index: 2, Hash: 0xbee0 + uint64(r%replicas), Ranks: stages, Rank: int32(r / replicas), ABI: 6, GPU: 1, Name: "pipeline"},
			},
			strings: []string{""}, real: epoch + off, step: -1,
		}
		if s.kernels {
			w.cupti = ring.CUPTIActive
		}
		w.read = node.Attach(&w.memory, "")
		out[r] = w
	}
	return out
}

func hostOf(rank int) string { return fmt.Sprintf("node%d", rank/perNode) }

// step writes what the witness sees of a step, and reads it.
func (w *watched) step(t *testing.T, n int, h *happened) {
	t.Helper()
	w.last = h.end
	if w.kineto {
		w.profile(n, h)
		return
	}
	if w.scopes {
		w.records = append(w.records, ring.Record{1: uint64(ring.KindStep) | 1<<8, 2: uint64(n), 3: ns(h.begin)})
		w.memory.step = int64(n)
		for _, s := range h.scopes {
			w.scope(n, s)
		}
	}
	for i := range h.comms {
		w.comm(n, &h.comms[i])
	}
	if w.kernels {
		w.kernelRecords(h)
	}
	w.read.Pass(ns(h.end+0.5), w.take)
}

func (w *watched) take(b *rankevents.Batch) {
	w.id = b.Rank
	for _, op := range b.Ops {
		if op.Step.OK {
			w.got[op.Step.V] = append(w.got[op.Step.V], op)
		}
	}
}

func (w *watched) finish() {
	if !w.kineto {
		w.read.Finish(ns(w.last+1000), false, w.take)
	}
}

var phases = map[string]ring.Phase{
	"": ring.PhaseNone, model.PhaseTrain: ring.PhaseTrain, model.PhaseCompile: ring.PhaseCompile, model.PhaseCheckpoint: ring.PhaseCheckpoint,
}

func (w *watched) scope(n int, s scope) {
	w.records = append(w.records, ring.Record{
		1: uint64(ring.KindScope) | 1<<8, 2: ns(s.begin), 3: ns(s.end), 4: uint64(n) | 77<<32, 5: w.code(s.name) | uint64(phases[s.phase])<<48,
	})
}

// comm writes the record that inject/nccl writes of an operation, of the events asked
// for.
func (w *watched) comm(n int, c *comm) {
	const took = 1500 // ns that an enqueueing takes
	step := uint64(0xffffffff)
	if w.scopes {
		step = uint64(n)
	}
	flags := map[string]ring.Flags{"Send": ring.FlagSend, "Recv": ring.FlagRecv}[c.fn]
	r := ring.Record{3: uint64(c.seq), 4: c.bytes, 5: uint64(uint32(int32(c.peer))), 6: ns(c.launch), 7: took | step<<32}
	r[13] = uint64(c.index) << 32
	seenAt := 0.005 + 0.03*w.rng.Float64()
	switch {
	case w.kernelChannels:
		flags |= ring.FlagKernel
		r[8], r[9] = (ns(c.start)+w.gpu)&^31, (ns(c.end)+w.gpu)&^31
		r[11] = ns(c.end + seenAt)
	default:
		flags |= ring.FlagEnqueuedOnly
		r[11] = ns(c.launch) + took
	}
	r[10] = uint64(uint32(0xffffffff)) << 32
	if w.proxies && c.wire > 0 {
		flags |= ring.FlagProxy | ring.FlagWaits
		ticks := func(ms float64) uint64 { return uint64(ms * 1e4) }
		r[2] = 8 << 48 // sent steps
		r[10] = uint64((w.rank+1)%ranks) << 32
		r[12] = ticks(c.start+0.02-c.launch) | ticks(c.end-c.launch)<<32
		r[14], r[15] = ticks(0.02)|ticks(c.credit)<<32, ticks(c.wire)
	}
	r[1] = uint64(ring.KindOp) | 1<<8 | uint64(flags)<<16 | uint64(c.index)<<32 | w.code(c.fn)<<48
	w.records = append(w.records, r)
}

// kernelRecords writes what CUPTI tells: kernels with their launches, by its own clock,
// and readings of that beside the host's.
func (w *watched) kernelRecords(h *happened) {
	cupti := func(ms float64) uint64 { return ns(ms) + w.gpu }
	for _, at := range []float64{h.begin, h.end} {
		w.records = append(w.records, ring.Record{
			1: uint64(ring.KindClock) | 1<<8, 2: ns(at), 3: cupti(at), 4: ns(at) + uint64(w.real), 5: 100 | uint64(ring.SourceCUPTI)<<32,
		})
	}
	const launched = 1 << 4
	for i, k := range h.kernels {
		w.records = append(w.records, ring.Record{
			1: uint64(ring.KindKernel) | 2<<8 | launched<<16, 2: cupti(k.start), 3: cupti(k.end), 4: cupti(k.launch),
			5: w.code(k.name) | 77<<32, 6: 7, 7: uint64(i), 8: uint64(k.blocks) | 1<<32 | 1<<48,
		})
	}
}

// kinetoScopes are the scopes that PyTorch's profiler records without being asked.
var kinetoScopes = map[string]string{
	model.ScopeDataLoading: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
	model.ScopeOptimizer:   "Optimizer.step#AdamW.step",
}

// profile hands on what internal/kineto makes of a rank's file: kernels, collectives
// without numbers, and the profiler's own scopes.
func (w *watched) profile(n int, h *happened) {
	host := w.header.HostName
	w.id = model.Rank{
		JobName: "job", JobID: "job", Rank: int64(w.rank), WorldSize: model.Some[int64](ranks), HostName: host,
		ClockID: "host:" + host + "/realtime",
	}
	step := model.Some(int64(n))
	at := func(ms float64) int64 { return (int64(ns(ms)) + w.real) / 1000 * 1000 }
	var ops []model.Op
	last := h.end // a step lasts as long as what was enqueued in it
	for i, k := range h.kernels {
		last = max(last, k.end)
		ops = append(ops, model.Op{
			Kind: model.KindCompute, Name: k.name, Key: kernelname.Key(k.name), Seq: int64(i), Step: step, Stream: model.Some[int64](7),
			Start: at(k.start), End: at(k.end), Launch: model.Some(at(k.launch)), WorkGrid: strconv.Itoa(k.blocks) + ",1,1",
		})
	}
	for i, s := range h.scopes {
		if name := kinetoScopes[s.name]; name != "" {
			ops = append(ops, model.Op{
				Kind: model.KindScope, Name: name, Seq: int64(i), Step: step, ThreadID: model.Some[int64](1), Start: at(s.begin), End: at(s.end),
			})
		}
	}
	numbers := map[string]int64{} // by operation and peer
	for i, c := range h.comms {
		last = max(last, c.end)
		name := collectives[c.fn]
		op := model.Op{
			Kind: model.KindCollective, Name: name, Seq: int64(i), Step: step, Stream: model.Some[int64](20),
			Start: at(c.start), End: at(c.end), Launch: model.Some(at(c.launch)),
			Comm:       model.Comm{ID: "default_pg", Size: model.Some[int64](ranks), Rank: model.Some(int64(w.rank))},
			Collective: model.Collective{Name: name, SeqScope: model.ScopeOrdinal, Bytes: model.Some(int64(c.bytes))},
		}
		if c.index == 2 {
			w.message(&op, &c)
		}
		key := op.Name + strconv.FormatInt(op.Peer.Or(-1), 10)
		op.Collective.Seq = model.Some(numbers[key])
		numbers[key]++
		ops = append(ops, op)
	}
	w.got[int64(n)] = append(ops, model.Op{Kind: model.KindStep, Name: "ProfilerStep", Step: step, Start: at(h.begin), End: at(last), StepOps: model.Some(int64(len(ops)))})
}

// message makes a send or a receive of what was a collective.
func (w *watched) message(op *model.Op, c *comm) {
	op.Kind, op.Name = model.KindSend, "send"
	if c.fn == "Recv" {
		op.Kind, op.Name = model.KindRecv, "recv"
	}
	op.Comm = model.Comm{ID: fmt.Sprintf("pipeline%d", w.rank%replicas), Size: model.Some[int64](stages)}
	op.Peer = model.Some(int64(c.peer*replicas + w.rank%replicas))
	op.Collective.Name = op.Name
}

var collectives = map[string]string{"AllReduce": model.AllReduce, "AllGather": model.AllGather, "ReduceScatter": model.ReduceScatter}

// told is a finding, reduced to what the table speaks of.
type told struct {
	rank, peer         int64
	kind, class, cause string
	op, host           string
	ranks              string // listed
}

// diagnose runs a job under a row's witness and returns all that the engine ever told
// of it, each once, and how many steps it judged.
func diagnose(t *testing.T, s sees, f fault, sh shape, seed int) (out []told, judged int) {
	t.Helper()
	j, watchers := newJob(f, sh, seed), watch(s, seed)
	length := steps
	if s.kineto {
		length = profiled
	}
	for n := range length {
		for r, h := range j.step(n) {
			watchers[r].step(t, n, &h)
		}
	}
	e := straggler.New(straggler.NewDefaultConfig(), func() time.Time { return time.Unix(0, epoch) })
	tell := func() {
		for _, v := range e.Verdicts() {
			f := &v.Finding
			x := told{f.Rank.Or(-1), f.Peer.Or(-1), f.Kind, f.Class, f.Cause, f.Op, f.Host, fmt.Sprint(f.Ranks)}
			if !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	for _, w := range watchers {
		w.finish()
	}
	for n := range int64(20 * length) { // without marks there may be more steps than the program says
		for _, w := range watchers {
			judged += w.deliver(e, n)
		}
		if n%judgeEvery == judgeEvery-1 {
			tell()
		}
	}
	require.Empty(t, e.Flush(), "all steps were complete")
	tell()
	return out, judged
}

const (
	// profiled is how many steps a recording of PyTorch's profiler holds.
	profiled = 10
	// judgeEvery is how many steps apart the engine is asked.
	judgeEvery = 8
)

// deliver hands a step to the engine; it returns how many steps that completed.
func (w *watched) deliver(e *straggler.Engine, n int64) int {
	ops := w.got[n]
	if len(ops) == 0 {
		return 0
	}
	id := w.id
	if w.stages {
		id.Parallel.PP = model.Some(int64(w.rank / replicas))
	}
	return len(e.Add(id, ops))
}
