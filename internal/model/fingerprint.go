// SPDX-License-Identifier: Apache-2.0

package model

// Fingerprint is what a slice of one rank's parameters hashes to after a step. The replicas of a group
// hash alike.
type Fingerprint struct {
	Rank Rank
	Time int64  // Unix ns at which it was taken; it decides nothing but which life of a rank is the later
	Life string // as of a Resume

	Step int64
	Hash uint64
	// Start is the first element of the slice, Total how many elements all slices have.
	Start, Total int64
	Group        string // of replicas
	Replicas     int64  // in the group; 0: not said
}
