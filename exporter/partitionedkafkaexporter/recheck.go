// SPDX-License-Identifier: Apache-2.0

package partitionedkafkaexporter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// recheckAfter is how long after a fault the brokers are asked whether it lasts, where nothing is written meanwhile.
const recheckAfter = 15 * time.Second

// recheck asks whether a fault lasts that no further data show to be over, as where another reader has got the
// partition whose records could not be written. It is safe for concurrent use.
type recheck struct {
	ask func(context.Context) error // nil: the fault is over
	set func(error)                 // what is known now

	mu    sync.Mutex
	timer *time.Timer     // of the next question; nil: there is none
	turn  int             // of writes and questions: an answer from before the last is old
	fault bool            // a fault is known that brokers can say to be over
	ctx   context.Context //nolint:containedctx // of what is asked; done at the end
	stop  context.CancelFunc
	asks  sync.WaitGroup
}

func newRecheck(ask func(context.Context) error, set func(error)) *recheck {
	r := &recheck{ask: ask, set: set}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// begin notes that data are written, which will show more.
func (r *recheck) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next()
}

func (r *recheck) next() {
	r.turn++
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// known notes what a write has shown. A fault is asked for again, unless only a write can show that it is over.
func (r *recheck) known(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next()
	r.set(err)
	if r.fault = err != nil && !ofWrites(err); r.fault {
		r.later()
	}
}

// nothing notes that a write has shown nothing.
func (r *recheck) nothing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next(); r.fault {
		r.later()
	}
}

// ofWrites reports whether an error is a broker's answer to a write: such as of a missing right, or of replicas that are
// not in sync.
func ofWrites(err error) bool {
	var code sarama.KError
	return errors.As(err, &code) && code != sarama.ErrUnknownTopicOrPartition && code != sarama.ErrLeaderNotAvailable
}

func (r *recheck) later() {
	if turn := r.turn; r.ctx.Err() == nil {
		r.timer = time.AfterFunc(recheckAfter, func() { r.question(turn) })
	}
}

func (r *recheck) question(turn int) {
	if !r.current(turn) {
		return
	}
	defer r.asks.Done()
	err := r.ask(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.turn != turn || r.ctx.Err() != nil:
	case err != nil:
		r.later()
	default:
		r.fault = false
		r.set(nil)
	}
}

// current reports whether nothing was written since a question was put, and nothing ends.
func (r *recheck) current(turn int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn != turn || r.ctx.Err() != nil {
		return false
	}
	r.asks.Add(1)
	return true
}

// end ends what is asked.
func (r *recheck) end() {
	r.begin()
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.asks.Wait()
}
