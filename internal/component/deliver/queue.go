// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ErrFull is the error of a delivery for which a [Queue] has no room.
var ErrFull = errors.New("the next component has not returned for long, and too much waits for it")

// Patience is how long one call of a next component may take until it counts as stuck.
const Patience = time.Second

// Queue gives one next component what a component concludes, in order, from a goroutine of its
// own: the component holds none of its locks meanwhile. A next component that works is waited for,
// by Wait, so that a slow one slows its producers down and loses nothing. One that is stuck is not
// waited for: up to a number of bytes waits in the queue, and deliveries beyond are lost and counted.
// A Queue is safe for concurrent use.
type Queue struct {
	log   *zap.Logger
	limit int // bytes

	ctx    context.Context //nolint:containedctx // deliveries outlive the calls that bring them
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []*Delivery
	size    int       // bytes of those that wait, and of the one under way
	left    int       // bytes of those that no producer waits for
	running bool      // there is a goroutine that delivers
	began   time.Time // when the call under way began
	late    bool      // the call before took too long
	warned  bool      // that it does not return
}

// Delivery is one call of the next component.
type Delivery struct {
	size int
	call func(context.Context) error
	lost func()
	done chan struct{}
	err  error // once done

	left, over bool // no producer waits for it; it was given. Under the queue's lock
}

// NewQueue returns a queue for so many bytes.
func NewQueue(log *zap.Logger, limit int) *Queue {
	q := &Queue{log: log, limit: limit}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Put appends a call of the next component with data of a size in bytes. Lost counts the data where
// the next component does not take them. Put does not wait, and refuses only where the next component
// is stuck, or was so in the call before, or where producers that left put too much: else each
// producer waits for what it has put.
func (q *Queue) Put(size int, call func(context.Context) error, lost func()) *Delivery {
	d := &Delivery{size: size, call: call, lost: lost, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	if size > 0 && q.size > 0 && q.size+size > q.limit &&
		(q.left+size > q.limit || q.late || time.Since(q.began) >= Patience) {
		d.end(ErrFull)
		return d
	}
	q.size += size
	q.waiting = append(q.waiting, d)
	if !q.running {
		q.running, q.began = true, time.Now()
		go q.run()
	}
	return d
}

// Idle reports whether everything was delivered.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.running
}

func (q *Queue) run() {
	for d := q.next(nil); d != nil; {
		err := d.call(q.ctx)
		following := q.next(d) // before end: a caller that waits for the last delivery finds the queue idle
		d.end(err)
		d = following
	}
}

// next returns the delivery behind one that is over; nil where there is none.
func (q *Queue) next(over *Delivery) *Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	if over != nil {
		q.size -= over.size
		if over.over = true; over.left {
			q.left -= over.size
		}
		q.late = time.Since(q.began) >= Patience
	}
	q.warned = false
	if len(q.waiting) == 0 {
		q.running, q.waiting = false, nil
		return nil
	}
	d := q.waiting[0]
	q.waiting[0] = nil // what was delivered is not kept behind the slice
	q.waiting = q.waiting[1:]
	q.began = time.Now()
	return d
}

func (d *Delivery) end(err error) {
	if d.err = err; err != nil {
		d.lost()
	}
	close(d.done)
}

// Wait returns the next component's error. It returns nil while the delivery still waits where
// the next component is stuck, ctx is done, or the queue stops.
func (q *Queue) Wait(ctx context.Context, d *Delivery) error {
	for {
		timer := time.NewTimer(q.patience())
		select {
		case <-d.done:
			timer.Stop()
			return d.err
		case <-timer.C:
			if q.stuck() {
				return q.leave(d)
			}
		case <-ctx.Done():
			timer.Stop()
			return q.leave(d)
		case <-q.ctx.Done():
			timer.Stop()
			return q.leave(d)
		}
	}
}

// leave notes that a producer does not wait for its delivery, and returns its error.
func (q *Queue) leave(d *Delivery) error {
	q.mu.Lock()
	if !d.over && !d.left {
		d.left = true
		q.left += d.size
	}
	q.mu.Unlock()
	return d.now()
}

// now returns the error of a delivery; nil while it is not over.
func (d *Delivery) now() error {
	select {
	case <-d.done:
		return d.err
	default:
		return nil
	}
}

// patience returns for how long the call under way is still waited for.
func (q *Queue) patience() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Patience - time.Since(q.began)
}

// stuck reports whether the call under way takes too long, and logs that once.
func (q *Queue) stuck() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running || time.Since(q.began) < Patience {
		return false
	}
	if !q.warned {
		q.warned = true
		q.log.Warn("The next component does not return: what is concluded waits for it", zap.Duration("after", Patience), zap.Int("max_bytes", q.limit))
	}
	return true
}

// Stop cancels the call under way, and those behind it, when ctx is done. A [Gate] ends them soon
// afterwards.
func (q *Queue) Stop(ctx context.Context) { context.AfterFunc(ctx, q.cancel) }

// Drain waits until every call that was put is over.
func (q *Queue) Drain() {
	d := q.Put(0, func(context.Context) error { return nil }, func() {})
	<-d.done
}
