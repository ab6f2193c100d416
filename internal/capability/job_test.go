// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// The simulated jobs: what really happens, of which each row of the table sees a
// part. Times are ms of true time.

const (
	ranks    = 8
	perNode  = 2
	steps    = 40
	culprit  = 5 // who is at fault, where one is; of a link, its sender
	transfer = 2.0
	latency  = 0.010 // of a launch
)

// kernel is one that is no communication.
type kernel struct {
	name               string
	blocks             int // of its grid
	launch, start, end float64
}

type scope struct {
	name       string
	phase      string
	begin, end float64
}

// comm is one collective, or one side of a message.
type comm struct {
	fn                 string // of NCCL
	index              int    // of the communicator: 1 the world, 2 the pipeline
	seq                int
	bytes              uint64
	peer               int // of a message
	launch, start, end float64
	wire, credit       float64 // waits of the sending proxy, 0 where it sends by none
}

// happened is one rank's step.
type happened struct {
	begin, end float64 // of the host
	scopes     []scope
	kernels    []kernel
	comms      []comm
}

// delay is what a fault adds to one rank's step.
type delay struct {
	scope, phase string  // in which the host is kept; in none where empty
	host         float64 // ms for which it is, longer than the device can be ahead where it never waits
	device       float64 // factor of all kernels; 0: 1
	work         float64 // factor of all kernels and of their grids; 0: 1
	gemm         float64 // factor of the matrix products; 0: 1
	optimizer    float64 // factor of what follows the last collective; 0: 1
	layers       int     // more in the rank's stage of a pipeline
	gemmName     string  // "" for the usual
	gemmBlocks   int     // of its grid; 0 for the usual
	persistent   bool    // that does not grow with the work
}

// fault is what is wrong with a job.
type fault struct {
	name  string
	at    []int // the ranks at fault
	delay func(j *job, rank, step int) delay
	link  float64 // ms that the culprit's sends are longer
}

// shape is how a program's hosts and devices go together.
type shape string

const (
	reads     shape = "reads"     // data-parallel; the host reads the loss after each step
	readsAt   shape = "reads at"  // and waits for its device before it launches a collective
	ahead     shape = "ahead"     // and never waits: it is a step ahead of its device
	sharded   shape = "sharded"   // parameters are gathered a layer ahead, and the norm of gradients read
	unwaited  shape = "unwaited"  // and nothing is read
	repeating shape = "repeating" // and no collective but the gathering of parameters
	pipelined shape = "pipelined" // four stages, two replicas
)

type job struct {
	fault
	shape
	rng          *rand.Rand
	host, device [ranks]float64
	before       [ranks]float64 // when the device was done with the step before
	seqs         map[[2]int]int // of messages, by their sides
}

func newJob(f fault, s shape, seed int) *job {
	return &job{fault: f, shape: s, rng: rand.New(rand.NewPCG(uint64(seed), 4)), seqs: map[[2]int]int{}}
}

func (j *job) vary(x, share float64) float64 { return x * max(0.2, 1+share*j.rng.NormFloat64()) }

func (j *job) of(rank, step int) delay {
	var d delay
	if j.delay != nil && (j.at == nil || slices.Contains(j.at, rank)) {
		d = j.delay(j, rank, step)
	}
	d.gemmName, d.gemmBlocks = cmp.Or(d.gemmName, "ampere_sgemm_128x64_tn"), cmp.Or(d.gemmBlocks, 1024)
	d.device, d.work = cmp.Or(d.device, 1), cmp.Or(d.work, 1)
	d.gemm, d.optimizer = cmp.Or(d.gemm, 1), cmp.Or(d.optimizer, 1)
	return d
}

func (j *job) step(n int) []happened {
	switch j.shape {
	case pipelined:
		return j.pipeline(n)
	case sharded, unwaited, repeating:
		return j.gathering(n)
	}
	return j.dataParallel(n)
}

// hold keeps the host for the fault's time.
func (h *happened) hold(d *delay, at float64) float64 {
	if d.host > 0 && d.scope != "" {
		h.scopes = append(h.scopes, scope{d.scope, d.phase, at, at + d.host})
	}
	return at + d.host
}

func (h *happened) mark(name string, begin, end float64) {
	h.scopes = append(h.scopes, scope{name, model.PhaseTrain, begin, end})
}

// load is the next batch; a loader that is kept is in its scope for as long.
func (j *job) load(h *happened, d *delay, at float64) float64 {
	end := at + j.vary(4, 0.1)
	if d.scope == model.ScopeDataLoading {
		end += d.host
	}
	h.mark(model.ScopeDataLoading, at, end)
	if d.scope == "" {
		end = h.hold(d, end)
	}
	return end
}

// run lets the device run a kernel.
func (j *job) run(r int, h *happened, name string, blocks int, launch, took float64) {
	start := max(j.device[r], launch+latency)
	j.device[r] = start + took
	h.kernels = append(h.kernels, kernel{name, blocks, launch, start, start + took})
}

