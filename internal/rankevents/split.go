// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// launchLatency is how long after its launch a kernel starts on an idle stream:
// 8 to 13 µs on a V100. Idleness up to then is the host's.
const launchLatency = uint64(15 * time.Microsecond)

// Summary is what a step came to.
type Summary struct {
	// Compute, Transfer and LaunchIdle are all that one rank's communication
	// tells, in seconds; they and the other three, which need a witness of what the
	// device ran, sum to the step.
	Compute, Transfer, LaunchIdle           float64
	ComputeOverlapped, Copy, DependencyIdle float64

	Ops, Collectives int64
	Lost             int64 // records lost while the step was open
	Unmeasured       int64 // operations without an observed end: in no histogram and not in the split
	Bytes            int64 // of all operations
	// Waits of the proxies, seconds summed over operations: gpu, peer, wire, flush.
	Waits      [4]float64
	Histograms []KeyHistogram
	// Links are the delays of what this rank received from local ranks, of proxy
	// steps that were joined since the step before closed; at level all only.
	Links []Link
}

// KeyHistogram are the durations of one operation key.
type KeyHistogram struct {
	Key string
	*stats.Recorder
}

// divide splits the time from start to end among what ran.
func (s *step) divide(start, end uint64, sum *Summary) {
	slices.SortFunc(s.spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.launch, b.launch)) })
	if s.witnessed {
		s.divideWitnessed(start, end, sum)
	} else {
		s.divideUnwitnessed(start, end, sum)
	}
}

// division of a step, ns.
type division struct{ compute, overlapped, transfer, copying, launchIdle, dependencyIdle uint64 }

// divideWitnessed takes each instant for what ran in it: computing before
// communication before copying. Where nothing ran, the device was idle for the host
// until the launch of what ran next took effect, and from then on for what that waited
// for.
func (s *step) divideWitnessed(start, end uint64, sum *Summary) {
	var p division
	var until [activities]uint64 // of what has begun, the latest end
	at := start
	for i := range s.spans {
		sp := &s.spans[i]
		if sp.end <= sp.start || sp.end <= start || sp.start >= end {
			continue
		}
		if at = p.run(&until, at, sp.start); at < sp.start {
			ready := min(max(sp.launch+launchLatency, at), sp.start)
			p.launchIdle += ready - at
			p.dependencyIdle += sp.start - ready
			at = sp.start
		}
		until[sp.what] = max(until[sp.what], min(sp.end, end))
	}
	if at = p.run(&until, at, end); at < end {
		p.launchIdle += end - at
	}
	sum.Compute, sum.ComputeOverlapped, sum.Transfer = seconds(p.compute), seconds(p.overlapped), seconds(p.transfer)
	sum.Copy, sum.LaunchIdle, sum.DependencyIdle = seconds(p.copying), seconds(p.launchIdle), seconds(p.dependencyIdle)
}

// run divides the time from at to next as far as something runs, and returns up to
// where.
func (p *division) run(until *[activities]uint64, at, next uint64) uint64 {
	for at < next {
		to := next
		for _, end := range until {
			if end > at {
				to = min(to, end)
			}
		}
		took := to - at
		switch kernel, comm := until[ranKernel] > at, until[ranComm] > at; {
		case kernel && comm:
			p.overlapped += took
		case kernel:
			p.compute += took
		case comm:
			p.transfer += took
		case until[ranCopy] > at:
			p.copying += took
		default:
			return at
		}
		at = to
	}
	return at
}

// divideUnwitnessed splits the time among the step's communication and what lies
// between. Before an operation that begins on streams without
// communication, the device was idle until the operation's launch took effect and
// busy from then on.
func (s *step) divideUnwitnessed(start, end uint64, sum *Summary) {
	var compute, transfer, idle uint64
	at := start
	for i := range s.spans {
		sp := &s.spans[i]
		if from := min(sp.start, end); from > at {
			ready := min(max(sp.launch+launchLatency, at), from)
			idle += ready - at
			compute += from - ready
			at = from
		}
		if to := min(sp.end, end); to > at {
			transfer += to - at
			at = to
		}
	}
	if end > at {
		idle += end - at
	}
	sum.Compute, sum.Transfer, sum.LaunchIdle = seconds(compute), seconds(transfer), seconds(idle)
}

func seconds(ns uint64) float64 { return float64(ns) * 1e-9 }

// extent is when a step began and ended: from its mark, or its first launch where
// the mark was not seen, to the next one's, or to its last operation where that
// ended later, since the device runs behind the host. An instant of two steps
// belongs to the earlier.
func (r *Rank) extent(s *step) (start, end uint64) {
	start, end = s.begin, s.end
	if start == 0 {
		start = s.first
	}
	if len(r.steps.open) > 0 && r.steps.open[0].begin != 0 {
		end = max(end, r.steps.open[0].begin)
	} else {
		end = max(end, s.lastEnd)
	}
	start = max(start, r.steps.prevEnd)
	return start, max(start, end)
}
