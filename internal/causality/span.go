// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Trait says what a span is, as far as a relation depends on it.
type Trait uint16

// The traits of a span.
const (
	Client Trait = 1 << iota
	Server
	Producer
	Consumer
	// Call: a remote procedure call, by its attributes.
	Call
	// Messaging: it deals with messages of a broker, by its attributes.
	Messaging
	// Send: it hands messages over, or creates them.
	Send
	// Receive: it takes messages, and began before there were any.
	Receive
	// Process: it handles messages that it was given.
	Process
	// Streaming: it may end before or after its peer does.
	Streaming
	// Failed: somebody gave up, and did not wait for somebody else.
	Failed
	// Operation: of a rank. Its parent is its step, and no caller.
	Operation
	// HTTP: a request that is no remote procedure call, by its attributes.
	HTTP
	// Afterwards: it was made when all was over, with times from elsewhere, and may have
	// begun before its parent.
	Afterwards
)

// End is one of both ends of a span.
type End uint8

// The ends of a span.
const (
	Start End = iota
	Finish
)

// Clock is what spans were stamped by. Clocks of one engine are the same where
// their pointers are.
type Clock struct {
	ID      string
	index   int           // n-th of the engine
	seen    int64         // second
	first   time.Duration // of the data, when it was seen first
	young   bool          // it is among those that are on no timeline yet
	reading int64         // at first
	met     uint64        // batch of its first relation to another; 0 none
	gone    bool          // it was forgotten, and what is remembered of it with it
}

// Span is a span as far as causality is concerned.
type Span struct {
	Ref    model.SpanRef
	Parent model.SpanID // zero: none
	Links  []model.SpanRef
	Is     Trait

	Clock *Clock // nil where nothing tells by which clock it was stamped
	// Begin and Until are the stamps of both ends, before any correction. A stamp
	// less Epoch is what the clock showed.
	Begin, Until int64
	Epoch        int64

	Job  *Job
	Meet *Meet // nil where it meets no other rank
}

// At returns the stamp of an end.
func (s *Span) At(e End) int64 {
	if e == Start {
		return s.Begin
	}
	return s.Until
}

// reading is what the clock showed at an end, which is not before the start.
func (s *Span) reading(e End) int64 {
	if e == Start {
		return s.Begin - s.Epoch
	}
	return max(s.Begin, s.Until) - s.Epoch
}

// Meet says where a span of a rank meets those of others, and in what part.
type Meet struct {
	Key    model.RendezvousKey
	Job    string // its id: an incarnation may be told by no more than a folder's name
	Digest string // of the communicator's ranks, where known
	Rank   int64
	Row    *Row
	// Sends: its start happened before the end of who Receives.
	Sends, Receives bool
}

// resolution is what a stamp can be off by rounding: .NET and Windows count in
// 100 ns, exporters and languages cut stamps to microseconds or milliseconds, and what
// is made of logs to seconds. One
// stamp in a hundred is taken for coarser than it is, which costs nothing but its
// weight.
func resolution(stamp int64) int64 {
	switch {
	case stamp%100 != 0:
		return 0
	case stamp%1000 != 0:
		return 100
	case stamp%1_000_000 != 0:
		return 1000
	case stamp%1_000_000_000 != 0:
		return 1_000_000
	default:
		return 1_000_000_000
	}
}

// coarse is by how much the difference of two stamps can be off by rounding. On
// one clock equal rounding keeps the order.
func coarse(a, b int64, oneClock bool) int64 {
	ra, rb := resolution(a), resolution(b)
	if oneClock && ra == rb {
		return 0
	}
	return max(ra, rb)
}
