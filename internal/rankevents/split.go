package rankevents

import (
	"cmp"
	"slices"
	"time"
)

// launchLatency is how long after its launch a kernel starts on an idle stream:
// 8 to 13 µs on a V100. Idleness up to then is the host's.
const launchLatency = uint64(15 * time.Microsecond)

// Summary is what a step came to.
type Summary struct {
	// Compute, Transfer and LaunchIdle are all that one rank's communication
	// tells, in seconds; they sum to the step.
	Compute, Transfer, LaunchIdle float64

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
	*Histogram
}

// divide splits the time from start to end among the step's communication and
// what lies between. Before an operation that begins on streams without
// communication, the device was idle until the operation's launch took effect and
// busy from then on.
func (s *step) divide(start, end uint64, sum *Summary) {
	slices.SortFunc(s.spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
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
