// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// No stamp of a computer lies before EarliestTime or after LatestTime, Unix ns: those in
// microseconds or milliseconds that are taken for nanoseconds lie in January 1970.
var (
	EarliestTime = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	LatestTime   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
)

// ShortestStep is what no step of a job is shorter than, ns: a kernel alone takes longer.
const ShortestStep = 1000

// IsTime reports whether the stamp can be one of a computer, Unix ns.
func IsTime(at int64) bool { return at >= EarliestTime && at <= LatestTime }
