// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"sync"
	"time"
)

// Interval calls a function again and again between Start and Stop. Each of the
// two may be called by every user of a shared value, and Stop without Start.
type Interval struct {
	every       time.Duration
	call        func(time.Time)
	start, stop sync.Once
	quit, done  chan struct{}
}

// NewInterval returns an interval that is not running yet.
func NewInterval(every time.Duration, call func(time.Time)) *Interval {
	return &Interval{every: every, call: call, quit: make(chan struct{}), done: make(chan struct{})}
}

// Start begins calling. Calls after the first, or after Stop, do nothing.
func (i *Interval) Start() { i.start.Do(func() { go i.run() }) }

// Stop ends the calling, waits for a call under way, and then calls last; calls
// after the first do nothing.
func (i *Interval) Stop(last func()) {
	i.stop.Do(func() {
		i.start.Do(func() { close(i.done) })
		close(i.quit)
		<-i.done
		last()
	})
}

func (i *Interval) run() {
	defer close(i.done)
	ticker := time.NewTicker(i.every)
	defer ticker.Stop()
	for {
		select {
		case <-i.quit:
			return
		case now := <-ticker.C:
			select {
			case <-i.quit: // a call took long, and both are ready
				return
			default:
				i.call(now)
			}
		}
	}
}
