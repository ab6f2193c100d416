// SPDX-License-Identifier: Apache-2.0

package training

// staged is the program of a stage of a pipeline: one forward, one backward
// (interleaved where a stage holds several chunks), with tensor, expert and data
// parallelism inside. The stage has layers more or fewer than others.
func staged(g *grid, stage, layers int) *program {
	b := newBuilder(g, stage)
	b.begin()
	order := schedule(g, stage)
	for n, turn := range order {
		b.microbatch(turn.mb)
		if g.Chunks > 1 {
			b.part = int32(turn.part)
		}
		if turn.back {
			b.backwardTurn(turn, layers, lastOf(order, n))
		} else {
			b.forwardTurn(turn, layers)
		}
	}
	b.closeNorm()
	b.finish()
	b.slots[commPP] = int32(2 * g.Chunks * g.Microbatches)
	return b.program
}

// headShare is how much of the vocabulary's work the last stage has: who divides a model
// leaves it less else to do, so that it is a few percent over other stages.
const headShare = 0.15

// turn is one microbatch's pass through one chunk.
type turn struct {
	back     bool
	part, mb int
}

// schedule is the order of a stage's turns.
func schedule(g *grid, stage int) []turn {
	p, v, m := g.PP, g.Chunks, g.Microbatches
	warm := p - stage - 1
	if v > 1 {
		warm = (p-stage-1)*2 + (v-1)*p
	}
	total := m * v
	warm = min(warm, total)
	nth := func(i int, back bool) turn {
		if v == 1 {
			return turn{back: back, mb: i}
		}
		part, mb := i/p%v, i/(p*v)*p+i%p
		if back {
			part = v - 1 - part
		}
		return turn{back, part, mb}
	}
	var out []turn
	for i := range warm {
		out = append(out, nth(i, false))
	}
	for i := range total - warm {
		out = append(out, nth(warm+i, false), nth(i, true))
	}
	for i := total - warm; i < total; i++ {
		out = append(out, nth(i, true))
	}
	return out
}

// lastOf reports whether no later turn goes back, so that gradients are complete.
func lastOf(order []turn, n int) bool {
	for _, t := range order[n+1:] {
		if t.back {
			return false
		}
	}
	return true
}

// virtual is where a turn stands among all chunks of all stages, and how many there are.
func (b *builder) virtual(t turn) (at, of int) {
	return t.part*b.g.PP + b.stage, b.g.PP * b.g.Chunks
}

// slotOf is the meeting of a message among those that its receiver gets in a step.
func (b *builder) slotOf(back bool, virtual, mb int) int32 {
	n := (virtual/b.g.PP)*b.g.Microbatches + mb
	if back {
		n += b.g.Chunks * b.g.Microbatches
	}
	return int32(n)
}

func (b *builder) forwardTurn(t turn, layers int) {
	at, of := b.virtual(t)
	b.scoped(inForward, func() {
		if at > 0 {
			b.wait(b.message(fnRecv, streamRecv, (at-1)%b.g.PP, b.slotOf(false, at, t.mb), hidden*b.scale))
		} else {
			b.run(embedding, 1, 0)
		}
		for l := range layers {
			b.forward(l)
		}
		if at == of-1 {
			b.run(loss, headShare, 0)
		} else {
			b.message(fnSend, streamSend, (at+1)%b.g.PP, b.slotOf(false, at+1, t.mb), hidden*b.scale)
		}
	})
}

func (b *builder) backwardTurn(t turn, layers int, last bool) {
	at, of := b.virtual(t)
	b.scoped(inBackward, func() {
		if at < of-1 {
			b.wait(b.message(fnRecv, streamRecvBack, (at+1)%b.g.PP, b.slotOf(true, at, t.mb), hidden*b.scale))
		} else {
			b.run(lossBack, headShare, 0)
		}
		for l := layers - 1; l >= 0; l-- {
			b.backward(l)
			if last {
				b.bucket(layers-l, layers)
			}
		}
		if at > 0 {
			b.message(fnSend, streamSendBack, (at-1)%b.g.PP, b.slotOf(true, at-1, t.mb), hidden*b.scale)
		} else {
			b.run(embeddingBack, 1, 0)
		}
	})
}
