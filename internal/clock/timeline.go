// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// Offset is what must be added to a clock's stamps to place them on the
// timeline of its component.
type Offset struct {
	Clock string
	// Value is applied to stamps. It is zero where the estimate does not differ
	// from zero by more than its sigma allows: an error must not be added to a
	// clock that may be right.
	Value time.Duration
	// Estimate is the value that the evidence suggests, applied or not.
	Estimate time.Duration
	// Sigma is the standard deviation of Estimate. It is not a bound.
	Sigma time.Duration
	// Lower and Upper bound the offset against the reference by hard
	// constraints only; Bounded is false where there are none.
	Lower, Upper time.Duration
	Bounded      bool
	// Conflict: the hard constraints between this clock and another contradict one
	// another. One of both was stepped, or its frequency changed, among the
	// meetings.
	Conflict bool
	// Reference is the clock whose offset is zero by definition; clocks with
	// different references are not comparable.
	Reference string
	Meetings  int // rendezvous that the estimate rests on
}
