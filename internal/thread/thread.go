// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MaxNice is the lowest priority of a thread.
const MaxNice = 19

// Config is how a thread shares the processor with others.
type Config struct {
	// Nice is the thread's nice value, 0 to MaxNice. Only Linux has one for each thread; elsewhere it is left out.
	Nice int
	// Cores are the numbers of the processors on which the thread runs; none: all that the process may use. Only
	// Linux has them.
	Cores []int
}

// Thread is a running thread. It is safe for concurrent use.
type Thread struct {
	calls chan call
	quit  chan struct{}
	done  chan struct{}
	stop  sync.Once
	cpu   atomic.Int64 // ns
}

type call struct {
	run  func()
	done chan struct{}
}

// ErrStopped is the error of a call of a thread that has stopped.
var ErrStopped = errors.New("the thread has stopped")

// Start starts a thread, and fails where it cannot have the priority or the processors.
func Start(c Config) (*Thread, error) {
	if c.Nice < 0 || c.Nice > MaxNice {
		return nil, fmt.Errorf("start thread: got nice %d; want 0 to %d", c.Nice, MaxNice)
	}
	t := &Thread{calls: make(chan call), quit: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error)
	go t.run(c, started)
	if err := <-started; err != nil {
		<-t.done
		return nil, fmt.Errorf("start thread: %w", err)
	}
	return t, nil
}

// run never unlocks its thread, so that the runtime ends the thread with the goroutine.
func (t *Thread) run(c Config, started chan<- error) {
	defer close(t.done)
	runtime.LockOSThread()
	err := configure(c)
	started <- err
	if err != nil {
		return
	}
	for {
		select {
		case <-t.quit:
			return
		case next := <-t.calls:
			next.run()
			t.cpu.Store(int64(cpuTime()))
			close(next.done)
		}
	}
}

// Do runs a function on the thread, and returns once it has. Where ctx is done before the function begins, it
// is not run, and Do returns an error.
func (t *Thread) Do(ctx context.Context, run func()) error {
	next := call{run: run, done: make(chan struct{})}
	select {
	case t.calls <- next:
		<-next.done
		return nil
	case <-t.done:
		return ErrStopped
	case <-ctx.Done():
		return fmt.Errorf("wait for thread: %w", context.Cause(ctx))
	}
}

// CPU returns the processor time that the thread has used up to its last call; 0 where the system does not measure it.
func (t *Thread) CPU() time.Duration { return time.Duration(t.cpu.Load()) }

// Stop ends the thread behind the call under way. Further calls do nothing.
func (t *Thread) Stop() {
	t.stop.Do(func() { close(t.quit) })
	<-t.done
}
