// SPDX-License-Identifier: Apache-2.0

package rankevents

import "github.com/lockstep-otel/lockstep/internal/ring"

// recentStarts is of how many operations of a communicator the start is
// remembered. A producer infers the end of an operation at the second completion
// behind it, so that the next one is mostly the last or the one before.
const recentStarts = 8

// started is when a measured operation was launched and began.
type started struct {
	launch, start uint64
	stream        uint16
}

// Streams as records number them. Before version 5 of the interface NCCL tells of
// none and orders the kernels of a communicator itself.
const (
	streamUnknown = 0
	streamRest    = 16 // all beyond the fifteenth of a communicator
	streamSince   = 5  // version of the interface
)

// ordered says whether operations with this number run one after the other.
func (c *commState) ordered(stream uint16) bool {
	switch {
	case c.comm.ABI == 0 || stream >= streamRest: // nothing is known of the communicator, or several streams
		return false
	case stream == streamUnknown:
		return c.comm.ABI < streamSince
	default:
		return true
	}
}

// note remembers the start of a measured operation.
func (c *commState) note(launch, start uint64, stream uint16) {
	c.recent[c.noted%recentStarts] = started{launch, start, stream}
	c.noted++
}

// endBefore bounds the end of an operation that nobody observed: by the start of
// a later one on its communicator and stream, where that is remembered, else by
// when later work was seen to be over; 0 where neither is known.
func (c *commState) endBefore(rec *ring.Record, t times) uint64 {
	if rec.Flags()&ring.FlagEnqueuedOnly != 0 {
		return 0
	}
	bound := rec.CompletedAt()
	if !c.ordered(rec.Stream()) {
		return bound
	}
	for i := range c.recent {
		if s := &c.recent[i]; s.stream == rec.Stream() && s.launch > t.launch && s.start >= t.start && (bound == 0 || s.start < bound) {
			bound = s.start
		}
	}
	return bound
}
