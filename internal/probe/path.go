// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
)

// PathStats is what one window says of one direction of one path.
type PathStats struct {
	Src, Dst string // end points, node/address
	Path     int    // n-th UDP source port of the prober
	// Stamps is how most of the direction's messages were stamped, model.StampKernel
	// or the like; empty where none has both of its stamps.
	Stamps string

	// Lost are messages that this direction lost. What is not known to have been lost
	// on the way out or on the way back is in TripStats.Unanswered alone.
	Lost int64
	// Reordered are messages that arrived after one that was sent later.
	Reordered int64
	// Delays are one-way delays in ns, corrected by the estimate of both clocks;
	// without one there are none. They are of messages up to the estimate's end, which
	// trails behind.
	Delays []int64
	// Bound is by how much they can be wrong, in ns: by the estimate, which is wrong
	// for all of them in the same direction, and by their own stamps.
	Bound int64
	// Uncorrected are messages that no estimate covers and none will, or whose stamps
	// are worse than those that the estimate rests on.
	Uncorrected int64
}

// TripStats is what one window says of the round trips of one path.
type TripStats struct {
	Src, Dst string // of the request
	Path     int
	Stamps   string
	// Sent are the requests that were answered in the window or given up in it.
	Sent, Unanswered int64
	// RoundTrips are times under way in ns, what the peer took to answer left out.
	RoundTrips []int64
}

// reordered counts the messages that arrived after one that was sent later (RFC
// 4737): sent and arrived are readings of two clocks, each compared with its own.
func reordered(legs []crossing) int64 {
	slices.SortFunc(legs, func(a, b crossing) int { return cmp.Compare(a.arrived, b.arrived) })
	var n int64
	last := int64(math.MinInt64)
	for _, l := range legs {
		if l.sent < last {
			n++
		}
		last = max(last, l.sent)
	}
	return n
}

// crossing is a message by the order of its sending and its arrival.
type crossing struct{ sent, arrived int64 }

// crossings are the messages of a direction. Trips are ordered by sending.
func crossings(trips []trip, of direction, outward bool) []crossing {
	out := make([]crossing, 0, len(trips))
	for i := range trips {
		l := of(&trips[i])
		switch {
		case !l.ok:
		case outward:
			out = append(out, crossing{sent: int64(i), arrived: l.peer})
		default:
			out = append(out, crossing{sent: l.peer, arrived: l.ours})
		}
	}
	return out
}

// waiting are legs whose delay is not known yet, since an estimate of the clocks
// trails behind: what it says of a reading has to stand between evidence before and after.
type waiting struct{ out, back []leg }

// corrected are one-way delays, and the half width of what they leave open.
type corrected struct {
	delays []int64
	bound  int64
}

// correct takes the legs that the estimates cover. Those that lie between two
// estimates, where a clock was stepped, or before since, or with stamps of less than
// the least kind, have no delay.
func correct(legs []leg, outward bool, estimates []pair.Estimate, least uint8, since int64) (c corrected, rest []leg, lost int64) {
	rest = legs[:0]
	for _, l := range legs {
		e := covering(estimates, l.ours)
		switch {
		case l.kind < least:
			lost++
		case e != nil:
			d := l.peer - l.ours - e.OffsetAt(l.ours)
			if !outward {
				d = -d
			}
			c.delays = append(c.delays, d)
			c.bound = max(c.bound, e.Upper-e.Offset+l.width, e.Offset-e.Lower+l.width)
		case l.ours < since || len(estimates) > 0 && l.ours < estimates[len(estimates)-1].Until:
			lost++
		default:
			rest = append(rest, l)
		}
	}
	return c, rest, lost
}

// covering returns the estimate that holds at a reading; nil where none does.
func covering(estimates []pair.Estimate, at int64) *pair.Estimate {
	for i := len(estimates) - 1; i >= 0; i-- {
		if e := &estimates[i]; e.From <= at && at <= e.Until {
			return e
		}
	}
	return nil
}
