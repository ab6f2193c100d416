// SPDX-License-Identifier: Apache-2.0

package netstamp

import (
	"sync/atomic"
	"time"
)

// Pair is two clocks of one host, read together.
type Pair struct {
	Raw      int64 // CLOCK_MONOTONIC_RAW, ns
	Realtime int64 // CLOCK_REALTIME (or a PHC), ns
	// Width is a half width, ns: Realtime was read while raw was within Raw ± Width.
	Width int64
}

// Clock is the host's pair of clocks. All time of this package comes through it.
type Clock interface {
	// Pair reads both clocks together.
	Pair() Pair
	// Kernel returns what this clock's realtime read when the kernel's read unix,
	// ns. It is the identity outside tests.
	Kernel(unix int64) int64
}

// System returns the clocks of this host. Where the system has no raw clock, raw
// is its monotonic one.
func System() Clock { return &system{} }

type system struct{ narrow narrow }

func (*system) Kernel(unix int64) int64 { return unix }

func (s *system) Pair() Pair {
	return s.narrow.pick(func() Pair {
		before := readRaw()
		realtime := time.Now().UnixNano()
		after := readRaw()
		return between(before, realtime, after)
	})
}

// attempts is the most readings of which one is picked: an interrupt between the
// readings widens one of them, and rarely all.
const attempts = 5

// narrow picks narrow readings. It knows how narrow they get, so that one mostly
// suffices.
type narrow struct{ width atomic.Int64 }

func (n *narrow) pick(read func() Pair) Pair {
	usual := n.width.Load()
	best := read()
	for range attempts - 1 {
		if best.Width <= usual+usual/8 {
			break
		}
		if p := read(); p.Width < best.Width {
			best = p
		}
	}
	// A clock that became slower is followed; a lost update costs nothing.
	if usual > 0 {
		n.width.Store(min(best.Width, usual+usual/16+1))
	} else {
		n.width.Store(best.Width)
	}
	return best
}

// between is the pair of a reading taken between two readings of raw. One ns is
// added because readings are cut to ns. Raw goes backwards where a test steps it.
func between(before, realtime, after int64) Pair {
	before, after = min(before, after), max(before, after)
	half := (after - before + 1) / 2
	return Pair{Raw: before + half, Realtime: realtime, Width: half + 1}
}
