// SPDX-License-Identifier: Apache-2.0

package evidence

// Held is what the kernel says of a process that is stopped, traced or frozen, as JSON.
type Held struct {
	Seconds    float64 `json:"held_seconds"` // for so long
	PID        *int64  `json:"pid,omitempty"`
	Process    string  `json:"process"` // its state, as of model.ProcessState
	StallLimit float64 `json:"stall_limit_seconds"`
	Waited     float64 `json:"waited_seconds"` // by the rank that waits for it longest
	Watched    string  `json:"watched"`
}