// other runs a kernel that is no matrix product.
func (j *job) other(r int, h *happened, d *delay, name string, launch, took float64) {
	const blocks = 4096
	j.run(r, h, name, int(blocks*d.work), launch, j.vary(took, 0.03)*d.device*d.work)
}

// product runs a matrix product.
func (j *job) product(r int, h *happened, d *delay, launch, took float64) {
	blocks := d.gemmBlocks
	if !d.persistent {
		blocks = int(float64(blocks) * d.work)
	}
	j.run(r, h, d.gemmName, blocks, launch, j.vary(took, 0.03)*d.device*d.gemm*d.work)
}

var buckets = []struct {
	work  float64 // ms of backward pass before it
	bytes uint64
}{{12, 100 << 20}, {6, 100 << 20}, {3, 50 << 20}}

// dataParallel is a step of some 45 ms: loading, a forward pass, a backward pass
// whose gradients are reduced in three buckets beside it, an optimizer, and a loss
// that the host reads.
func (j *job) dataParallel(n int) []happened {
	out := make([]happened, ranks)
	var ready [3][ranks]float64 // when the gradients of a bucket are
	var launch [3][ranks]float64
	var optimizer [ranks]float64
	for r := range out {
		h, d := &out[r], j.of(r, n)
		at := j.host[r]
		h.begin = at
		at = j.load(h, &d, at)
		from := at
		if d.scope != "" && d.scope != model.ScopeDataLoading && d.scope != model.ScopeCheckpointSave {
			at = h.hold(&d, at+0.2)
		}
		j.product(r, h, &d, at+0.1, 6)
		j.other(r, h, &d, "attention", at+0.2, 3)
		j.other(r, h, &d, "norm", at+0.3, 1)
		at++
		h.mark(model.ScopeForward, from, at)
		from = at
		for b, bucket := range buckets {
			j.product(r, h, &d, at+0.1, 0.7*bucket.work)
			j.other(r, h, &d, "attention_backward", at+0.2, 0.3*bucket.work)
			if j.shape == readsAt {
				at = max(at, j.device[r])
			}
			launch[b][r], ready[b][r] = at+0.3, j.device[r]
			at += 0.4
		}
		h.mark(model.ScopeBackward, from, at)
		optimizer[r] = at
		j.host[r] = at + 0.5
	}
	free := [ranks]float64{}
	for b := range buckets {
		free = j.reduce(out, n*len(buckets)+b, buckets[b].bytes, ready[b], launch[b], free)
	}
	for r := range out {
		h, d := &out[r], j.of(r, n)
		j.device[r] = max(j.device[r], free[r])
		j.run(r, h, "adam", 320, optimizer[r]+0.1, j.vary(2, 0.03)*d.device*d.optimizer)
		h.mark(model.ScopeOptimizer, optimizer[r], j.host[r])
		h.end = j.wait(r)
		if d.scope == model.ScopeCheckpointSave {
			h.end = h.hold(&d, h.end)
		}
		j.host[r] = h.end
	}
	return out
}

// wait returns when the host goes on after what it has launched.
func (j *job) wait(r int) float64 {
	until := j.device[r]
	switch j.shape {
	case ahead:
		until = j.before[r]
	case unwaited, repeating:
		until = j.device[r] - 20
	}
	j.before[r] = j.device[r]
	return max(j.host[r], until) + 0.02
}

// sends reports whether a rank's part of a ring leaves its node.
func sends(r int) bool { return r%perNode == perNode-1 }

// reduce performs one all_reduce of the world.
func (j *job) reduce(out []happened, seq int, bytes uint64, ready, launch, free [ranks]float64) [ranks]float64 {
	return j.collect(out, comm{fn: "AllReduce", seq: seq, bytes: bytes}, ready, launch, free)
}

// collect performs a collective of the world for which all wait, over a ring in the
// order of ranks.
func (j *job) collect(out []happened, what comm, ready, launch, free [ranks]float64) [ranks]float64 {
	var start [ranks]float64
	last := 0.0
	for r := range out {
		start[r] = max(ready[r], launch[r]+latency, free[r])
		last = max(last, start[r])
	}
	for r := range out {
		c := what
		c.index, c.launch, c.start = 1, launch[r], start[r]
		c.end = last + transfer*float64(c.bytes)/(100<<20) + j.link + 0.003*j.rng.Float64()
		if sends(r) {
			c.wire, c.credit = j.vary(0.5, 0.15), j.vary(0.3, 0.15)
			if r == culprit {
				c.wire += j.vary(j.link, 0.1)
			} else {
				c.credit += j.link * 0.8
			}
		}
		out[r].comms = append(out[r].comms, c)
		free[r] = c.end
	}
	return free
}

const (
	replicas     = 2
	stages       = ranks / replicas
	microbatches = 4
	stageLayers  = 2
	hop          = 0.1 // ms that an activation takes
)

