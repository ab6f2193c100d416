// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// ErrBusy is the error of a batch that found no room: the sender repeats it.
var ErrBusy = errors.New("the analysis is busy, and too much waits for it; send the batch again")

// defaultInboxBytes has room for some batches of a large job.
const defaultInboxBytes = 16 << 20

// waitingBytes is what a batch takes beside what was read of it.
const waitingBytes = 128

// waiting is a batch that the engine has not used yet.
type waiting struct {
	input Input
	// used is closed when the engine has used it; deliveries are valid from then on.
	used chan struct{}
	sent deliveries
	err  error // the engine panicked; valid as sent is
}

// failed returns the error of a batch that was used, where the engine panicked.
func (w *waiting) failed() error {
	select {
	case <-w.used:
		return w.err
	default:
		return nil
	}
}

// inbox holds batches while the engine works. It is safe for concurrent use.
type inbox struct {
	limit int // bytes

	mu      sync.Mutex
	batches []*waiting
	bytes   int
	room    chan struct{} // closed when there is more room; nil: no sender waits
}

// put appends a batch. Where there is no room, it waits for that.
func (b *inbox) put(ctx context.Context, w *waiting) error {
	if room := b.add(w); room == nil {
		return nil
	}
	late := time.NewTimer(deliver.Patience)
	defer late.Stop()
	for {
		room := b.add(w)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-late.C:
			return fmt.Errorf("take a batch of %d bytes: %w", w.input.Bytes, ErrBusy)
		case <-ctx.Done():
			return fmt.Errorf("take a batch of %d bytes: %w: %w", w.input.Bytes, ErrBusy, context.Cause(ctx))
		}
	}
}

// add appends a batch, and returns nil; or what is closed when there is more room. A batch that is larger
// than the inbox fits into an empty one.
func (b *inbox) add(w *waiting) (room <-chan struct{}) {
	size := w.input.Bytes + waitingBytes
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > 0 && b.bytes+size > b.limit {
		if b.room == nil {
			b.room = make(chan struct{})
		}
		return b.room
	}
	b.bytes += size
	b.batches = append(b.batches, w)
	return nil
}

// first takes out the batch that came first; nil where none waits.
func (b *inbox) first() *waiting {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.batches) == 0 {
		return nil
	}
	w := b.batches[0]
	b.batches[0] = nil // what was used is not kept behind the slice
	b.batches = b.batches[1:]
	b.leave(w)
	return w
}

// leave makes room for what a batch took; the caller holds the lock.
func (b *inbox) leave(w *waiting) {
	b.bytes -= w.input.Bytes + waitingBytes
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// withdraw takes a batch out, and reports whether it was still in.
func (b *inbox) withdraw(w *waiting) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.batches {
		if other == w {
			b.batches = slices.Delete(b.batches, i, i+1)
			b.leave(w)
			return true
		}
	}
	return false
}

func (b *inbox) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.batches)
}
