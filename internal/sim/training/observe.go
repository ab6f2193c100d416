// SPDX-License-Identifier: Apache-2.0

package training

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// epoch is the Unix time at which jobs begin, ns.
const epoch = 1_700_000_000_000_000_000

// sees is what a witness records.
type sees struct{ ends, wires, scopes, kernels, profiler bool }

var sights = map[Witness]sees{
	HostEvents:     {},
	KernelChannels: {ends: true},
	ProxySteps:     {ends: true, wires: true},
	Scopes:         {ends: true, wires: true, scopes: true},
	CUPTI:          {ends: true, wires: true, scopes: true, kernels: true},
	Kineto:         {ends: true, kernels: true, profiler: true},
}

// profilerScopes are the scopes that PyTorch's profiler records without being asked.
var profilerScopes = [scopes]string{
	inData: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", inOptimizer: "Optimizer.step#AdamW.step",
}

// observer makes operations of what happened.
type observer struct {
	sees
	scopes    [scopes]string // names of those that are recorded
	templates [][]model.Op   // by stage and item: what does not depend on rank and step
	shown     [][]bool
	grids     [][][maxBlocks / 16]string // by stage and kernel
	order     []seen
	buf       []model.Op
	clocks    [2]reading // the host's and the device's in this step
}

// seen is an operation before it is written: an item, or a pause or keeping of the host.
type seen struct {
	start float64
	item  int32
}

const (
	seenPause = -1 - iota
	seenKept
)

// reading turns true time into a clock's, for one step.
type reading struct {
	at, offset, slope float64
	id                string
}

func (c *reading) unix(t float64) int64 {
	return epoch + int64(t+c.offset+c.slope*(t-c.at))
}

func (o *observer) init(j *Job) {
	o.sees = sights[j.spec.Witness]
	switch {
	case o.profiler:
		o.scopes = profilerScopes
	case o.sees.scopes:
		o.scopes = scopeNames
	}
	for _, p := range j.programs {
		o.program(p)
	}
}

// program prepares the operations of a stage.
func (o *observer) program(p *program) {
	ops, shown := make([]model.Op, len(p.items)), make([]bool, len(p.items))
	seq := map[string]int64{}
	for i := range p.items {
		it, op := &p.items[i], &ops[i]
		shown[i] = o.item(p, it, op)
		if shown[i] {
			key := op.ComparisonKey()
			op.Seq = seq[key]
			seq[key]++
		}
	}
	grids := make([][maxBlocks / 16]string, len(p.kernels))
	for i := range p.kernels {
		grids[i] = p.kernels[i].grids()
	}
	o.templates, o.shown, o.grids = append(o.templates, ops), append(o.shown, shown), append(o.grids, grids)
}

// item fills in what is known of an item's operation; false where none is recorded.
func (o *observer) item(p *program, it *item, op *model.Op) bool {
	if it.mb >= 0 {
		op.Microbatch = model.Some(int64(it.mb))
	}
	if it.part >= 0 {
		op.ModelChunk = model.Some(int64(it.part))
	}
	switch it.kind {
	case itemBegin:
		op.Kind, op.Name = model.KindScope, o.scopes[it.scope]
		return op.Name != ""
	case itemKernel:
		k := &p.kernels[it.kernel]
		op.Kind, op.Name, op.Key, op.Stream = model.KindCompute, k.name, k.key, model.Some(streamIDs[it.stream])
		if k.copied > 0 {
			op.Kind, op.WorkBytes = model.KindCopy, model.Some(k.copied)
		}
		return o.kernels
	case itemComm:
		o.communication(it, op)
		return true
	}
	return false
}

func (o *observer) communication(it *item, op *model.Op) {
	c := &op.Collective
	op.Name, op.Key, op.Stream = fnSpans[it.fn], fnNames[it.fn], model.Some(streamIDs[it.stream])
	if !o.profiler {
		op.Name, op.Key = fnNames[it.fn], ""
	}
	c.Bytes, c.DType = model.Some(int64(it.bytes)), "bfloat16"
	switch it.fn {
	case fnSend:
		op.Kind, c.Name, c.SeqScope = model.KindSend, "send", model.ScopeComm
	case fnRecv:
		op.Kind, c.Name, c.SeqScope = model.KindRecv, "recv", model.ScopeComm
	default:
		op.Kind, c.Name, c.SeqScope = model.KindCollective, fnNames[it.fn], model.ScopeCommFunc
		if o.profiler {
			c.SeqScope = model.ScopeComm
		}
	}
	op.Comm.Name = commNames[it.comm]
	if o.ends {
		c.State = "completed"
	} else {
		c.State = "scheduled"
	}
}

