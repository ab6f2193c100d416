// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
)

// inboxShare is the part of max_memory_mib that may wait for the watch while a job is judged.
const inboxShare = 2

// feed gives the watch one thing that was brought.
type feed func(*watch.Watch)

// inbox holds what was brought until the watch is free. Whoever brings something waits for
// no judgement and for no consumer.
type inbox struct {
	limit  int // bytes
	mu     sync.Mutex
	states rankstate.Decoder
	feeds  []feed
	size   int
	// lists are the lists of members that wait: ranks of a job share them.
	lists map[*int64]struct{}

	foreign, unread, dropped atomic.Int64
}

// feedBytes is what one thing takes beside itself.
const feedBytes = 128

// add takes something of a size in bytes, and reports whether there was room; the caller holds the inbox.
// What finds no room is counted.
func (b *inbox) add(size int, f feed) bool {
	if b.size+feedBytes+size > b.limit {
		b.dropped.Add(1)
		return false
	}
	b.size += feedBytes + size
	b.feeds = append(b.feeds, f)
	return true
}

// addState takes the state of a rank. The lists of members of one that finds no room do not wait.
func (b *inbox) addState(s *model.RankState, f feed) {
	size, fresh := b.sizeOf(s)
	if b.add(size, f) {
		return
	}
	for _, at := range fresh {
		delete(b.lists, at)
	}
}

// sizeOf returns what a state takes, with the lists of members that none has that waits, and notes that
// these wait.
func (b *inbox) sizeOf(s *model.RankState) (size int, fresh []*int64) {
	size = s.Bytes()
	for i := range s.Comms {
		members := s.Comms[i].Members
		at := unsafe.SliceData(members)
		if _, waits := b.lists[at]; waits || len(members) == 0 {
			continue
		}
		if b.lists == nil {
			b.lists = map[*int64]struct{}{}
		}
		b.lists[at] = struct{}{}
		fresh = append(fresh, at)
		size += len(members) * int(unsafe.Sizeof(*at))
	}
	return size, fresh
}

// drain gives the watch, which the caller holds, what has been brought so far.
func (b *inbox) drain(w *watch.Watch) {
	b.mu.Lock()
	feeds := b.feeds
	b.feeds, b.size = nil, 0
	clear(b.lists)
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
