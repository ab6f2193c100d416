// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Row is a witness, or a set of them.
type Row string

// Rows. Those of the live plugin are cumulative: each has what those before it have.
const (
	HostEvents     Row = "NCCL host events"
	KernelChannels Row = "+ kernel channels"
	ProxySteps     Row = "+ proxy steps"
	Scopes         Row = "+ scopes"
	CUPTI          Row = "+ CUPTI"
	Kineto         Row = "Kineto"
	FlightRecorder Row = "Flight Recorder"
)

// Rows lists all rows, in the order of the document.
var Rows = []Row{HostEvents, KernelChannels, ProxySteps, Scopes, CUPTI, Kineto, FlightRecorder}

// Verdict says how far a row can tell of a class.
type Verdict string

// Verdicts.
const (
	// Decides: place and class are named, and the cause where one is asked for.
	Decides Verdict = "decides"
	// Bounds: who is named is at fault, but in another class, without the cause, or
	// not in every job; the cell says which.
	Bounds Verdict = "bounds"
	// Abstains: the evidence is missing. Nothing of the class is told, and nobody
	// accused in its stead.
	Abstains Verdict = "abstains"
	// NotJudged: as Abstains, and no engine judges the class yet, whatever is seen.
	NotJudged Verdict = "abstains (not judged yet)"
	// Elsewhere: as Abstains, and the class is told from what no row has: packets
	// between nodes, spans of services.
	Elsewhere Verdict = "abstains (told elsewhere)"
)

// Class is a class of finding, or one with a cause.
type Class struct {
	Kind, Name string
	Cause      string // "" where it is not asked for
}

func (c Class) String() string {
	if c.Cause != "" {
		return c.Name + ", cause " + c.Cause
	}
	return c.Name
}

// Cell is what a row can tell of a class.
type Cell struct {
	Verdict Verdict
	// Told are the classes, or class/cause, under which those at fault are named, and
	// Nobody where some jobs end without a finding; sorted. Empty where nothing is told.
	Told []string
	Why  string // one line
	Test string // that backs it
}

// Nobody is told where a job ends without a finding.
const Nobody = "nobody"

// kinds are the classes of every kind in the data model, in its order.
var kinds = []struct {
	kind    string
	classes []string
}{
	{model.FindingStraggler, []string{
		model.ClassCompute, model.ClassHost, model.ClassLink,
		model.ClassWorkImbalance, model.ClassStageImbalance, model.ClassKernelChoice, model.ClassJitter, model.ClassNode, model.ClassJobWide,
	}},
	{model.FindingDesync, []string{
		model.ClassProcessDead, model.ClassProcessStopped, model.ClassDumpMissing, model.ClassNotScheduled, model.ClassStalledOp, model.ClassCompletionLag,
		model.ClassNetwork, model.ClassMismatchOp, model.ClassMismatchSize, model.ClassMismatchDType, model.ClassMismatchRoot,
		model.ClassSplitImbalance, model.ClassOrderCycle, model.ClassP2PUnmatched, model.ClassInitIncomplete, model.ClassIncompleteEvidence,
	}},
	{model.FindingClock, []string{model.ClassSkew, model.ClassDrift, model.ClassStep, model.ClassUntrusted}},
	{"fabric", []string{
		"nic_down", "flap", "congestion", "imbalance", "degraded", "asymmetry", "path_loss", "host_unreachable",
		"transport_mismatch", "misconfigured",
	}},
	{model.FindingEpoch, []string{model.ClassMixed, model.ClassPartial, model.ClassWeightsOnly, model.ClassRevoked, model.ClassFleetMixed}},
	{"crash", []string{"first_failure"}},
}

// hostCauses are the causes of a late host that scopes can tell.
var hostCauses = []string{model.CauseDataLoader, model.CauseGC, model.CauseCheckpoint, model.CauseCompile}

// Classes lists every class of the data model, in its order; host also with each of
// its causes.
func Classes() (out []Class) {
	for _, k := range kinds {
		for _, name := range k.classes {
			out = append(out, Class{Kind: k.kind, Name: name})
			if name == model.ClassHost {
				for _, cause := range hostCauses {
					out = append(out, Class{Kind: k.kind, Name: name, Cause: cause})
				}
			}
		}
	}
	return out
}

// Of returns what a row can tell of a class; false where there is no such row or
// class.
func Of(row Row, c Class) (Cell, bool) {
	if !slices.Contains(Rows, row) || !slices.Contains(Classes(), c) {
		return Cell{}, false
	}
	cell := Cell{Verdict: NotJudged, Test: testUnjudged, Why: unread}
	switch {
	case c.Kind == model.FindingDesync:
		return hangCellOf(row, c), true
	case c.Kind == model.FindingClock, c.Kind == model.FindingEpoch:
		cell.Verdict, cell.Why = Elsewhere, unjudged[c.Kind]
	case c.Kind != model.FindingStraggler:
		cell.Why = unjudged[c.Kind]
	case row != FlightRecorder:
		cell = stragglers[c.key()].of(row)
		cell.Test = testStragglers + "/" + c.key()
	}
	return cell, true
}

// key names the class among stragglers.
func (c Class) key() string {
	if c.Cause != "" {
		return c.Cause
	}
	return c.Name
}

// The tests that back cells.
const (
	testStragglers = "TestStragglers"
	testUnjudged   = "TestNobodyTellsOfOtherClasses"
	testShapes     = "TestShapes"
)
