// SPDX-License-Identifier: Apache-2.0

package clock

// Placement is where a reading of a clock stands on a timeline, and how well
// that is known.
type Placement struct {
	Time   int64 // Unix ns on the timeline
	Offset int64 // ns, Time less the reading
	// Bound is the half width, in ns, of what Time can be; Bounded is false where
	// nothing bounds it, and then Sigma is all that is known.
	Bound    int64
	Bounded  bool
	Sigma    float64 // ns; 0 where there is no estimate
	Timeline string
	// Stepped: the clock was stepped near this reading.
	Stepped bool
	// Untrusted: the clock contradicts the others. Time is the reading, Offset 0.
	Untrusted bool
}

// Placer places readings of many clocks. It is safe for concurrent use.
type Placer interface {
	// Place returns where a reading stands; false for a clock of which nothing is
	// known.
	Place(clock string, reading int64) (Placement, bool)
	// PlaceAll appends where readings of one clock stand, as Place says of each. The
	// Timeline is empty where nothing is known.
	PlaceAll(clock string, readings []int64, to []Placement) []Placement
	// Between bounds by how much the difference of two placed readings can be wrong,
	// in ns: 0 for one clock, never more than the sum of both bounds. False where
	// the clocks stand on different timelines or nothing bounds them.
	Between(a string, readingA int64, b string, readingB int64) (bound int64, ok bool)
}
