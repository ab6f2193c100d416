// SPDX-License-Identifier: Apache-2.0

package semconv

// Attributes by which lost spans are counted: docs/format/sequence.md. Source and Void are on the resource, Number is
// on each span.
const (
	SequenceSource = "lockstep.sequence.source" // s, name of a stream
	SequenceVoid   = "lockstep.sequence.void"   // []i, first and last of numbers that no accepted span has
	SequenceNumber = "lockstep.sequence.number" // i, from 0 in the stream
)

// Attributes of the root of a step trace of which spans are missing.
const (
	StepIncomplete = "lockstep.step.incomplete" // s: gateway_ended, concluded_before, other_gateway
	StepLost       = "lockstep.step.lost"       // i, spans
)

// Attributes of lockstep.steps.lost: spans of a job that were lost, with lockstep.job.id and
// lockstep.job.incarnation.
const (
	StepsLostFirst  = "lockstep.steps.lost.first"  // i, step; absent where the steps are not known
	StepsLostLast   = "lockstep.steps.lost.last"   // i, step
	StepsLostSpans  = "lockstep.steps.lost.spans"  // i
	StepsLostReason = "lockstep.steps.lost.reason" // s: restart, gap, uncertain
)
