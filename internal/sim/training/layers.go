// SPDX-License-Identifier: Apache-2.0

package training

// layerKernels are those of a layer in the job's detail.
func (b *builder) layerKernels() (att, mlps, mlpBacks, attBack []kernel) {
	if b.g.Coarse {
		return coarseAttention, coarseMLP, coarseMLPBack, coarseAttBack
	}
	return attention, mlp, mlpBack, attentionBack
}

const (
	hidden     = 32 << 20 // bytes of a microbatch's activations
	parameters = 60 << 20 // bytes of a layer's gradients
)

// forward runs a layer.
func (b *builder) forward(layer int) {
	att, mlps, _, _ := b.layerKernels()
	b.run(att, 1, layer)
	b.tensor()
	if b.g.EP > 1 {
		b.expertise(experts, layer)
		return
	}
	b.run(mlps, 1, layer)
	b.tensor()
}

// backward runs a layer back.
func (b *builder) backward(layer int) {
	_, _, mlps, att := b.layerKernels()
	if b.g.EP > 1 {
		b.expertise(expertsBack, layer)
	} else {
		b.run(mlps, 1, layer)
		b.tensor()
	}
	b.run(att, 1, layer)
	b.tensor()
}

// tensor sums what tensor-parallel ranks computed; the next kernel needs it.
func (b *builder) tensor() {
	if b.g.TP > 1 {
		b.wait(b.collect(commTP, fnAllReduce, streamTensor, hidden*b.scale, false))
	}
}

// expertise sends tokens to their experts, computes there, and sends them back.
func (b *builder) expertise(ks []kernel, layer int) {
	b.run(router, 1, layer)
	b.wait(b.collect(commEP, fnAllToAll, streamExpert, hidden*b.scale, false))
	b.run(ks, 1, layer)
	b.wait(b.collect(commEP, fnAllToAll, streamExpert, hidden*b.scale, false))
}

// flat is the program of a job without stages: data parallel, with tensor and expert
// parallel layers where there are such.
func flat(g *grid) *program {
	b := newBuilder(g, 0)
	b.begin()
	m := g.Microbatches
	for mb := range m {
		b.microbatch(mb)
		b.scoped(inForward, func() {
			b.run(embedding, 1, 0)
			for l := range g.Layers {
				b.forward(l)
			}
			b.run(loss, 0.5, 0)
		})
		b.scoped(inBackward, func() {
			b.run(lossBack, 0.5, 0)
			for l := g.Layers - 1; l >= 0; l-- {
				b.backward(l)
				if mb == m-1 {
					b.bucket(g.Layers-l, g.Layers)
				}
			}
			b.run(embeddingBack, 1, 0)
		})
	}
	b.closeNorm()
	b.finish()
	return b.program
}

func (b *builder) microbatch(mb int) {
	b.mb = none
	if b.g.Microbatches > 1 || b.g.PP > 1 {
		b.mb = int32(mb)
	}
}

// bucket reduces the gradients of the layers that are done where a bucket is full.
func (b *builder) bucket(done, of int) {
	n := min(b.g.Buckets, of)
	if b.g.DP == 1 || done*n/of == (done-1)*n/of {
		return
	}
	i := b.collect(commDP, fnAllReduce, streamReduce, parameters*float64(of)/float64(n), true)
	b.pending = []int32{i} // the later are behind the earlier on their stream
}

// closeNorm sums the norm of all gradients, where ranks hold different ones.
func (b *builder) closeNorm() {
	if b.g.PP*b.g.TP*b.g.EP == 1 && !b.g.FSDP {
		return
	}
	for _, i := range b.pending {
		b.wait(i)
	}
	b.pending = nil
	b.run([]kernel{simple("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<L2NormFunctor<float>>", "at::native::multi_tensor_apply_kernel_norm", 320, 1, 80e3, workNone)}, 1, 0)
	b.pending = []int32{b.collect(commWorld, fnAllReduce, streamWorld, 4, false)}
}

// sharded is the program of a fully sharded job: each layer's parameters are gathered
// one layer ahead, its gradients scattered.
func sharded(g *grid) *program {
	b := newBuilder(g, 0)
	b.begin()
	gather := func(after int32) int32 {
		return b.collectAfter(commWorld, fnAllGather, streamReduce, parameters, true, after)
	}
	b.scoped(inForward, func() {
		b.run(embedding, 1, 0)
		before, here := int32(none), gather(b.last)
		for l := range g.Layers {
			next := int32(none)
			if l+1 < g.Layers {
				next = gather(before)
			}
			b.wait(here)
			before = b.last
			b.forward(l)
			here = next
		}
		b.run(loss, 0.5, 0)
	})
	b.scoped(inBackward, func() {
		b.run(lossBack, 0.5, 0)
		before, here := b.last, gather(b.last)
		for l := g.Layers - 1; l >= 0; l-- {
			next := int32(none)
			if l > 0 {
				next = gather(before)
			}
			b.wait(here)
			before = b.last
			b.backward(l)
			b.pending = []int32{b.collectAfter(commWorld, fnReduceScatter, streamReduce, parameters, true, b.last)}
			here = next
		}
		b.run(embeddingBack, 1, 0)
	})
	b.closeNorm()
	b.finish()
	return b.program
}
