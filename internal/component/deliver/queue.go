// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

var (
	// ErrStuck is the error of a delivery to a next component that does not return.
	ErrStuck = errors.New("the next component has not returned for long")
	// ErrFull is the error of a delivery for which a [Queue] with a limit has no room.
	ErrFull = errors.New("the next component has not returned, and too much waits for it")
)

// Patience is how long one call of a next component may take until it counts as stuck.
const Patience = time.Second

// Queue gives one next component what a component concludes, in order, from a goroutine of its
// own: the component holds none of its locks meanwhile. A next component that works is waited for,
// by Wait, so that a slow one slows its producers down and loses nothing. One that is stuck is not:
// what would wait for it is lost and counted, and its producer gets an error. So nothing waits that
// no producer knows of. A Queue with a limit is for data that come once and that no producer waits for: up to
// so many bytes wait. A Queue is safe for concurrent use.
type Queue struct {
	log   *zap.Logger
	limit int // bytes; 0: producers wait

	ctx    context.Context //nolint:containedctx // a call may outlive the producer that gave up
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []*Delivery
	size    int           // bytes of those that wait, and of the one under way
	running bool          // there is a goroutine that delivers
	over    chan struct{} // closed when it ends
	began   time.Time     // when the call under way began
	warned  bool          // that it does not return
	closed  bool          // nothing more is put
}

// Delivery is one call of the next component.
type Delivery struct {
	size int
	call func(context.Context) error
	lost func()
	done chan struct{}
	err  error // once done
}

// NewQueue returns an empty queue, whose producers wait.
func NewQueue(log *zap.Logger) *Queue { return NewLimitedQueue(log, 0) }

// NewLimitedQueue returns an empty queue in which so many bytes may wait.
func NewLimitedQueue(log *zap.Logger, limit int) *Queue {
	q := &Queue{log: log, limit: limit}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q
}

// Put appends a call of the next component with data of a size in bytes. Lost counts the data where the
// next component does not take them. Put does not wait; the producer waits for what it has put, unless
// the queue has a limit.
func (q *Queue) Put(size int, call func(context.Context) error, lost func()) *Delivery {
	d := &Delivery{size: size, call: call, lost: lost, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		d.end(ErrClosed)
		return d
	case q.limit > 0 && q.size > 0 && q.size+size > q.limit:
		d.end(ErrFull)
		return d
	case q.limit == 0 && q.isStuck():
		d.end(ErrStuck)
		return d
	}
	q.size += size
	q.waiting = append(q.waiting, d)
	if !q.running {
		q.running, q.began, q.over = true, time.Now(), make(chan struct{})
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

// next returns the first delivery that waits behind one that is over; nil where none does.
func (q *Queue) next(over *Delivery) *Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	if over != nil {
		q.size -= over.size
	}
	q.warned = false
	if len(q.waiting) == 0 {
		q.running, q.waiting = false, nil
		close(q.over)
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

// Wait returns the next component's error. Where the next component is stuck, ctx is done or the
// queue stops, a delivery that still waits is taken back, and Wait returns an error. One that the
// next component has already is counted as lost only once it is refused.
func (q *Queue) Wait(ctx context.Context, d *Delivery) error {
	for {
		timer := time.NewTimer(q.patience())
		select {
		case <-d.done:
			timer.Stop()
			return d.err
		case <-timer.C:
			if q.stuck() {
				return q.abandon(d, ErrStuck)
			}
		case <-ctx.Done():
			timer.Stop()
			return q.abandon(d, context.Cause(ctx))
		case <-q.ctx.Done():
			timer.Stop()
			return q.abandon(d, ErrClosed)
		}
	}
}

// abandon takes a delivery back where it still waits, and returns its error.
func (q *Queue) abandon(d *Delivery, why error) error {
	select {
	case <-d.done:
		return d.err
	default:
	}
	err := fmt.Errorf("give up a delivery: %w", why)
	q.mu.Lock()
	i := slices.Index(q.waiting, d)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.size -= d.size
	}
	q.mu.Unlock()
	if i >= 0 {
		d.end(err)
	}
	return err
}

// patience returns for how long the call under way is still waited for.
func (q *Queue) patience() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Patience - time.Since(q.began)
}

// isStuck reports whether the call under way takes too long; the caller holds the lock.
func (q *Queue) isStuck() bool { return q.running && time.Since(q.began) >= Patience }

// stuck is isStuck, and logs it once.
func (q *Queue) stuck() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isStuck() {
		return false
	}
	if !q.warned {
		q.warned = true
		q.log.Warn("The next component does not return: what would wait for it is lost", zap.Duration("after", Patience))
	}
	return true
}

// Stop cancels the call under way, and those behind it, when ctx is done. A [Gate] ends them soon
// afterwards.
func (q *Queue) Stop(ctx context.Context) { context.AfterFunc(ctx, q.cancel) }

// Close has what is put from then on be lost: the next component may have stopped.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// Drain waits until every call that was put is over, or ctx is done.
func (q *Queue) Drain(ctx context.Context) {
	q.mu.Lock()
	running, over := q.running, q.over
	q.mu.Unlock()
	if !running {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}
