// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A program is what one rank does in a step, in words:
//
//	c10      compute for 10 ms
//	c10:gemm compute for 10 ms in an operation of that name
//	h5       the host launches nothing for 5 ms
//	h5:data  the same inside a scope of that name
//	y2       copy for 2 ms
//	*        all_reduce: leaves 1 ms after the last member has come
//	B        broadcast from rank 0: leaves 1 ms after rank 0 has come
//	x9/4     compute for 9 ms, the collective that comes next begins after 4
//	s        the host waits for its device (live worlds only)
//
// In a live world only collectives, scopes and steps are recorded: the host
// enqueues what the device does, and goes on at once.
//
// Ranks start together unless their program begins with @3 (3 ms late).
type program = string

const transferMs = 1.0

// world simulates steps of programs and feeds an engine.
type world struct {
	t       *testing.T
	e       *Engine
	now     time.Time
	at      map[int64]float64 // ms, true time of each rank; of its device in a live world
	live    bool
	host    map[int64]float64 // ms, of each rank's host in a live world
	offsets map[int64]float64 // ms, taken from the stamps
	size    int64
	drop    map[int64]bool // ranks that are never delivered
	stage   func(rank int64) model.Optional[int64]
	clock   string // of all ranks; "" gives each its own
	clockOf func(rank int64) string
	hosts   func(rank int64) string
	extra   func(rank, step int64) []model.Op // more than the program has
	change  func(rank int64, op *model.Op)    // alters what is delivered
	ring    func(rank int64) hop              // how a rank's collectives transfer; nil: 1 ms
	sink    func(rank int64, ops []model.Op)  // takes it in the engine's place
	reports []*StepReport
}

func newWorld(t *testing.T, size int, change ...func(*Config)) *world {
	t.Helper()
	cfg := NewDefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	require.NoError(t, cfg.Validate())
	w := &world{t: t, now: time.Unix(1000, 0), at: map[int64]float64{}, host: map[int64]float64{}, offsets: map[int64]float64{}, size: int64(size), drop: map[int64]bool{}}
	w.e = New(cfg, func() time.Time { return w.now })
	return w
}

func (w *world) rank(r int64) model.Rank {
	host := fmt.Sprintf("host%d", r)
	if w.hosts != nil {
		host = w.hosts(r)
	}
	id := orElse(w.clock, fmt.Sprintf("clock%d", r))
	if w.clockOf != nil {
		id = w.clockOf(r)
	}
	var par model.Parallel
	if w.stage != nil {
		par.PP = w.stage(r)
	}
	return model.Rank{
		Parallel: par,
		JobName:  "job", JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some(w.size),
		HostName: host, ClockID: id,
	}
}

// hop is what a rank's place in the ring makes of a collective, in ms.
type hop struct {
	transfer   float64 // from the last arrival to its exit
	wire, peer float64 // waits of its proxy; no waits are recorded where wire is 0
	steps      int64   // that the wire wait is the sum over; 0: usualSteps, -1: not recorded
	next       model.Optional[int64]
	silent     bool // it sends nothing by proxy, and its wire wait is recorded as 0
}

// usualSteps is how many proxy steps a collective of the programs sends.
const usualSteps = 8

func (h *hop) record(op *model.Op) {
	if h.silent {
		op.Waits.Wire, op.Waits.WireSteps = model.Some(0.0), model.Some(int64(0))
		return
	}
	if h.wire <= 0 {
		return
	}
	op.Waits.Wire, op.Waits.Peer, op.Peer = model.Some(h.wire/1e3), model.Some(h.peer/1e3), h.next
	switch {
	case h.steps == 0:
		op.Waits.WireSteps = model.Some[int64](usualSteps)
	case h.steps > 0:
		op.Waits.WireSteps = model.Some(h.steps)
	}
}

// run is one rank's walk through its program.
type run struct {
	rank  int64
	words []string
	ops   []model.Op
	seq   map[string]int64
	begin float64
	cover float64 // start of a collective that an x covers, or -1
}

// step simulates one step of one program per rank and delivers it.
func (w *world) step(n int64, programs ...program) {
	w.t.Helper()
	runs := make([]*run, len(programs))
	for i, p := range programs {
		r := &run{rank: int64(i), words: strings.Fields(p), seq: map[string]int64{}, cover: -1}
		if late, ok := strings.CutPrefix(r.words[0], "@"); ok {
			w.at[r.rank] += number(w.t, late)
			r.words = r.words[1:]
		}
		r.begin = w.at[r.rank]
		if w.live {
			r.begin = w.host[r.rank]
		}
		runs[i] = r
	}
	for w.advance(runs) {
	}
	for _, r := range runs {
		w.deliver(n, r)
	}
}

