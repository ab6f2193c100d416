// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// Config bounds what is kept, and says what is enough to name somebody.
type Config struct {
	Window         int     // steps that are judged together
	MinExcessShare float64 // of the peers' own time
	MaxFalseAlarm  float64 // probability that chance alone names somebody, over all ranks and looks
	MaxRanks       int
	MaxPlaces      int
	MaxLinks       int
}

// Defaults and their reasons.
const (
	// defaultWindow holds eight episodes of eight steps, and a pause every 16 steps four
	// times.
	defaultWindow = 64
	// defaultExcessShare lets a device pass that is slower by a tenth where a third of
	// the own time is idle and some of the rest is copies; it is four standard deviations
	// of what devices of one kind differ by (workerSpread).
	defaultExcessShare = 0.04
	// DefaultFalseAlarm is per window, over all that accuses, and what the engine asks. It holds for normal noise, with
	// memory or without; the share gate takes most of what is left.
	DefaultFalseAlarm = 3e-3
	defaultRanks      = 1 << 15
	defaultPlaces     = 1 << 16
	defaultLinks      = 1 << 16
)

// The false alarms are divided over the sorts of conclusions that accuse, so that all of
// them together raise no more (Bonferroni, weighted by what each is asked for).
const (
	rankAlarm      = 0.75
	linkAlarm      = 0.05
	hostAlarm      = 0.05
	heldAlarm      = 0.1  // ranks held up in some steps only: chance makes and unmakes them as the window moves
	stageHostAlarm = 0.05 // hosts that hold a stage
)

func (c *Config) setDefaults() {
	set(&c.Window, defaultWindow)
	set(&c.MaxRanks, defaultRanks)
	set(&c.MaxPlaces, defaultPlaces)
	set(&c.MaxLinks, defaultLinks)
	setShare(&c.MinExcessShare, defaultExcessShare)
	setShare(&c.MaxFalseAlarm, DefaultFalseAlarm)
}

func set(x *int, to int) {
	if *x <= 0 {
		*x = to
	}
}

func setShare(x *float64, to float64) {
	if !(*x > 0) || math.IsInf(*x, 1) {
		*x = to
	}
}

// Stats counts what was refused or forgotten.
type Stats struct {
	Rows          uint64 // accepted
	RowsRefused   uint64 // without a seat, of a rank that the step had already, or beyond the limit
	CellsRefused  uint64 // not finite, negative, or longer than any step
	PlacesRefused uint64 // cells of places beyond the limit
	LinksRefused  uint64 // not finite, negative, or beyond the limit
	StepsRefused  uint64 // not longer than 0, or not finite
	Forgotten     uint64 // ranks that were absent for a window
}
