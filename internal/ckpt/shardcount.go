// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/pickle"

// counts notes what a part of the save counts, to compare it with the same part of other saves. What it counts
// need not be the step: a trainer of reinforcement learning makes several in each of its own, and leaves out
// those of an actor while its critic warms up.
func counts(b *builder, of string, s innerStep) {
	if !s.known || !b.save.Epoch.OK || s.domain >= len(b.save.Domains) {
		return
	}
	b.save.counters = append(b.save.counters, counter{
		domain: b.save.Domains[s.domain].Domain, of: of, file: s.file, n: s.step,
		step: b.save.Epoch.V, want: b.save.Epoch.V, skips: true, shard: true,
	})
}

// countsAll notes what optimizers count, each called by its part of the save.
func countsAll(b *builder, steps []innerStep) {
	for _, s := range steps {
		counts(b, "optimizer "+b.save.Domains[s.domain].ID, s)
	}
}

// countsScheduler notes how often the scheduler in a file was stepped. It lies below keys.
func countsScheduler(b *builder, i int, z *torch, keys ...string) {
	if z == nil {
		return
	}
	v, ok := z.get(keys...)
	if !ok {
		return
	}
	n, ok := schedulerSteps(z.at(v))
	counts(b, "scheduler "+b.save.Domains[i].ID, innerStep{domain: i, step: n, known: ok, file: z.name})
}

// at is the value v of a file as if it were all of it.
func (t *torch) at(v pickle.Value) *torch {
	below := *t
	below.root = v
	return &below
}
