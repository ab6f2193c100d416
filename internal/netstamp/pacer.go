// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// maxBehind is how far a Pacer may lag and still catch up; ticks that are later
// are skipped.
const maxBehind = 100 * time.Millisecond

// Timer is what a Pacer sleeps by.
type Timer interface {
	// Now returns ns since some moment, and never less than before.
	Now() int64
	// SleepUntil returns when Now is t, or earlier.
	SleepUntil(t int64)
}

// Pacer calls a function at a rate, from a thread of its own that sleeps to
// absolute times. What a stall delays follows at twice the rate, so that it does
// not come as a burst.
type Pacer struct {
	period  int64 // ns
	timer   Timer
	stopped atomic.Bool
	skipped atomic.Int64
}

// NewPacer returns a Pacer of rate ticks a second, 1e-3 to 1e6, by CLOCK_MONOTONIC.
func NewPacer(rate float64) (*Pacer, error) { return NewPacerBy(monotonicTimer{}, rate) }

// NewPacerBy returns a Pacer of rate ticks a second, 1e-3 to 1e6, by a timer.
func NewPacerBy(timer Timer, rate float64) (*Pacer, error) {
	if !(rate >= 1e-3 && rate <= 1e6) {
		return nil, fmt.Errorf("new pacer: got rate %v; want 0.001 to 1000000 a second", rate)
	}
	return &Pacer{period: int64(math.Round(1e9 / rate)), timer: timer}, nil
}

type monotonicTimer struct{}

func (monotonicTimer) Now() int64         { return monotonic() }
func (monotonicTimer) SleepUntil(t int64) { sleepUntil(t) }

// Run calls tick with 0, 1, 2, ... until Stop. A number left out was skipped.
func (p *Pacer) Run(tick func(n uint64)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	undo := sharpen()
	defer undo()
	p.run(tick, p.timer.Now, p.sleep)
}

// run is Run on a clock: due is when tick n is, at when the last one was.
func (p *Pacer) run(tick func(n uint64), now func() int64, sleep func(until int64)) {
	due := now()
	at := due - p.period
	for n := uint64(0); ; n++ {
		sleep(max(due, at+p.period/2))
		if p.stopped.Load() {
			return
		}
		at = now()
		if late := at - due; late > int64(maxBehind) {
			missed := late / p.period
			n, due = n+uint64(missed), due+missed*p.period
			p.skipped.Add(missed)
		}
		tick(n)
		due += p.period
	}
}

// sleep sleeps until a time, and not much longer than Stop.
func (p *Pacer) sleep(until int64) {
	for !p.stopped.Load() {
		now := p.timer.Now()
		if now >= until {
			return
		}
		p.timer.SleepUntil(min(until, now+int64(maxBehind)))
	}
}

// Skipped is how many ticks were skipped.
func (p *Pacer) Skipped() int64 { return p.skipped.Load() }

// Stop ends Run before its next tick. It does not wait for it.
func (p *Pacer) Stop() { p.stopped.Store(true) }
