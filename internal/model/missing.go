// SPDX-License-Identifier: Apache-2.0

package model

// MissingSteps are steps of one rank. No record of these steps could be read.
type MissingSteps struct {
	First, Last int64 // numbers between which the rank marked steps
	Records     int64 // that were overwritten, those of steps beside them that are incomplete included
	Time        int64 // Unix ns
	Reason      string
}

// MissingOverwritten is the reason of steps whose records were overwritten before they were read.
const MissingOverwritten = "overwritten"
