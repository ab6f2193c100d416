// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

const (
	// freshFor is how soon after its newest operation a dump is written of a job that moves:
	// as soon as something that is open is told of (stall_after).
	freshFor = 2 * time.Second
	// namingFor is how long after it was taken a dump with call stacks is written at most: so
	// long PyTorch waits for one before it writes it without (TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC).
	// The first of a process imports what finds the names.
	namingFor = 15 * time.Second
	// ownPauses is how often a rank must have paused for so long that it is a rhythm, which
	// what happens once or twice, as a compilation, is not.
	ownPauses = 3
)

// quiet is how long before it was written the dump's newest operation was enqueued. Copies
// have other times, so that it says no more than that nothing can have stood for longer.
func (it *item) quiet() (d time.Duration, known bool) {
	if it.light == nil || it.light.LastEnqueue <= 0 {
		return 0, false
	}
	d = it.changed.Sub(time.Unix(0, it.light.LastEnqueue))
	return d, d >= 0
}

// pause is the shortest of the longest pauses that a rank made between two operations.
func pause(d *flightrecorder.Dump) time.Duration {
	var longest [ownPauses]time.Duration // falling
	for i := 1; i < len(d.Entries); i++ {
		before, after := d.Entries[i-1].Created, d.Entries[i].Created
		if before <= 0 || after <= before {
			continue
		}
		p := time.Duration(after - before)
		for k := range longest {
			if p > longest[k] {
				p, longest[k] = longest[k], p
			}
		}
	}
	return longest[ownPauses-1]
}

// doubt says until when the dumps of one incident may be of a job that runs: a dump with call
// stacks is older than its file by the time that naming them took, unless one that waits is
// older than that takes; and who pauses no longer than it did before keeps its rhythm.
func doubt(taken []*item) (d desync.Doubt) {
	waits, stacks, inRhythm, longest := time.Duration(-1), false, len(taken) > 0, freshFor
	for _, it := range taken {
		q, known := it.quiet()
		ranOut := it.timeout > 0 && q >= it.timeout // its watchdog wrote it
		inRhythm = inRhythm && known && q <= it.pause && !ranOut
		longest = max(longest, it.pause)
		if known && len(it.light.Ops) > 0 {
			waits = max(waits, q)
		}
		stacks = stacks || it.stacks
	}
	if timesLost(taken) {
		d.TimesLost = timesLostWhy
	}
	d.Waited = max(0, waits)
	after := waits.Round(100 * time.Millisecond)
	switch {
	case waits < 0:
	case inRhythm:
		d.Until, d.InRhythm = longest, true
		d.Why = fmt.Sprintf("the dumps were written %v after their newest operations, and each rank has paused for as long %d times before: the job may be running", after, ownPauses)
	case stacks && waits < namingFor:
		d.Until = namingFor
		d.Why = fmt.Sprintf("the dumps were written %v after their newest operations, and one with call stacks may be older than its file by as much: the job may be running; dumps that come later decide", after)
	}
	return d
}

const timesLostWhy = "nothing tells when the dumps were taken, as of copies that do not keep the times of files: " +
	"--hung, where it is known that the job hung, dumps taken some seconds later, or copies with their times (cp -p, tar) decide"

// timesLost reports whether the files are copies that have not the times of what they are copies
// of: each that has something open is older than its newest operation, or was changed when what
// is open would long have been given up.
func timesLost(taken []*item) bool {
	lost := false
	for _, it := range taken {
		if it.light == nil || len(it.light.Ops) == 0 {
			continue
		}
		given := it.timeout
		if given == 0 {
			given = unknownWindow
		}
		if q, known := it.quiet(); known && q <= given+sameIncident {
			return false
		}
		lost = true
	}
	return lost
}

// byWatchdog reports whether the files are as a watchdog leaves them, which writes where an
// operation has run out: one was changed within a minute after its oldest open operation had, and
// all others within a minute of it. Copies that keep no times are later, dumps that were asked for
// earlier.
func byWatchdog(taken []*item) bool {
	var first, last time.Time
	found := false
	for _, it := range taken {
		if first.IsZero() || it.changed.Before(first) {
			first = it.changed
		}
		if it.changed.After(last) {
			last = it.changed
		}
		if len(it.light.Ops) == 0 || it.light.Ops[0].Created <= 0 || it.timeout <= 0 {
			continue
		}
		over := it.changed.Sub(time.Unix(0, it.light.Ops[0].Created)) - it.timeout
		found = found || over >= 0 && over <= sameIncident
	}
	return found && last.Sub(first) <= sameIncident
}
