// SPDX-License-Identifier: Apache-2.0

package hang

// action is what an instruction does.
type action uint8

const (
	call   action = iota // a collective
	post                 // messages: one, or a coalesced group of them
	wait                 // the current stream waits for all of a group
	sync                 // the host waits for the device
	work                 // the device computes
	launch               // the host prepares; a place for a host to get stuck in
)

// message is one side of a message.
type message struct {
	send bool
	to   int // stages away: +1 or -1
	tag  string
}

// instr is one instruction of a rank's program. Programs are shared by the ranks of a stage.
type instr struct {
	do    action
	kind  kind
	name  string // as recorded: all_reduce, _all_gather_base
	async bool   // the current stream does not wait
	root  int    // member, -1: none
	in    []int64
	out   []int64
	dtype string
	// uneven: sizes differ between members (all_to_all), and sum up over all of them.
	uneven bool
	msgs   []message
	batch  bool  // coalesced
	dur    int64 // ns on the device
	step   int
}

// builder writes the program of a stage.
type builder struct {
	*grid
	stage int
	step  int
	out   []instr
}

// shape of activations: tokens by hidden.
const (
	tokens = 2048
	hidden = 5120
)

func (b *builder) emit(i instr) {
	i.step = b.step
	b.out = append(b.out, i)
}

func (b *builder) size(k kind) int {
	// All ranks of a stage have groups of equal sizes.
	p := b.places[b.at(b.stage, 0, 0)][k]
	if p.group < 0 {
		return 1
	}
	return len(b.groups[p.group].ranks)
}

// collective emits an operation, where the group has more than one member.
func (b *builder) collective(k kind, name string, rows int64, async bool) {
	n := int64(b.size(k))
	if n < 2 {
		return
	}
	i := instr{do: call, kind: k, name: name, async: async, root: -1, dtype: "BFloat16", dur: 200_000}
	i.in, i.out = []int64{rows, hidden}, []int64{rows, hidden}
	switch name {
	case "_all_gather_base":
		i.out[0] *= n
	case "_reduce_scatter_base":
		i.in[0] *= n
	case "broadcast", "reduce":
		i.root = 0
	case "all_to_all":
		i.uneven = true
	}
	b.emit(i)
}

// small emits an operation on some numbers, in Float.
func (b *builder) small(k kind, name string, n int64) {
	if b.size(k) < 2 {
		return
	}
	i := instr{do: call, kind: k, name: name, root: -1, in: []int64{n}, out: []int64{n}, dtype: "Float", dur: 40_000}
	if name == "broadcast" || name == "reduce" {
		i.root = 0
	}
	b.emit(i)
}

func (b *builder) wait(k kind) {
	if b.size(k) > 1 {
		b.emit(instr{do: wait, kind: k})
	}
}

func (b *builder) work(us int64) { b.emit(instr{do: work, dur: us * 1000}) }

func (b *builder) messageKind() kind {
	if b.WorldMessages {
		return world
	}
	return pipeline
}

// messages emits what goes to and comes from neighbours: as one coalesced group, or one
// by one in the given order.
func (b *builder) messages(list ...message) {
	var there []message
	for _, m := range list {
		if s := b.stage + m.to; s >= 0 && s < b.PP {
			there = append(there, m)
		}
	}
	base := instr{do: post, kind: b.messageKind(), root: -1, in: []int64{tokens, 1, hidden}, out: []int64{tokens, 1, hidden}, dtype: "BFloat16", dur: 150_000}
	switch {
	case len(there) == 0:
	case b.Batched:
		base.msgs, base.batch = there, true
		b.emit(base)
	default:
		for _, m := range there {
			one := base
			one.msgs, one.async = []message{m}, m.send
			b.emit(one)
		}
	}
}

// program returns the whole run of a stage.
func (g *grid) program(stage int) []instr {
	b := &builder{grid: g, stage: stage}
	for b.step = range g.Steps {
		b.train()
	}
	return b.out
}

func (b *builder) train() {
	b.emit(instr{do: launch})
	b.small(tensor, "broadcast", 8)
	if b.Batched {
		b.interleaved()
	} else {
		for range b.Micro {
			b.forward(true)
		}
		for m := range b.Micro {
			b.backward(m == b.Micro-1, true)
		}
	}
	if !b.Batched && b.PP > 1 {
		b.wait(b.messageKind())
	}
	b.wait(data)
	b.small(data, "all_reduce", 1)
	if b.step > 0 && b.PP > 1 && (b.stage == 0 || b.stage == b.PP-1) {
		b.collective(embedding, "all_reduce", 512, false)
	}
	b.small(tensor, "all_reduce", 4)
	b.small(world, "all_reduce", 2)
	b.small(data, "reduce", 1)
	b.work(300)
	if b.SyncEvery > 0 && b.step%b.SyncEvery == 0 {
		b.emit(instr{do: sync})
	}
}

// interleaved is one forward, one backward: as many forwards ahead as there are stages
// behind, then pairs, each exchange one coalesced group.
func (b *builder) interleaved() {
	ahead := min(b.Micro, b.PP-1-b.stage)
	for range ahead {
		b.forward(true)
	}
	rest := b.Micro - ahead
	if rest > 0 {
		b.messages(message{send: false, to: -1, tag: "f"})
	}
	for i := range rest {
		b.forward(false)
		b.messages(message{send: true, to: 1, tag: "f"}, message{send: false, to: 1, tag: "b"})
		b.backward(i == b.Micro-1, false)
		if i < rest-1 {
			b.messages(message{send: true, to: -1, tag: "b"}, message{send: false, to: -1, tag: "f"})
		} else {
			b.messages(message{send: true, to: -1, tag: "b"})
		}
	}
	for i := range ahead {
		b.backward(i == ahead-1, true)
	}
}

func (b *builder) forward(exchange bool) {
	if exchange {
		b.messages(message{send: false, to: -1, tag: "f"})
	}
	if b.Sharded {
		b.collective(data, "_all_gather_base", 256, true)
	}
	for l := range b.Layers {
		if b.Sharded {
			b.wait(data)
			if l+1 < b.Layers {
				b.collective(data, "_all_gather_base", 256, true)
			}
		}
		b.collective(tensor, "_all_gather_base", tokens, false)
		b.work(400)
		b.collective(tensor, "_reduce_scatter_base", tokens, false)
		b.experts()
	}
	if exchange {
		b.messages(message{send: true, to: 1, tag: "f"})
	}
}

func (b *builder) backward(last, exchange bool) {
	if exchange {
		b.messages(message{send: false, to: 1, tag: "b"})
	}
	for range b.Layers {
		b.experts()
		b.collective(tensor, "_all_gather_base", tokens, false)
		b.work(800)
		b.collective(tensor, "_reduce_scatter_base", tokens, false)
		switch {
		case b.Sharded:
			b.collective(data, "_reduce_scatter_base", 256, true)
		case last:
			b.collective(data, "allreduce_coalesced", 1024, true)
		}
	}
	if exchange {
		b.messages(message{send: true, to: -1, tag: "b"})
	}
}

func (b *builder) experts() {
	if b.EP < 2 {
		return
	}
	b.collective(expert, "all_to_all", 1024, false)
	b.work(200)
	b.collective(expert, "all_to_all", 1024, false)
}
