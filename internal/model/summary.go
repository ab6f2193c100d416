// SPDX-License-Identifier: Apache-2.0

package model

// Summary is what a rank's step span says of the whole step, in seconds where
// not said otherwise. The first seven sum to the step.
type Summary struct {
	Compute, ComputeOverlapped, Transfer, Wait float64
	LaunchIdle, DependencyIdle, Copy           float64

	Ops, Collectives int64
	Histograms       string // JSON, see docs/format/summary.md; empty where left out
}