// ops returns what is known of a rank in a step.
func (j *Job) ops(s *Step, r int) []model.Op {
	if s.N != j.n || j.missing(r) {
		return nil
	}
	o := &j.watch
	st := &j.states[r]
	p := j.programs[st.stage]
	j.readClocks(r)
	o.list(j, r)
	o.buf = o.buf[:0]
	first, last := math.Inf(1), 0.0
	for _, e := range o.order {
		if e.item < 0 {
			o.buf = append(o.buf, o.hostScope(j, st, e.item))
			continue
		}
		o.buf = append(o.buf, o.templates[st.stage][e.item])
		begin, end := j.complete(r, p, e.item, &o.buf[len(o.buf)-1])
		first, last = min(first, begin), max(last, end)
	}
	kept := o.buf
	if j.spec.Lost > 0 {
		kept = o.lose(j, r)
	}
	begin, end := st.begin, max(st.host, st.device)
	if !o.sees.scopes && !o.profiler && last > 0 {
		begin, end = first, last // nobody marks steps: they are as long as their communication
	}
	host := &o.clocks[0]
	kept = append(kept, model.Op{
		Kind: model.KindStep, Name: "step", Step: model.Some(j.n), Start: host.unix(begin), End: host.unix(end), StepOps: model.Some(int64(len(kept))),
		Phase: model.PhaseTrain,
	})
	o.buf = kept
	return kept
}

func (j *Job) missing(r int) bool {
	return j.spec.Missing > 0 && unit(hash(j.seed, forMissing, uint64(r))) < j.spec.Missing
}

// lose drops some operations.
func (o *observer) lose(j *Job, r int) []model.Op {
	h := hash(hash(j.seed, forLost, uint64(r)), uint64(j.n), 0)
	out := o.buf[:0]
	for i := range o.buf {
		if h = mix(h); unit(h) >= j.spec.Lost {
			out = append(out, o.buf[i])
		}
	}
	return out
}

// list lists what is recorded, by start.
func (o *observer) list(j *Job, r int) {
	st := &j.states[r]
	at := j.times[r*j.stride:]
	o.order = o.order[:0]
	for i, ok := range o.shown[st.stage] {
		switch {
		case !ok:
		case o.ends:
			o.insert(seen{at[i].start, int32(i)})
		default: // when it began is not known
			o.insert(seen{at[i].launch, int32(i)})
		}
	}
	if st.paused[1] > 0 && o.scopes[inPause] != "" {
		o.insert(seen{st.paused[0], seenPause})
	}
	if st.kept[1] > 0 && o.scopes[inCheckpoint] != "" {
		o.insert(seen{st.kept[0], seenKept})
	}
}

// insert keeps the order; what comes is nearly sorted.
func (o *observer) insert(e seen) {
	o.order = append(o.order, e)
	for i := len(o.order) - 1; i > 0 && o.order[i-1].start > e.start; i-- {
		o.order[i-1], o.order[i] = e, o.order[i-1]
	}
}

func (o *observer) hostScope(j *Job, st *state, what int32) model.Op {
	op := model.Op{Kind: model.KindScope, Name: o.scopes[inPause], Step: model.Some(j.n), ThreadID: st.thread}
	span := st.paused
	if what == seenKept {
		op.Name, op.Phase, span = o.scopes[inCheckpoint], model.PhaseCheckpoint, st.kept
	}
	op.Start, op.End = o.clocks[0].unix(span[0]), o.clocks[0].unix(span[1])
	return op
}

