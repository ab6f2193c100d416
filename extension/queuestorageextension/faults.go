// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
)

const (
	// lookEvery is how often the room on a full disk is looked at.
	lookEvery = time.Second
	// calm is for how long nothing is refused before a stored request shows that the fault is over. On a disk with
	// little room, small requests are stored in between.
	calm = 10 * time.Second
	// leastRoom is how much room ends a full disk, beside twice what was refused: pages are copied before they change.
	leastRoom = 1 << 20
)

// faults reports to the collector which queues cannot write, and why. It is safe for concurrent use.
type faults struct {
	status health.Status
	log    *zap.Logger
	room   func(dir string) (free, total uint64, err error)

	mu  sync.Mutex
	all map[string]*fault // by queue
}

// fault is what keeps one queue from writing.
type fault struct {
	err   error
	bytes int       // of the largest transaction that was refused
	last  time.Time // when the last one was
}

func newFaults(log *zap.Logger) *faults {
	return &faults{log: log, room: health.Room, all: map[string]*fault{}}
}

// wrote notes how a transaction of a queue ended that writes so many bytes, with a request or without.
func (f *faults) wrote(queue string, bytes int, request bool, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.all[queue]
	switch {
	case err != nil && have == nil:
		f.all[queue] = &fault{err: err, bytes: bytes, last: now}
		f.report(queue, err)
		f.log.Error("The queue cannot write: what comes is refused until it can.", zap.String("queue", queue), zap.Error(health.ExplainWrite(err)))
	case err != nil:
		have.err, have.bytes, have.last = err, max(have.bytes, bytes), now
	case have != nil && request && now.Sub(have.last) >= calm:
		f.end(queue)
	}
}

// look ends the faults of disks that have room again, and reports how much the others have.
func (f *faults) look(time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for queue, of := range f.all {
		dir := health.Full(of.err)
		if dir == "" {
			continue
		}
		if free, _, err := f.room(dir); err == nil && free >= leastRoom+2*uint64(of.bytes) { //nolint:gosec // a sum of lengths
			f.end(queue)
			continue
		}
		f.report(queue, of.err)
	}
}

func (f *faults) report(queue string, err error) {
	f.status.Set(queue, fmt.Errorf("write the queue of %s: %w", queue, health.ExplainWrite(err)))
}

func (f *faults) end(queue string) {
	delete(f.all, queue)
	f.status.Set(queue, nil)
	f.log.Info("The queue can write again.", zap.String("queue", queue))
}
