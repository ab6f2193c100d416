// SPDX-License-Identifier: Apache-2.0

package model

// Resume is what one rank says that it has loaded, before its first step.
type Resume struct {
	Rank Rank
	Time int64 // Unix ns at which it was told; it decides nothing but which life of a rank is the later
	// Life names the process that told it: a rank of one incarnation may be started again.
	Life string
	// Number counts what this life has told in this incarnation, from 1.
	Number int64

	Step          int64
	OptimizerStep Optional[int64]
	DataCursor    string // empty: not said, as the next two
	RNGDigest     string // 32 hexadecimal digits
	// Replica names the ranks that must agree on DataCursor and RNGDigest.
	Replica string
}

// Bounds of the texts of a Resume, bytes.
const (
	MaxResumeText = 32
	MaxResumeLife = 96
)
