// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"bytes"
	"cmp"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	maxShardCounts = 4    // numbers that are read of each file of DCP
	maxSaveCounts  = 4096 // of each save
)

// shardCount is what the optimizer in a file of DCP counts: the greatest of the few numbers that are read. A
// parameter that was without a gradient for some steps counts fewer.
type shardCount struct {
	id, of string // the part of the save, and the optimizer: the top of the items' names
	innerStep
}

// countShard reads what the optimizer counts in some of the items of a file of DCP.
func countShard(b *builder, id string, shard *file, items []dcpItem) {
	first, reads := len(b.counted), 0
	for k := range items {
		it := &items[k]
		of, ok := b.names.optimizerStep(it.fqn)
		if !ok || it.transformed || it.offset+it.length > shard.size || reads == maxShardCounts || b.countReads == maxSaveCounts {
			continue
		}
		if begin, err := head(shard, it); err != nil || !bytes.Equal(begin, []byte("PK\x03\x04")) {
			continue // of another serialization
		}
		reads++
		b.countReads++
		i := b.domain(model.DomainOptimizer, id, shard.path)
		n, ok, err := b.blobNumber(shard, it)
		if err != nil {
			check, severity := b.beyond(CheckWitness, Unreadable, err)
			b.doubt(i, model.DomainTentative, Problem{check, severity, shard.path, it.failed(err).Error()})
		}
		if ok {
			noteCount(b, first, shardCount{id, of, innerStep{domain: i, step: n, known: true, file: shard.path}})
		}
	}
}

// noteCount keeps the greatest count of each optimizer of a file, whose counts begin at first.
func noteCount(b *builder, first int, c shardCount) {
	for i := range b.counted[first:] {
		if old := &b.counted[first+i]; old.of == c.of {
			old.step = max(old.step, c.step)
			return
		}
	}
	b.counted = append(b.counted, c)
}

// shardCounters are what the optimizers count in the files of DCP that inner read, which lie in this save under
// a name, or are the save.
func shardCounters(b *builder, inner *builder, in string) (all []counter) {
	if !b.save.Epoch.OK {
		return nil
	}
	for _, c := range inner.counted {
		of := model.Domain{Kind: model.DomainOptimizer, ID: c.id}
		if in != "" {
			of.ID += " in " + in
		}
		all = append(all, counter{
			domain: of, of: c.of + " of " + of.ID, file: c.file, n: c.step, step: b.save.Epoch.V, want: b.save.Epoch.V,
		})
	}
	return all
}

// countTitan compares what torchtitan's optimizer counts with the step: it makes one in each.
func countTitan(b *builder) {
	for _, c := range shardCounters(b, b, "") {
		c.shard = true
		b.save.counters = append(b.save.counters, c)
	}
}

// countNested compares what optimizers of FSDP count with the Trainer's own step. Whether they are fused is
// not read.
func (h *hf) countNested(inner *builder, name string) {
	all := shardCounters(h.builder, inner, name)
	for _, c := range all {
		c.skips, c.job = h.f.has("scaler.pt"), &h.job
		c.step, c.want = cmp.Or(h.step.V, c.step), cmp.Or(h.step.V, c.step)
		h.save.counters = append(h.save.counters, c)
	}
	h.fused = h.fused || len(all) > 0
}

// countWithin compares what optimizers in a folder of DCP count with those of other saves alone: steps may be
// skipped, or count otherwise than the save's.
func countWithin(b *builder, inner *builder, name string) {
	for _, c := range shardCounters(b, inner, name) {
		c.skips, c.shard = true, true
		b.save.counters = append(b.save.counters, c)
	}
}
