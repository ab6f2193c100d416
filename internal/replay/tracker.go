// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"sync"
)

// Tracker knows the finite inputs of one process. The zero value is ready; it
// is safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	pending map[int]string
	next    int
	over    bool
	done    chan struct{}
}

// Register announces a finite input, named for people. The returned function
// says that it has ended, well or badly; calls after the first do nothing.
func (t *Tracker) Register(name string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.next
	t.next++
	if t.pending == nil {
		t.pending = map[int]string{}
	}
	t.pending[id] = name
	return sync.OnceFunc(func() { t.end(id) })
}

func (t *Tracker) end(id int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, id)
	if len(t.pending) == 0 && !t.over {
		t.over = true
		close(t.channel())
	}
}

// Done returns a channel that is closed once at least one input has been
// registered and all that were have ended. It stays closed: what registers
// later belongs to a replay that is over.
func (t *Tracker) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.channel()
}

// channel makes the channel on first use, so that the zero value is ready.
func (t *Tracker) channel() chan struct{} {
	if t.done == nil {
		t.done = make(chan struct{})
	}
	return t.done
}

// Pending returns the names of the inputs that have not ended, sorted.
func (t *Tracker) Pending() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.pending))
	for _, name := range t.pending {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// process is the tracker that receivers and `lockstep run` share.
var (
	processMu sync.Mutex
	process   = &Tracker{}
)

func current() *Tracker {
	processMu.Lock()
	defer processMu.Unlock()
	return process
}

// Register announces a finite input of this process; see [Tracker.Register].
func Register(name string) (done func()) { return current().Register(name) }

// Done is closed when all finite input of this process has ended; see
// [Tracker.Done]. Without any it never is.
func Done() <-chan struct{} { return current().Done() }

// Pending returns the names of this process's inputs that have not ended.
func Pending() []string { return current().Pending() }

// Reset forgets all inputs. Channels and functions handed out before belong to
// the past and no longer count. For tests, and for a program that replays twice.
func Reset() {
	processMu.Lock()
	defer processMu.Unlock()
	process = &Tracker{}
}
