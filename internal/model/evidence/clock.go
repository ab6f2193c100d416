// SPDX-License-Identifier: Apache-2.0

package evidence

// Clock are the numbers that decided, as JSON.
type Clock struct {
	Timeline   string  `json:"timeline,omitempty"`
	Offset     float64 `json:"offset_seconds,omitempty"`
	Bound      float64 `json:"bound_seconds,omitempty"`
	Threshold  float64 `json:"threshold_seconds,omitempty"`
	Drift      float64 `json:"drift_ppm,omitempty"`
	DriftBound float64 `json:"drift_bound_ppm,omitempty"`
	Limit      float64 `json:"limit_ppm,omitempty"`
	Jump       float64 `json:"jump_seconds,omitempty"`
	Steps      int64   `json:"steps,omitempty"`
	// Walls is how many real-time clocks the timeline follows the median of, and Raws how
	// many raw ones stand on it.
	Walls       int             `json:"realtime_clocks,omitempty"`
	Raws        int             `json:"raw_clocks,omitempty"`
	Contradicts []Contradiction `json:"contradicts,omitempty"`
	// Undecided: nothing tells which one is off, or was stepped, this clock or Other. There
	// is none where the reference of more than two clocks may have been stepped, or they.
	Other     string `json:"other,omitempty"`
	Undecided bool   `json:"undecided,omitempty"`
}

// Contradiction is how far another clock contradicts this one.
type Contradiction struct {
	Clock  string  `json:"clock"`
	Source string  `json:"source"`
	Excess float64 `json:"excess_seconds"`
}
