// SPDX-License-Identifier: Apache-2.0

package model

// OpKind says what an operation is.
type OpKind string

// The kinds of the data model.
const (
	KindCompute    OpKind = "compute"
	KindCollective OpKind = "collective"
	KindSend       OpKind = "p2p.send"
	KindRecv       OpKind = "p2p.recv"
	KindCopy       OpKind = "copy"
	KindHost       OpKind = "host"
	KindScope      OpKind = "scope"
	KindStep       OpKind = "step"
)

// IsComm reports whether operations of this kind meet operations of other ranks.
func (k OpKind) IsComm() bool {
	return k == KindCollective || k == KindSend || k == KindRecv
}

// Op is one operation on one rank, from Start to End on one clock.
type Op struct {
	Kind OpKind
	// Name is the span's name, as observed or as close as can be.
	Name string
	// Key is the identity for comparison inside a cohort; empty where it equals Name.
	Key string
	// Seq is the n-th of this key in this step on this rank, from 0.
	Seq int64

	Start, End int64 // Unix nanoseconds on ClockID

	// ClockID overrides the rank's clock where the operation was stamped by another.
	ClockID string

	// EndInferred: no end was observed. End is the best bound known: the start of
	// the next operation on the stream, the time at which later work was seen to be
	// over, or what was seen last of an operation that was given up. It is no
	// measurement: nothing is to be told from Duration.
	EndInferred bool

	Step  Optional[int64]
	Phase string

	Group         Optional[int64]
	GraphCaptured bool

	WorkBytes  Optional[int64]
	WorkTokens Optional[int64]
	WorkGrid   string

	Stream   Optional[int64] // GPU stream
	ThreadID Optional[int64] // host thread, where there is no stream

	Correlation Optional[int64]
	Launch      Optional[int64] // Unix ns on the host at which the launch call began

	Microbatch Optional[int64]
	ModelChunk Optional[int64]

	// StepOps is, on an operation of kind step, how many operations of the rank's
	// step are sent besides, so that who gathers them knows when all have come. A
	// source that sends only some of them counts those here, and all in its summary.
	StepOps Optional[int64]

	Comm       Comm       // zero unless Kind.IsComm()
	Collective Collective // zero unless Kind is collective; Seq, SeqScope also for p2p

	Peer      Optional[int64] // global rank of the other side
	PeerLocal Optional[int64] // communicator rank of it, where the global one is unknown

	Waits ProxyWaits
	Stack string

	// Links are, on an operation of kind step, spans of other traces that the step
	// works for, at most MaxStepLinks; LinksDropped is how many found no room.
	Links        []SpanRef
	LinksDropped int64

	Clock     ClockNote
	Straggler StragglerNote
}

// MaxStepLinks bounds the spans that a step is linked to: an iteration of an
// inference engine works for as many requests as it has in a batch.
const MaxStepLinks = 128

// ComparisonKey returns Key, or Name where Key is empty.
func (o *Op) ComparisonKey() string {
	if o.Key != "" {
		return o.Key
	}
	return o.Name
}

// Duration returns End - Start in nanoseconds; never negative.
func (o *Op) Duration() int64 { return max(0, o.End-o.Start) }

// Lane returns the stream, else the host thread, else 0: the place in which
// operations execute in order.
func (o *Op) Lane() int64 {
	if o.Stream.OK {
		return o.Stream.V
	}
	return o.ThreadID.Or(0)
}

// ProxyWaits are the waits of NCCL's proxy steps, seconds.
type ProxyWaits struct {
	GPU, Peer, Wire, Flush Optional[float64]
	// WireSteps is how many sent steps Wire is the sum over: who sends more waits
	// longer, without a slower link.
	WireSteps Optional[int64]
}

// ClockNote is what a clock correction wrote on an operation.
type ClockNote struct {
	Offset   Optional[float64] // s, added to the raw start
	Bound    Optional[float64] // s, half width
	Sigma    Optional[float64] // s, of an estimate
	Timeline string
	RawStart Optional[int64] // Unix ns
	Stepped  bool            // the operation straddles a clock step

	Verdict   string            // causality verdict
	Magnitude Optional[float64] // s
}

// StragglerNote is what the straggler analysis wrote on an operation.
type StragglerNote struct {
	Class    string
	Excess   Optional[float64] // s
	OwedTo   Optional[int64]   // rank that arrived last
	Suffered Optional[float64] // s waited for it
}
