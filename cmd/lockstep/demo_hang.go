// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// demoHangs are the faults after which a job stands still.
var demoHangs = []string{"hang", "exit", "mismatch"}

func (o *demoOptions) hangs() bool { return slices.Contains(demoHangs, o.fault) }

// hangFrom is the first step with such a fault: before it, 60 steps of two ranks are 360 gaps,
// and the rhythm of a job is known from 200.
const hangFrom = 60

// ofHang sets what was not given of a job that is to hang.
func (o *demoOptions) ofHang(given func(flag string) bool) {
	if o.hangs() && !given("fault-from") && o.torch == "" {
		o.from = hangFrom
	}
}

// How long a job that is to hang may stand: longer than the stall limit of a demo, of seconds,
// on a machine that does much else; and how long after it was found it goes on, so that what
// is told of it a moment later is seen as well.
const (
	hangPatience = 2 * time.Minute
	hangAfter    = 2 * time.Second
)

// hung reports whether a job that was made to hang has stood for long enough. Where somebody
// looks it goes on after the finding, so that the rings can be looked at.
func (d *demo) hung(now time.Time) bool {
	if !d.options.hangs() {
		return false
	}
	if !d.hangFound.IsZero() && d.options.unattended && now.Sub(d.hangFound) >= hangAfter {
		return true
	}
	since := d.began
	if d.screen.stepAt.After(since) {
		since = d.screen.stepAt
	}
	return now.Sub(since) >= hangPatience
}

// enough reports whether a finding is what --once waits for.
func (d *demo) enough(f *model.Finding) bool {
	return d.options.once && (!d.options.hangs() || f.Kind == model.FindingDesync)
}

// demoHang is what a line says of a hang beside: the limit that was in force, and for how long
// the job itself had told of no step when the finding was shown.
type demoHang struct {
	Waiting []int64 `json:"waiting,omitempty"`
	Limit   float64 `json:"stall_limit_seconds,omitempty"`
	Phase   string  `json:"limit_of_phase,omitempty"`
	Still   float64 `json:"still_seconds,omitempty"`
}

func (d *demoFinding) hang(f *model.Finding, still time.Duration) {
	if f.Kind != model.FindingDesync {
		return
	}
	d.demoHang = demoHang{Waiting: f.Waiting, Still: still.Seconds()}
	if ev, ok := evidence.As[evidence.Hang](f.Evidence); ok && ev.StallLimit != nil {
		d.Limit, d.Phase = ev.Limit, ev.Phase
	}
}
