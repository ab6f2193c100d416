// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// maxStarts bounds the passes whose beginning is remembered; of more, every second is forgotten.
const maxStarts = 256

// heldRecord is a record that waits for its step, and the pass in which it was read.
type heldRecord struct {
	ring.Record
	pass uint64
}

// trail is where in the ring this reader was, and the state of the readers before it.
type trail struct {
	starts  []start // of passes, in order
	cursors []uint64

	taken   *Position // of the reader before, until it was replayed
	counted Counted   // by the readers before
	kernels int64     // folded by them
	placed  uint64    // operations enqueued up to then were given their step by them
	newest  uint64    // latest enqueueing of an operation that was given one here
	until   uint64    // launch up to which kernels were folded
}

// start is where a pass began to read.
type start struct {
	pass    uint64
	cursors []uint64
	clock   gpuclock.Pair // the latest reading of the device's clock before
}

// setOut notes where the pass begins to read, and replays what the reader before left unfinished.
func (r *Rank) setOut() {
	r.steps.pass = r.pass
	if r.node.cfg.KeepPosition {
		r.trail.note(r.pass, r.src, r.kernels.clock.Last())
	}
	r.replay()
}

func (t *trail) note(pass uint64, src Source, clock gpuclock.Pair) {
	t.cursors = src.Cursors(t.cursors[:0])
	if n := len(t.starts); n > 0 && slices.Equal(t.starts[n-1].cursors, t.cursors) {
		return
	}
	if len(t.starts) >= maxStarts {
		kept := t.starts[:0]
		for i := 0; i < len(t.starts); i += 2 {
			kept = append(kept, t.starts[i])
		}
		t.starts = kept
	}
	t.starts = append(t.starts, start{pass, slices.Clone(t.cursors), clock})
}

// of returns the latest start at or before a pass: whatever was first read in it lies behind.
func (t *trail) of(pass uint64) *start {
	i := len(t.starts) - 1
	for i > 0 && t.starts[i].pass > pass {
		i--
	}
	return &t.starts[i]
}

// forget lets go of the starts before one that is needed.
func (t *trail) forget(before *start) {
	t.starts = slices.DeleteFunc(t.starts, func(s start) bool { return s.pass < before.pass })
}

// unfinished returns the first pass in which something was read that is still in an open step, or
// waits for its step; beyond the present one where nothing is.
func (r *Rank) unfinished() (pass uint64) {
	pass = r.pass + 1
	for _, s := range r.steps.open {
		pass = min(pass, s.pass)
	}
	for i := range r.pending {
		pass = min(pass, r.pending[i].pass)
	}
	for i := range r.kernels.held {
		pass = min(pass, r.kernels.held[i].pass)
	}
	for _, g := range r.groups.open {
		pass = min(pass, g.since)
	}
	return pass
}
