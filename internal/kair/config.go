// SPDX-License-Identifier: Apache-2.0

package kair

// Config bounds an Analyzer and sets its rules.
type Config struct {
	// Windows is how many windows a step has.
	Windows int
	// Raw compares numbers of operations, not shares of the worker's own.
	Raw bool
	// ComputeOnly looks at compute operations only: rhythm and outliers. What blame leads
	// to may be of the host, too, but no link.
	ComputeOnly bool
	// Cohorts compares only rhythms of workers of one role: those that run the same
	// program.
	Cohorts bool
	// Sigmas is the limit of the z-score.
	Sigmas float64
	// Span is how many steps are forgotten at a time: scores, votes and frequencies
	// are of the last one to two spans.
	Span int
	// MinShare and MinSteps are in what share of the recent steps, and in how many, a
	// rank is blamed before it is accused.
	MinShare float64
	MinSteps int

	MaxRanks     int // per step
	MaxOps       int // per step
	MaxKeys      int // distinct operations
	MaxOpenSteps int
	MaxOpenOps   int // in open steps, of which one may have as many
	MaxWalks     int // outliers that are followed in a step, those of the largest excess
	MaxShown     int // operations of the frequency view, the rest is one
}

// Published returns KAIR as published.
func Published() Config {
	return Config{
		Windows: 128, Sigmas: 3, Span: 16, MinShare: 0.5, MinSteps: 3,
		MaxRanks: 1 << 15, MaxOps: 1 << 23, MaxKeys: 1 << 16, MaxOpenSteps: 64, MaxOpenOps: 1 << 23, MaxWalks: 256, MaxShown: 64,
	}
}

// Plus returns KAIR with compute operations only and cohorts by role.
func Plus() Config {
	c := Published()
	c.ComputeOnly, c.Cohorts = true, true
	return c
}

// Stats counts what found no room.
type Stats struct {
	OpsRefused     int64 // of ranks beyond MaxRanks of a step
	OpsDropped     int64 // beyond MaxOps of a step
	OpsWithoutStep int64
	LateOps        int64 // for a step that was closed
	KeysOverflowed int64 // operations of keys beyond MaxKeys, which count as one
	StepsEvicted   int64 // closed early, beyond MaxOpenSteps or MaxOpenOps
	WalksLeftOut   int64 // outliers that were not followed
}
