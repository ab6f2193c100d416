// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes of lockstep.op.open, an operation in flight that has not ended for
// long, beside those of operation spans.
const (
	OpOpenStatus     = "lockstep.op.open.status"      // s: open, updated, closed
	OpOpenAge        = "lockstep.op.open.age"         // d, s since it was enqueued
	OpOpenEnqueueing = "lockstep.op.open.enqueueing"  // b, the host has not come out of the call
	OpOpenDied       = "lockstep.op.open.died"        // b, its process ended and left it open
	OpOpenBehind     = "lockstep.op.open.behind"      // i, in flight behind it on its communicator
	OpOpenInFlight   = "lockstep.op.open.in_flight"   // i, in flight in its process
	OpOpenProxyState = "lockstep.op.open.proxy.state" // s, what the last proxy step waits for
	OpOpenProxyFor   = "lockstep.op.open.proxy.for"   // d, s
	// The longest wait of each direction, where there is one.
	OpOpenSendState    = "lockstep.op.open.send.state"    // s, as of proxy.state
	OpOpenSendFor      = "lockstep.op.open.send.for"      // d, s
	OpOpenSendPeer     = "lockstep.op.open.send.peer"     // i, global rank
	OpOpenReceiveState = "lockstep.op.open.receive.state" // s
	OpOpenReceiveFor   = "lockstep.op.open.receive.for"   // d, s
	OpOpenReceivePeer  = "lockstep.op.open.receive.peer"  // i
	OpOpenSilent       = "lockstep.op.open.silent"        // d, s since the last sign of life of its process
	OpOpenScope        = "lockstep.op.open.scope"         // s, scope that the host is in: of the main thread, else the longest open
	OpOpenScopeFor     = "lockstep.op.open.scope.for"     // d, s
	// The sequence numbers that its function has reached on its communicator.
	OpOpenEnqueued  = "lockstep.op.open.enqueued"  // i
	OpOpenStarted   = "lockstep.op.open.started"   // i
	OpOpenCompleted = "lockstep.op.open.completed" // i
)

// RequestSpan marks a span that shows a step in the trace of a request that the step
// worked for: b, true. It is no operation, and nothing is counted from it.
const RequestSpan = "lockstep.request.span"

// Attributes of a step's summary that one rank's own events add.
const (
	SummaryLost      = "lockstep.summary.lost"          // i, records lost while the step was open
	SummaryInferred  = "lockstep.summary.ends_inferred" // i, operations without an observed end: in no histogram, not in the split
	SummaryBytes     = "lockstep.summary.bytes"         // i, of all communication
	SummaryWaitGPU   = "lockstep.summary.wait.gpu"      // d, s, summed over operations
	SummaryWaitPeer  = "lockstep.summary.wait.peer"     // d, s
	SummaryWaitWire  = "lockstep.summary.wait.wire"     // d, s
	SummaryWaitFlush = "lockstep.summary.wait.flush"    // d, s
	SummaryLinks     = "lockstep.summary.links"         // s, JSON, see the README of the rank_events receiver
)

// Attributes of lockstep.rank.state and of lockstep.rank.members, which says no more than which
// communicators a rank is a member of: what a rank's communication had come to. The resource
// is the rank's. The encoded state counts; the others are for people and for filters.
const (
	RankStateData    = "lockstep.rank.state.data"    // bytes, see docs/format/rank-state.md
	RankStateSource  = "lockstep.rank.state.source"  // s: flight_recorder, rank_events, nccl_ras
	RankStateName    = "lockstep.rank.state.name"    // s, file or address
	RankStatePartial = "lockstep.rank.state.partial" // s, why it is not whole
	RankStateProcess = "lockstep.rank.state.process" // s: running, stopped, traced, frozen, dead, ended
	RankStateOpen    = "lockstep.rank.state.open"    // i, operations that are not over
	RankStateAge     = "lockstep.rank.state.age"     // d, s since the oldest of them was enqueued
)

// Attributes of lockstep.rank.absent, a rank of which there is no state. The resource is
// the rank's.
const (
	RankAbsentReason = "lockstep.rank.absent.reason" // s: dead, unreadable, refused, stale, late, missing
	RankAbsentDetail = "lockstep.rank.absent.detail" // s, the file and the fault, or the witness
)

// Attributes of lockstep.steps.missing: steps of one rank that are not delivered.
const (
	StepsMissingFirst   = "lockstep.steps.missing.first"   // i, step
	StepsMissingLast    = "lockstep.steps.missing.last"    // i, step
	StepsMissingRecords = "lockstep.steps.missing.records" // i, overwritten before they were read, those of incomplete steps beside them included
	StepsMissingReason  = "lockstep.steps.missing.reason"  // s: overwritten
)
