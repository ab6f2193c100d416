// SPDX-License-Identifier: Apache-2.0

package part

import (
	"fmt"
	"slices"
)

// Phases of programs/nccl_ranks.py.
const (
	ncclList  = "list"  // the list of calls, each waited for
	ncclBurst = "burst" // calls without a wait between them
	ncclLate  = "late"  // the last rank sleeps before a collective
	ncclOpen  = "open"  // the last rank joins when the caller signals
	ncclHold  = "hold"  // stays until the caller signals
	ncclSelf  = "self"  // messages of a single rank to itself
	ncclLoop  = "loop"  // the same call again and again
)

// ncclTruth is what one process of programs/nccl_ranks.py wrote down of itself.
type ncclTruth struct {
	Rank     int         `json:"rank"`
	World    int         `json:"world"`
	PID      uint64      `json:"pid"`
	Backend  string      `json:"backend"`
	NCCL     string      `json:"nccl"`
	Groups   []ncclGroup `json:"groups"` // in the order in which their communicators are made
	Ops      []ncclOp    `json:"ops"`    // in order
	Phases   []string    `json:"phases"` // that are over
	Ended    bool        `json:"ended"`
	Error    string      `json:"error"`
	Log      []string    `json:"log"` // of the stand-in's logger
	LateRank int         `json:"late_rank"`
	LateNS   uint64      `json:"late_ns"`
}

type ncclGroup struct {
	Name string `json:"name"`
	Size int32  `json:"size"`
	Rank int32  `json:"rank"`
}

// ncclOp is one operation. Times are ns of CLOCK_MONOTONIC_RAW: before the call, after
// it, and when the device was known to have done it.
type ncclOp struct {
	Phase    string `json:"phase"`
	Call     int    `json:"call"` // operations of one call have the same
	Group    string `json:"group"`
	Function string `json:"function"`
	Bytes    uint64 `json:"bytes"`
	DType    string `json:"dtype"`
	Peer     int32  `json:"peer"` // of a message; else the root
	Before   uint64 `json:"before_ns"`
	Called   uint64 `json:"called_ns"`
	After    uint64 `json:"after_ns"`
}

func (o *ncclOp) message() bool { return o.Function == "Send" || o.Function == "Recv" }

// String names the operation as a report does.
func (o *ncclOp) String() string {
	return fmt.Sprintf("%s of %d bytes on %s (call %d, %s)", o.Function, o.Bytes, o.Group, o.Call, o.Phase)
}

// done reports whether the phase is over.
func (t *ncclTruth) done(phase string) bool { return slices.Contains(t.Phases, phase) }

// only returns the operations of a phase.
func (t *ncclTruth) only(phase string) []ncclOp {
	return slices.DeleteFunc(slices.Clone(t.Ops), func(o ncclOp) bool { return o.Phase != phase })
}
