// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// What all ranks of a job count alike differs between two attempts at one step, where data, skipped steps or batches
// did: a file that counts another number than those of the other ranks is of another attempt.

// shared is such a number in the file of one rank.
type shared struct {
	domain int
	file   string
	n      int64
}

// alike notes a number that all ranks count alike, where the file has it.
func alike(b *builder, t *torch, label string, keys ...string) {
	if t == nil {
		return
	}
	if _, ok := t.get(keys...); !ok {
		return
	}
	n, ok := t.number(keys...)
	if !ok {
		return
	}
	if b.shared == nil {
		b.shared = map[string][]shared{}
	}
	b.shared[label] = append(b.shared[label], shared{t.domain, t.name, n})
}

// judgeShared doubts the files that count another number than most. Where there are no most, all are in doubt.
func judgeShared(b *builder) {
	for _, label := range slices.Sorted(maps.Keys(b.shared)) {
		all := b.shared[label]
		files := map[int64]int{}
		for _, s := range all {
			files[s.n]++
		}
		if len(files) < 2 {
			continue
		}
		most := all[0]
		for _, s := range all {
			if files[s.n] > files[most.n] {
				most = s
			}
		}
		tied := 0
		for _, n := range files {
			if n == files[most.n] {
				tied++
			}
		}
		for _, s := range all {
			if s.n == most.n && tied < 2 {
				continue
			}
			other := most
			if s.n == most.n {
				other = all[slices.IndexFunc(all, func(o shared) bool { return o.n != s.n })]
			}
			if b.save.Domains[s.domain].State == model.DomainCommitted {
				b.doubt(s.domain, model.DomainTentative, Problem{
					CheckWitness, Suspect, s.file,
					fmt.Sprintf("got %s %d, and %d in %s; want the same of all ranks: one of them is of another attempt at this step", label, s.n, other.n, other.file),
				})
			}
		}
	}
}
