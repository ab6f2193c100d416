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

// leave flushes an output with the last instance that emits its signal, and ends the hub with the last of
// all.
func (h *Hub) leave(ctx context.Context, o *output) (err error) {
	h.leaving.Lock()
	o.open--
	last := o.open == 0
	h.open--
	none := h.open == 0
	h.leaving.Unlock()
	if last {
		err = h.finish(ctx, o)
	}
	if none {
		err = errors.Join(err, h.stop(ctx))
	}
	return err
}

// stop ends the interval, the storage and the engine. A call of the interval that takes longer is left behind;
// it ends them when it is over.
func (h *Hub) stop(ctx context.Context) error {
	h.end()
	limited, cancel := context.WithTimeout(ctx, h.patience(2*deliver.ShutdownLimit))
	defer cancel()
	done := make(chan error, 1)
	go h.interval.Stop(func() { done <- h.close(ctx) })
	select {
	case err := <-done:
		return err
	case <-limited.Done():
		return fmt.Errorf("stop: the analysis or its storage is busy, and %d batches wait: %w", h.inbox.len(), context.Cause(limited))
	}
}

// finish gives an output what is left. Its time begins once the engine was flushed.
func (h *Hub) finish(ctx context.Context, o *output) error {
	var last context.Context
	var stopped func() error
	var once sync.Once
	begin := func() { once.Do(func() { last, stopped = o.gate.Stop(ctx) }) }
	err := h.flush(ctx, begin)
	begin()
	if err == nil && o == h.metrics {
		err = h.lastMetrics(last)
	}
	return errors.Join(err, h.awaitFlushed(last, o), o.stop(last), stopped())
}

// awaitFlushed waits for what flushes gave an output, also those of other outputs.
func (h *Hub) awaitFlushed(ctx context.Context, o *output) error {
	h.leaving.Lock()
	all := slices.Clone(h.rest)
	h.leaving.Unlock()
	var errs []error
	for i := range all {
		errs = append(errs, all[i].wait(ctx, o))
		if h.traces == nil || o == h.traces {
			all[i].settled()
		}
	}
	return errors.Join(errs...)
}

// lastMetrics sends the values of the end. An engine that is busy until the time is over is left behind.
func (h *Hub) lastMetrics(last context.Context) error {
	if h.neverStarted() {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- h.measure(last) }()
	select {
	case err := <-done:
		return err
	case <-last.Done():
		if !h.metrics.idle() {
			return nil // the next component is stuck, which the gate reports
		}
		return h.leaveBehind(last, "deliver the last metrics")
	}
}

// measure sends metrics. They are not skipped for those before.
func (h *Hub) measure(last context.Context) error {
	for {
		h.metrics.await(last)
		if err := h.enter(last); err != nil {
			return fmt.Errorf("deliver the last metrics: %w", err)
		}
		if h.metrics.idle() || last.Err() != nil {
			break
		}
		h.yield() // what had the turn before has sent others
	}
	defer h.yield()
	h.putMetrics(time.Now())
	return nil
}

// saveLimit is how long the storage may take of the time that an output has to end.
const saveLimit = time.Second

// flush gives the outputs what is left, unless nothing was ever started. An engine that is busy for long is left
// behind; what it concludes then reaches the outputs that have not ended. Begin is called before the first of it.
func (h *Hub) flush(ctx context.Context, begin func()) error {
	if h.neverStarted() {
		return nil
	}
	limit := h.patience(2*deliver.ShutdownLimit - deliver.Patience)
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at)/2) // the rest is for the output
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	concluded, done := make(chan struct{}), make(chan struct{})
	go func() {
		if h.enter(limited) != nil {
			return
		}
		defer h.yield()
		h.conclusions(ctx, func() { close(concluded); begin() })
		close(done)
	}()
	select {
	case <-concluded:
		<-done // the storage has a second
		return nil
	case <-limited.Done():
		return h.leaveBehind(limited, "flush")
	}
}

// leaveBehind notes that the engine was busy for long.
func (h *Hub) leaveBehind(ctx context.Context, what string) error {
	h.leaving.Lock()
	h.busy = true
	h.leaving.Unlock()
	return fmt.Errorf("%s: the analysis is busy: %w", what, context.Cause(ctx))
}

func (h *Hub) neverStarted() bool {
	h.leaving.Lock()
	defer h.leaving.Unlock()
	return h.started == 0
}

func (h *Hub) leftBehind() bool {
	h.leaving.Lock()
	defer h.leaving.Unlock()
	return h.busy
}

// patience returns for how long the end waits for the engine: not long again for one that was left behind.
func (h *Hub) patience(limit time.Duration) time.Duration {
	if h.leftBehind() {
		return deliver.Patience
	}
	return limit
}

// conclusions flushes the engine; the caller has the turn.
func (h *Hub) conclusions(ctx context.Context, begin func()) {
	h.drain()
	now, out := time.Now(), &Output{}
	if h.engine.Flush != nil && !h.drained {
		h.use(func() { *out = h.engine.Flush(now) })
		h.drained = true
	}
	begin()
	saving, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	sent := h.emit(saving, out, now, false) // series are sent once, as their output ends
	h.leaving.Lock()
	h.rest = append(h.rest, sent)
	h.leaving.Unlock()
}

// close closes the storage and stops the engine. One that is busy for long is left behind as it is.
func (h *Hub) close(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, deliver.ShutdownLimit)
	defer cancel()
	if err := h.enter(limited); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	defer h.yield()
	h.drain()
	err := h.states.Close(ctx)
	if h.leaveJobs != nil {
		h.leaveJobs()
	}
	if h.engine.Stop != nil {
		h.engine.Stop()
	}
	return err
}
