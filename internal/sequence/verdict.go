// SPDX-License-Identifier: Apache-2.0

package sequence

// Verdict is what is known of a step that is concluded.
type Verdict struct {
	// Lost are its spans that were lost.
	Lost int64
	// Before: the step was concluded before, over other spans, or may have been.
	Before bool
	// Elsewhere: some of its spans may have gone to another gateway.
	Elsewhere bool
}

// Why a step is incomplete, as lockstep.step.incomplete says.
const (
	IncompleteBefore    = "concluded_before"
	IncompleteRestart   = "gateway_ended"
	IncompleteElsewhere = "other_gateway"
)

// Incomplete returns why spans of the step are missing; empty: nothing is known to be.
func (v Verdict) Incomplete() string {
	switch {
	case v.Before:
		return IncompleteBefore
	case v.Lost > 0:
		return IncompleteRestart
	case v.Elsewhere:
		return IncompleteElsewhere
	}
	return ""
}
