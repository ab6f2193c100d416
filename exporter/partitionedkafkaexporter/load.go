// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

// maxLeft is how many bytes of messages, left by callers that gave up, a link takes: four requests of the default
// size. Beyond it, callers wait until brokers have answered some. What the callers that do so at the same time leave
// comes on top.
const maxLeft = 16 << 20

// load counts the messages of a link that brokers have not answered. Its zero value is ready, and it is safe for
// concurrent use.
type load struct {
	mu    sync.Mutex
	under int           // messages
	since time.Time     // of the last answer, or of the first message after a time without any
	left  int           // bytes of messages of callers that gave up
	room  chan struct{} // closed once left is below maxLeft; nil: it is
}

// sent counts a message.
func (l *load) sent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == 0 {
		l.since = time.Now()
	}
	l.under++
}

// answered takes out a message, and the bytes of one that was left.
func (l *load) answered(left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under--
	l.since = time.Now()
	if l.left -= left; l.left < maxLeft && l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// leave counts bytes of messages of a caller that gives up.
func (l *load) leave(bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left += bytes; l.left >= maxLeft && l.room == nil {
		l.room = make(chan struct{})
	}
}

// wait waits until there is room for a caller, and reports whether there is: false where ctx or the link ends first.
func (l *load) wait(ctx context.Context, aborted <-chan struct{}) bool {
	for {
		l.mu.Lock()
		room := l.room
		l.mu.Unlock()
		if room == nil {
			return true
		}
		select {
		case <-room:
		case <-aborted:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// silent reports whether no broker has answered anything for longer than each may take.
func (l *load) silent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.under > 0 && time.Since(l.since) >= kafka.RequestTimeout
}