// complete fills in what differs by rank and step; it returns from when to when it is
// known to have been, by true time.
func (j *Job) complete(r int, p *program, i int32, op *model.Op) (first, last float64) {
	o, st := &j.watch, &j.states[r]
	it, t := &p.items[i], &j.times[r*j.stride+int(i)]
	op.Step = model.Some(j.n)
	if it.kind == itemBegin {
		op.ThreadID = st.thread
		op.Start, op.End = o.clocks[0].unix(t.start), o.clocks[0].unix(t.end)
		return t.start, t.end
	}
	end := t.end
	if it.kind == itemComm {
		m := &j.meetings[j.meeting(r, it)]
		end = j.left(r, it, m)
		j.describeComm(r, it, op)
	} else {
		j.describeKernel(r, it, op, p)
	}
	op.Launch = model.Some(o.clocks[0].unix(t.launch))
	op.Correlation = model.Some(j.n<<20 | int64(i) + 1)
	if !o.ends {
		op.EndInferred = true
		op.Start = op.Launch.V
		op.End = op.Start + 1500
		return t.launch, t.launch + 1500
	}
	device := &o.clocks[1]
	op.Start, op.End, op.ClockID = device.unix(t.start), device.unix(end), device.id
	return t.launch, end
}

func (j *Job) describeKernel(r int, it *item, op *model.Op, p *program) {
	k := &p.kernels[it.kernel]
	if k.copied > 0 {
		return
	}
	amount := 1.0
	if it.work == workTokens || (it.work == workExperts && !j.hotBlind) {
		amount = j.amount(r, it)
	}
	blocks := min(max(int(16*amount+0.5), 1), maxBlocks/16-1)
	op.WorkGrid = j.watch.grids[j.states[r].stage][it.kernel][blocks]
	if e := &j.effects[r]; e.chosen && e.kernel == it.kernel {
		op.Name = k.other
	}
	if j.spec.Work && it.work != workNone {
		op.WorkTokens = model.Some(int64(4096 * j.tokenShare(r, it)))
	}
}

// tokenShare is how many of the usual tokens an item works on.
func (j *Job) tokenShare(r int, it *item) float64 {
	if it.work == workExperts {
		return j.loadOf(r, it.layer)
	}
	return j.tokens[j.share(r, it)]
}

func (j *Job) describeComm(r int, it *item, op *model.Op) {
	group, member := j.group(it.comm, r)
	c := &j.comms[it.comm][group]
	op.Comm.ID, op.Comm.Digest = c.id, c.digest
	op.Comm.Size, op.Comm.Rank = model.Some(int64(j.size(it.comm))), model.Some(int64(member))
	p := j.programs[j.states[r].stage]
	switch {
	case it.comm == commPP:
		op.Collective.Seq = model.Some(j.n*int64(j.slots[commPP]) + int64(it.slot))
		op.Peer = model.Some(int64(j.rankAt(int(it.peer), j.dp(r), j.tp(r))))
	case j.watch.profiler:
		op.Collective.Seq = model.Some(j.n*int64(p.slots[it.comm]) + int64(it.slot))
	default:
		op.Collective.Seq = model.Some(j.n*int64(p.ofFn[it.comm][it.fn]) + int64(it.ordinal))
	}
	if j.watch.wires {
		j.describeWaits(r, it, op, c, group, member)
	}
}

// chunk is what one step of a proxy sends, bytes.
const chunk = 512 << 10

// wireDelay is what the smallest message waits for the wire, ns.
const wireDelay = 4e3

func (j *Job) describeWaits(r int, it *item, op *model.Op, c *communicator, group, member int) {
	var busy float64
	switch {
	case it.fn == fnRecv || it.fn == fnAllToAll && !c.wide:
		return
	case it.fn == fnSend:
		to := j.rankAt(int(it.peer), j.dp(r), j.tp(r))
		if j.node(to) == j.node(r) {
			return
		}
		busy = it.bytes / cardSpeed * j.hop(r, to, false)
	default:
		if busy = j.sent(r, it); busy == 0 {
			return
		}
		op.Peer = model.Some(int64(j.next(it.comm, c, group, member)))
	}
	luck := lognormal(hash(hash(j.states[r].draws, forWire, uint64(it.slot)), uint64(it.comm), uint64(it.fn)), 0.1)
	op.Waits.Wire = model.Some((0.8*busy + wireDelay) * luck * 1e-9)
	op.Waits.WireSteps = model.Some(int64(it.bytes/chunk) + 1)
	op.Waits.GPU, op.Waits.Peer = model.Some(2e-6), model.Some(0.1*busy*1e-9)
}
