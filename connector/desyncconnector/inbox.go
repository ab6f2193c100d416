// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"sync"
	"sync/atomic"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// maxInbox bounds what waits for the watch while a job is judged: four states of each of
// 16,384 ranks, which send one every two seconds.
const maxInbox = 1 << 16

// opsPerItem is how many operations, and bytesPerItem how many bytes of call stacks, take as much
// room as a small state: about 4 KiB.
const (
	opsPerItem   = 16
	bytesPerItem = 4 << 10
)

// feed gives the watch one thing that was brought.
type feed func(*watch.Watch)

// inbox holds what was brought until the watch is free. Whoever brings something waits for
// no judgement and for no consumer.
type inbox struct {
	mu     sync.Mutex
	states otelmap.StateReader
	feeds  []feed
	size   int

	foreign, unread, dropped atomic.Int64
}

// add takes something of a size in items; the caller holds the inbox. What finds no room is
// counted.
func (b *inbox) add(size int, f feed) {
	if b.size+size > maxInbox {
		b.dropped.Add(int64(size))
		return
	}
	b.size += size
	b.feeds = append(b.feeds, f)
}

// drain gives the watch, which the caller holds, what has been brought so far.
func (b *inbox) drain(w *watch.Watch) {
	b.mu.Lock()
	feeds := b.feeds
	b.feeds, b.size = nil, 0
	b.mu.Unlock()
	for _, f := range feeds {
		f(w)
	}
}

// deliver empties the inbox where the watch is free; else whoever has it does so, at the next
// look at the latest.
func (h *hub) deliver() {
	if h.watching.TryLock() {
		defer h.watching.Unlock()
		h.inbox.drain(h.watch)
		h.snapshot()
	}
}
