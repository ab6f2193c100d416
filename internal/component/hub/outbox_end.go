// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// stop sends what is left once more, until last is done. What is refused then is lost.
func (b *outbox) stop(last context.Context) error {
	done := context.AfterFunc(last, b.cancel)
	defer done()
	b.mu.Lock()
	b.noted.quiet = true
	b.mu.Unlock()
	b.end()
	b.join()
	b.pieces.end()
	lost, why := 0, error(nil)
	for batch := b.batch(); len(batch) > 0 && last.Err() == nil; batch = b.batch() {
		err := b.send(last, deliver.Retry{Once: true, Whole: true}, func() []entry { return batch })
		if why == nil {
			why = err
		}
		if errors.Is(err, deliver.ErrClosed) { // it is stuck, and is not called again
			break
		}
		lost += b.last(batch, err)
	}
	if lost += b.close(); lost > 0 {
		b.lost.Add(int64(lost))
		return fmt.Errorf("deliver the last events: %d are lost: %w", lost, cmp.Or(why, context.Cause(last)))
	}
	return nil
}

// last notes what came of one of the last batches, and returns how many entries are lost with it.
func (b *outbox) last(batch []entry, err error) (lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.took(batch)
		return 0
	}
	rest := b.taken(batch, err)
	b.again.Add(int64(len(rest)))
	if b.pieces.last(len(rest), deliver.IsPermanent(err)) {
		return 0
	}
	b.unsent = b.unsent || !deliver.IsPermanent(err)
	b.remove(batch)
	return len(rest)
}

// join waits for the goroutine that sends; the gate ends its call.
func (b *outbox) join() {
	for {
		b.mu.Lock()
		running, changed := b.running, b.changed
		b.mu.Unlock()
		if !running {
			return
		}
		<-changed
	}
}

// close drops what is left, and returns how many entries that are.
func (b *outbox) close() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.pending.Len()
	b.unsent = b.unsent || left > 0
	b.pending.Clear()
	b.fresh = nil
	b.cancel()
	b.noted.close()
	return left
}
