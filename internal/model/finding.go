// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Finding kinds, their classes and causes.
const (
	FindingStraggler = "straggler"

	ClassCompute = "compute"
	ClassHost    = "host"
	ClassLink    = "link"

	ClassWorkImbalance  = "work_imbalance"
	ClassStageImbalance = "stage_imbalance"
	ClassKernelChoice   = "kernel_choice"
	ClassJitter         = "jitter"
	ClassNode           = "node"
	ClassJobWide        = "job_wide"

	FindingClock = "clock"

	ClassSkew      = "skew"
	ClassDrift     = "drift"
	ClassStep      = "step"
	ClassUntrusted = "untrusted"

	FindingDesync = "desync"

	ClassProcessDead    = "process_dead"
	ClassProcessStopped = "process_stopped" // by a signal, a debugger or a frozen cgroup; it lives
	ClassDumpMissing    = "dump_missing"
	ClassNotScheduled   = "not_scheduled"
	ClassStalledOp      = "stalled_op"
	ClassCompletionLag  = "completion_lag"
	ClassNetwork        = "network"
	ClassMismatchOp     = "mismatch_op"
	ClassMismatchSize   = "mismatch_size"
	ClassMismatchDType  = "mismatch_dtype"
	ClassMismatchRoot   = "mismatch_root"
	ClassSplitImbalance = "split_imbalance"
	ClassOrderCycle     = "order_cycle"
	ClassP2PUnmatched   = "p2p_unmatched"
	ClassInitIncomplete = "init_incomplete"
	// ClassIncompleteEvidence: something hangs, and what was recorded does not decide
	// why. Candidates has who can be at fault.
	ClassIncompleteEvidence = "incomplete_evidence"

	// FindingEpoch is of a save of a job, or of the versions that its nodes run.
	FindingEpoch = "epoch"

	ClassMixed   = "mixed"   // domains hold different epochs
	ClassPartial = "partial" // some confirm it, others do not, and none moves
	// ClassWeightsOnly: all of it that is there confirms it, and there is no optimizer.
	ClassWeightsOnly = "weights_only"
	ClassRevoked     = "revoked" // the newest that could be recovered can be no more
	// ClassFleetMixed: members of a communicator run versions that may not mix.
	ClassFleetMixed = "fleet_mixed"

	// OpResume is the operation of findings of kind epoch of what ranks have loaded, OpFingerprint of
	// those of replicas whose parameters differ.
	OpResume      = "resume"
	OpFingerprint = "fingerprint"
	// OpLogLine begins the operation of findings of kind epoch of what a line of a log says; which
	// line, follows.
	OpLogLine = "log "

	CauseUnknown    = "unknown"
	CauseCompile    = "compile"
	CauseGC         = "gc"
	CauseDataLoader = "dataloader"
	CauseCheckpoint = "checkpoint"
)

// OpOther stands in the place of an operation or scope where none is known.
const OpOther = "(other)"

// Finding states.
const (
	StatusOpen    = "open"
	StatusUpdated = "updated"
	StatusClosed  = "closed"
)

// Severity of a finding.
type Severity int

// Severities, ordered.
const (
	SeverityInfo Severity = iota
	SeverityWarn
	SeverityError
)

// String returns the severity as a log record spells it.
func (s Severity) String() string {
	switch s {
	case SeverityError:
		return "ERROR"
	case SeverityWarn:
		return "WARN"
	}
	return "INFO"
}

// Finding is one conclusion, with its place as precise as the evidence allows.
type Finding struct {
	Time     int64 // Unix ns: end of what was judged
	Start    int64 // Unix ns: start of what was judged
	Severity Severity

	JobName     string
	JobID       string
	Incarnation string

	Kind  string
	Class string
	Cause string

	ID       string
	Revision int64
	Status   string

	Rank       Optional[int64]
	Host       string
	HWID       string
	Op         string
	CommID     string
	CommName   string // for people: the process group's description
	Peer       Optional[int64]
	Link       string
	Clock      string // clock id, of findings of kind clock
	Ranks      []int64
	RanksCount Optional[int64]

	StepFirst, StepLast Optional[int64]
	// BeforeWindow: the cause precedes the recording.
	BeforeWindow bool

	CostSeconds Optional[float64] // per step
	CostShare   Optional[float64] // of the step
	CostJoint   Optional[float64] // s per step, all findings removed together
	// CostLeast and CostMost bound CostSeconds where what was not recorded leaves it open.
	CostLeast, CostMost Optional[float64]

	WaitCaused      Optional[float64] // s per step, summed over the others
	WaitCausedShare Optional[float64] // of all wait of the same steps

	// Waiting are the ranks that wait for the place of a hang themselves, Through how many
	// more wait for those.
	Waiting      []int64
	WaitingCount Optional[int64]
	Through      Optional[int64]
	// Candidates are the ranks that can be at fault where the evidence does not decide, the
	// likeliest first. Beside Ranks they are those, and who can be at fault with them.
	Candidates      []int64
	CandidatesCount Optional[int64]
	// Stack is the call stack of the operation, or of what the host is in, as recorded.
	Stack string

	Confidence float64           // 0 to 1
	Evidence   evidence.Evidence // replaced, never changed: copies of a finding share it
	Action     string

	Links      []SpanRef
	IncidentID string
	// Unnumbered: what stands for ranks are numbers of processes, by which the finding is followed
	// and which are not given out.
	Unnumbered bool
}

// GiveOut returns the finding without what is for its followers only.
func (f *Finding) GiveOut() Finding {
	out := *f
	if f.Unnumbered {
		out.Rank, out.Peer = Optional[int64]{}, Optional[int64]{}
		out.Ranks, out.Candidates, out.Waiting = nil, nil, nil
	}
	return out
}

// OutsideScopes reports whether hosts were late where no scope was open.
func (f *Finding) OutsideScopes() bool {
	return (f.Class == ClassHost || f.Class == ClassJitter) && f.Op == OpOther
}

// AboutRanks returns the ranks at fault, and those that may be. Ranks that only wait are not among them.
func (f *Finding) AboutRanks() []int64 {
	ranks := slices.Concat(f.Ranks, f.Candidates)
	if f.Rank.OK {
		ranks = append(ranks, f.Rank.V)
	}
	return ranks
}

// Blameless reports whether the finding names what costs time and nobody who is at
// fault: the ranks that it may list are those concerned.
func (f *Finding) Blameless() bool {
	switch f.Class {
	case ClassWorkImbalance, ClassStageImbalance, ClassJitter, ClassJobWide:
		return f.Kind == FindingStraggler
	}
	return false
}

// EndDecided reports whether a finding of class link says which end of it is slow: a
// card, whatever it sends to or receives from.
func (f *Finding) EndDecided() bool { return f.Class == ClassLink && strings.Contains(f.Link, " nic ") }
