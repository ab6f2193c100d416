// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// outboxLog logs what becomes of calls of a next component, each state once, and losses once a minute. The
// caller holds the lock of the outbox.
type outboxLog struct {
	log  *zap.Logger
	lock sync.Locker

	quiet   bool // the output ends: only losses are logged
	refused bool // the log has that events are sent again
	slow    bool // the log has that a call takes long
	began   time.Time
	late    *time.Timer // until the call under way takes long

	dropped  int         // events since the log had a loss
	why      error       // of the last
	reported time.Time   // when the log had a loss
	due      *time.Timer // until the log has the next; nil: none waits
}

// begin notes a call, while so many events wait.
func (l *outboxLog) begin(events int) {
	l.began = time.Now()
	l.late = time.AfterFunc(deliver.Patience, func() {
		l.lock.Lock()
		defer l.lock.Unlock()
		if took := time.Since(l.began); !l.slow && !l.quiet && took >= deliver.Patience {
			l.slow = true
			l.log.Warn("The next component does not return; events wait for it", zap.Int("events", events), zap.Duration("after", took))
		}
	})
}

// returned notes the end of a call.
func (l *outboxLog) returned() {
	l.late.Stop()
	l.slow = l.slow && time.Since(l.began) >= deliver.Patience
}

// again notes that events are to be sent again.
func (l *outboxLog) again(events int, err error) {
	if !l.refused && !l.quiet {
		l.refused = true
		l.log.Warn("The next component refuses events; they are sent again until it takes them", zap.Int("events", events), zap.Error(err))
	}
}

// took notes that a call was taken.
func (l *outboxLog) took() {
	if l.refused {
		l.log.Info("The next component takes events again")
	}
	l.refused = false
}

// drop notes events that are refused for good.
func (l *outboxLog) drop(events int, err error) {
	l.dropped += events
	l.why = err
	switch wait := deliver.RepeatEvery - time.Since(l.reported); {
	case l.due != nil:
	case wait <= 0:
		l.report()
	default:
		l.due = time.AfterFunc(wait, func() {
			l.lock.Lock()
			defer l.lock.Unlock()
			l.report()
		})
	}
}

// report logs the losses since the last report.
func (l *outboxLog) report() {
	if l.due != nil {
		l.due.Stop()
		l.due = nil
	}
	if l.dropped > 0 {
		l.log.Error("The next component refused events for good", zap.Int("events", l.dropped), zap.Error(l.why))
		l.dropped, l.reported = 0, time.Now()
	}
}

// close logs the last losses.
func (l *outboxLog) close() {
	l.report()
	if l.late != nil {
		l.late.Stop()
	}
}
