package model

import "strings"

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

	Confidence float64 // 0 to 1
	Evidence   string  // JSON
	Action     string

	Links      []SpanRef
	IncidentID string
}

// OutsideScopes reports whether hosts were late where no scope was open.
func (f *Finding) OutsideScopes() bool {
	return (f.Class == ClassHost || f.Class == ClassJitter) && f.Op == OpOther
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