// layers of a sharded model, each of 2 ms forward and 4 backward.
const layers = 6

// gathering is a step of sharded training of some 45 ms: the parameters of each layer
// are gathered while the device computes the layer before, forward and backward, and
// the gradients of a layer are scattered while it computes the next.
func (j *job) gathering(n int) []happened {
	out := make([]happened, ranks)
	var launch [ranks]float64
	for r := range out {
		h, d := &out[r], j.of(r, n)
		h.begin = j.host[r]
		at := j.load(h, &d, h.begin)
		from := at
		if d.scope != "" && d.scope != model.ScopeDataLoading {
			at = h.hold(&d, at+0.1)
		}
		h.mark(model.ScopeForward, from, at+1)
		launch[r], j.host[r] = at+0.1, at+1
	}
	free, before := j.device, j.device // the layer before the one that computes is over
	gather, scatter := n*2*layers, n*layers
	for l := range 2 * layers {
		free = j.collect(out, comm{fn: "AllGather", seq: gather + l, bytes: 50 << 20}, before, launch, free)
		if l > layers && j.shape != repeating {
			free = j.collect(out, comm{fn: "ReduceScatter", seq: scatter, bytes: 50 << 20}, j.device, launch, free)
			scatter++
		}
		before = j.device
		for r := range out {
			d := j.of(r, n)
			j.device[r] = max(j.device[r], free[r])
			took := 2.0
			if l >= layers {
				took = 4
			}
			launch[r] += 0.04
			j.product(r, &out[r], &d, launch[r], 0.9*took)
			j.other(r, &out[r], &d, "norm", launch[r], 0.1*took)
		}
	}
	if j.shape != repeating {
		free = j.collect(out, comm{fn: "ReduceScatter", seq: scatter, bytes: 50 << 20}, j.device, launch, free)
	}
	if j.shape == sharded {
		free = j.reduce(out, n, 4, free, launch, free)
	}
	for r := range out {
		j.device[r] = max(j.device[r], free[r])
		out[r].end = j.wait(r)
		j.host[r] = out[r].end
	}
	return out
}

// pipeline is a step of a pipeline of four stages with two replicas, rank = stage *
// 2 + replica: four micro-batches forward, then backward, and the norm of all
// gradients, for which everybody waits.
func (j *job) pipeline(n int) []happened {
	out := make([]happened, ranks)
	for r := range out {
		h, d := &out[r], j.of(r, n)
		h.begin = j.host[r]
		at := j.load(h, &d, h.begin)
		if d.scope != "" && d.scope != model.ScopeDataLoading {
			at = h.hold(&d, at)
		}
		j.host[r] = at + 1
		h.mark(model.ScopeForward, j.host[r]-1, j.host[r])
	}
	for m := range microbatches {
		for s := range stages {
			j.micro(out, n, s, s-1, 3, m)
		}
	}
	for m := range microbatches {
		for s := stages - 1; s >= 0; s-- {
			j.micro(out, n, s, s+1, 6, m)
		}
	}
	var ready, launch, free [ranks]float64
	for r := range out {
		ready[r], launch[r] = j.device[r], j.host[r]
	}
	free = j.reduce(out, n, 4, ready, launch, free)
	for r := range out {
		j.device[r] = free[r]
		out[r].end = max(j.host[r], free[r]) + 0.02
		j.host[r] = out[r].end
	}
	return out
}

// micro runs one micro-batch through a stage of both replicas, with what the stage
// from hands to it.
func (j *job) micro(out []happened, n, stage, from int, took float64, m int) {
	for rep := range replicas {
		r := stage*replicas + rep
		if 0 <= from && from < stages {
			j.message(out, from*replicas+rep, r)
		}
		d := j.of(r, n)
		for range stageLayers + d.layers {
			j.product(r, &out[r], &d, j.host[r]+0.01*float64(m), 0.9*took/stageLayers)
			j.other(r, &out[r], &d, "norm", j.host[r]+0.01*float64(m), 0.1*took/stageLayers)
		}
	}
}

// message moves what a rank has computed; it ends when both sides have come.
func (j *job) message(out []happened, src, dst int) {
	side := func(r, peer int, fn string) comm {
		start := max(j.device[r], j.host[r]+latency)
		return comm{fn: fn, index: 2, peer: peer / replicas, bytes: 8 << 20, launch: j.host[r] + 0.001, start: start}
	}
	s, d := side(src, dst, "Send"), side(dst, src, "Recv")
	s.end = max(s.start, d.start) + hop
	d.end = s.end
	j.device[src], j.device[dst] = s.end, d.end
	key := [2]int{src, dst}
	s.seq, d.seq = j.seqs[key], j.seqs[key]
	j.seqs[key]++
	s.wire, s.credit = j.vary(0.05, 0.1), j.vary(0.02, 0.1)
	out[src].comms = append(out[src].comms, s)
	out[dst].comms = append(out[dst].comms, d)
}
