// SPDX-License-Identifier: Apache-2.0

package training

import "github.com/lockstep-otel/lockstep/internal/model"

// itemKind is what the host does next.
type itemKind uint8

const (
	itemHost   itemKind = iota // works for itself
	itemData                   // loads data
	itemKernel                 // launches a kernel
	itemComm                   // launches communication
	itemBegin                  // enters a scope
	itemEnd                    // leaves it
	itemSync                   // waits for its device
)

// Streams of a device.
const (
	streamCompute uint8 = iota
	streamReduce        // of the communicator of all data-parallel ranks
	streamTensor
	streamExpert
	streamWorld
	streamSend // forward, then backward
	streamSendBack
	streamRecv
	streamRecvBack
	streams
)

// streamIDs are the numbers that profilers show.
var streamIDs = [streams]int64{7, 20, 24, 28, 32, 36, 37, 40, 41}

const none = -1

// item is one thing that the host does in a step.
type item struct {
	kind   itemKind
	stream uint8
	comm   commKind
	fn     uint8
	scope  uint8
	work   work
	beside bool // computing may run beside this communication
	// after are earlier items that must have ended, or none.
	after    [2]int32
	kernel   int32
	slot     int32 // meeting of the communicator in the step
	ordinal  int32 // among those of its function
	begin    int32 // of itemEnd: where its scope began
	peer     int32 // of messages: how many stages on the other side is
	layer    int32
	mb, part int32
	bytes    float64
	nanos    float64
}

// Scopes of the host.
const (
	inData uint8 = iota
	inForward
	inBackward
	inOptimizer
	inPause
	inCheckpoint
	scopes
)

var scopeNames = [scopes]string{
	model.ScopeDataLoading, model.ScopeForward, model.ScopeBackward, model.ScopeOptimizer, model.ScopeGarbageCollection, model.ScopeCheckpointSave,
}

// program is what every rank of a stage does in a step.
type program struct {
	items   []item
	kernels []kernel
	slots   [commKinds]int32 // meetings of each kind of communicator; of messages, those received
	ofFn    [commKinds][fns]int32
}

// builder writes a program.
type builder struct {
	*program
	g       *grid
	stage   int
	kernel  map[string]int32
	last    int32 // computing item
	need    [2]int32
	scale   float64
	mb      int32
	part    int32
	pending []int32 // communication that the optimizer needs
	moments int     // experts' exchanges so far
}

func newBuilder(g *grid, stage int) *builder {
	return &builder{program: &program{}, g: g, stage: stage, kernel: map[string]int32{}, last: none, need: [2]int32{none, none}, scale: g.Scale, mb: none, part: none}
}

func (b *builder) add(it item) int32 {
	if it.kind != itemComm {
		it.after = b.need
		if it.kind == itemKernel {
			b.need = [2]int32{none, none}
		}
	}
	b.items = append(b.items, it)
	return int32(len(b.items) - 1)
}

// wait makes the next kernel run after an item.
func (b *builder) wait(i int32) {
	if b.need[0] == none {
		b.need[0] = i
		return
	}
	b.need[1] = i
}

// scoped runs f in a scope of the host.
func (b *builder) scoped(s uint8, f func()) {
	begin := b.add(item{kind: itemBegin, scope: s, mb: b.mb, part: b.part})
	f()
	b.add(item{kind: itemEnd, scope: s, begin: begin, mb: b.mb, part: b.part})
}

// run launches kernels, each of which takes the given share of its time.
func (b *builder) run(ks []kernel, share float64, layer int) {
	for _, k := range ks {
		id := k.name + k.rest
		n, ok := b.kernel[id]
		if !ok {
			n = int32(len(b.kernels))
			b.kernel[id] = n
			b.kernels = append(b.kernels, k)
		}
		b.last = b.add(item{
			kind: itemKernel, stream: streamCompute, kernel: n, work: k.work, layer: int32(layer), mb: b.mb, part: b.part, nanos: k.nanos * share * b.scale,
		})
	}
}

// collect launches a collective behind what was launched to compute so far.
func (b *builder) collect(k commKind, fn, stream uint8, bytes float64, beside bool) int32 {
	return b.collectAfter(k, fn, stream, bytes, beside, b.last)
}

func (b *builder) collectAfter(k commKind, fn, stream uint8, bytes float64, beside bool, after int32) int32 {
	i := b.add(item{
		kind: itemComm, stream: stream, comm: k, fn: fn, beside: beside, after: [2]int32{after, none},
		slot: b.slots[k], ordinal: b.ofFn[k][fn], bytes: bytes, mb: b.mb, part: b.part, layer: int32(b.moments),
	})
	b.slots[k]++
	b.ofFn[k][fn]++
	return i
}

// message launches a send or a receive; slot is the receiver's.
func (b *builder) message(fn, stream uint8, peer int, slot int32, bytes float64) int32 {
	return b.add(item{
		kind: itemComm, stream: stream, comm: commPP, fn: fn, after: [2]int32{b.last, none}, peer: int32(peer), slot: slot, ordinal: slot, bytes: bytes,
		mb: b.mb, part: b.part,
	})
}

// begin is what every step begins with.
func (b *builder) begin() {
	b.scoped(inData, func() { b.add(item{kind: itemData, nanos: 1.2e6}) })
	b.add(item{kind: itemHost, nanos: 50e3})
	n := int32(len(b.kernels))
	b.kernels = append(b.kernels, inputs)
	b.last = b.add(item{kind: itemKernel, stream: streamCompute, kernel: n, nanos: inputs.nanos, mb: none, part: none})
}

// finish is what every step ends with.
func (b *builder) finish() {
	b.mb, b.part = none, none
	b.scoped(inOptimizer, func() {
		for _, i := range b.pending {
			b.wait(i)
		}
		b.run(optimizer, 1/b.scale, 0)
	})
	b.add(item{kind: itemSync})
	b.add(item{kind: itemHost, nanos: 100e3})
}
