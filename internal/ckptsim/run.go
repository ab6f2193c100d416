// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
)

// Run is a save that is being made: which operation each rank does next.
type Run struct {
	save *Save
	next []int
	open []Handles
}

// Start begins a save.
func Start(s *Save) *Run {
	r := &Run{save: s, next: make([]int, len(s.Ranks)), open: make([]Handles, len(s.Ranks))}
	for i := range r.open {
		r.open[i] = Handles{}
	}
	return r
}

// Ready returns the ranks that can go on. None can where the save is done.
func (r *Run) Ready() []int {
	r.pass()
	var out []int
	for n, at := range r.next {
		if at < len(r.save.Ranks[n]) && r.save.Ranks[n][at].Kind != Barrier {
			out = append(out, n)
		}
	}
	return out
}

// pass lets every rank through a barrier at which all have arrived.
func (r *Run) pass() {
	for {
		for n, at := range r.next {
			if at >= len(r.save.Ranks[n]) || r.save.Ranks[n][at].Kind != Barrier {
				return
			}
		}
		for n := range r.next {
			r.next[n]++
		}
	}
}

// Step has a rank that is ready do its next operation.
func (r *Run) Step(d *Disk, n int) error {
	op := r.save.Ranks[n][r.next[n]]
	r.next[n]++
	if err := d.Do(op, r.open[n]); err != nil {
		return fmt.Errorf("run save of epoch %d, rank %d: %w", r.save.Epoch, n, err)
	}
	return nil
}

// Steps is how many operations a save has, without barriers.
func (s *Save) Steps() int {
	n := 0
	for _, ops := range s.Ranks {
		for _, op := range ops {
			if op.Kind != Barrier {
				n++
			}
		}
	}
	return n
}

// Advance does steps operations of a save in an order that rng chooses among those that the
// barriers allow, fewer where it ends before. Ranks go on for a while each: with a fair coin
// for every operation they would stay abreast.
func (r *Run) Advance(d *Disk, steps int, rng *rand.Rand) error {
	for steps > 0 {
		ready := r.Ready()
		if len(ready) == 0 {
			return nil
		}
		n := ready[rng.IntN(len(ready))]
		for burst := 1 + rng.IntN(12); burst > 0 && steps > 0; burst-- {
			if at := r.next[n]; at >= len(r.save.Ranks[n]) || r.save.Ranks[n][at].Kind == Barrier {
				break
			}
			if err := r.Step(d, n); err != nil {
				return err
			}
			steps--
		}
	}
	return nil
}

func splitPath(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(p, "/") {
			if part != "." && part != "" && !yield(part) {
				return
			}
		}
	}
}