// advance runs every rank to its next collective and performs that; false when
// all programs have ended.
func (w *world) advance(runs []*run) bool {
	var name string
	var starts, ready []float64
	for _, r := range runs {
		for len(r.words) > 0 && r.words[0] != "*" && r.words[0] != "B" {
			w.local(r, r.words[0])
			r.words = r.words[1:]
		}
		if len(r.words) == 0 {
			continue
		}
		name = r.words[0]
		r.words = r.words[1:]
		start := w.at[r.rank]
		if r.cover >= 0 {
			start, r.cover = r.cover, -1
		}
		if w.live {
			start = max(start, w.host[r.rank]+launchMs)
		}
		starts, ready = append(starts, start), append(ready, w.at[r.rank])
	}
	if starts == nil {
		return false
	}
	require.Len(w.t, starts, len(runs), "programs must have as many collectives")
	last := starts[0]
	for _, s := range starts {
		last = max(last, s)
	}
	for i, r := range runs {
		h := hop{transfer: transferMs}
		if w.ring != nil {
			h = w.ring(r.rank)
		}
		end := last + h.transfer
		if name == "B" {
			end = max(starts[0], starts[i]) + transferMs
		}
		op := r.collective(name, starts[i], end, w.size)
		if w.live {
			op.Launch = model.Some(nanos(w.host[r.rank]))
		}
		h.record(op)
		w.at[r.rank] = max(end, ready[i])
	}
	return true
}

// launchMs is how long a launch takes to reach an idle device.
const launchMs = 0.010

// enqueue performs a word in a live world.
func (w *world) enqueue(r *run, word string) {
	rest, name, named := strings.Cut(word[1:], ":")
	switch word[0] {
	case 'c':
		w.at[r.rank] = max(w.at[r.rank], w.host[r.rank]) + number(w.t, rest)
	case 'x':
		whole, before, _ := strings.Cut(rest, "/")
		r.cover = max(w.at[r.rank], w.host[r.rank]) + number(w.t, before)
		w.at[r.rank] = max(w.at[r.rank], w.host[r.rank]) + number(w.t, whole)
	case 'h':
		from := w.host[r.rank]
		w.host[r.rank] += number(w.t, rest)
		if named {
			r.op(model.KindScope, name, from, w.host[r.rank])
		}
	case 's':
		w.host[r.rank] = max(w.host[r.rank], w.at[r.rank])
	default:
		w.t.Fatalf("unknown word %q", word)
	}
}

func (w *world) local(r *run, word string) {
	if w.live {
		w.enqueue(r, word)
		return
	}
	kind, rest := word[0], word[1:]
	rest, name, named := strings.Cut(rest, ":")
	switch kind {
	case 'c':
		w.add(r, model.KindCompute, orElse(name, "gemm"), number(w.t, rest))
	case 'y':
		w.add(r, model.KindCopy, orElse(name, "memcpy"), number(w.t, rest))
	case 'h':
		d := number(w.t, rest)
		if named {
			r.op(model.KindScope, name, w.at[r.rank], w.at[r.rank]+d)
		}
		w.at[r.rank] += d
	case 'x':
		whole, before, _ := strings.Cut(rest, "/")
		r.cover = w.at[r.rank] + number(w.t, before)
		w.add(r, model.KindCompute, "gemm", number(w.t, whole))
	default:
		w.t.Fatalf("unknown word %q", word)
	}
}

func (w *world) add(r *run, kind model.OpKind, name string, d float64) {
	r.op(kind, name, w.at[r.rank], w.at[r.rank]+d)
	w.at[r.rank] += d
}

func (r *run) op(kind model.OpKind, name string, start, end float64) *model.Op {
	r.ops = append(r.ops, model.Op{
		Kind: kind, Name: name, Seq: r.seq[name], Start: nanos(start), End: nanos(end), Stream: model.Some(int64(7)),
	})
	r.seq[name]++
	return &r.ops[len(r.ops)-1]
}

func (r *run) collective(word string, start, end float64, size int64) *model.Op {
	name := map[string]string{"*": model.AllReduce, "B": model.Broadcast}[word]
	op := r.op(model.KindCollective, name, start, end)
	op.Comm = model.Comm{ID: "world", Size: model.Some(size), Rank: model.Some(r.rank)}
	op.Collective = model.Collective{Name: name, Seq: model.Some(op.Seq), SeqScope: model.ScopeOrdinal, Bytes: model.Some(int64(1024))}
	if word == "B" {
		op.Collective.Root = model.Some(int64(0))
	}
	return op
}

func (w *world) deliver(n int64, r *run) {
	if w.drop[r.rank] {
		return
	}
	shift := nanos(w.offsets[r.rank]) - nanos(0)
	if w.extra != nil {
		r.ops = append(r.ops, w.extra(r.rank, n)...)
	}
	end := w.at[r.rank]
	if w.live {
		end = w.host[r.rank]
	}
	sent := int64(len(r.ops))
	r.op(model.KindStep, "step", r.begin, end).StepOps = model.Some(sent)
	for i := range r.ops {
		r.ops[i].Step = model.Some(n)
		r.ops[i].Start -= shift
		r.ops[i].End -= shift
		r.ops[i].Launch.V -= shift
		if w.change != nil {
			w.change(r.rank, &r.ops[i])
		}
	}
	if w.sink != nil {
		w.sink(r.rank, r.ops)
		return
	}
	w.reports = append(w.reports, w.e.Add(w.rank(r.rank), r.ops)...)
}

// nanos places simulated milliseconds on the Unix time line.
func nanos(ms float64) int64 { return 1_700_000_000_000_000_000 + int64(ms*1e6+0.5) }

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// each repeats a program for n ranks, with others for some of them.
func each(n int, p program, but map[int]program) []program {
	out := make([]program, n)
	for i := range out {
		out[i] = p
		if q, ok := but[i]; ok {
			out[i] = q
		}
	}
	return out
}
