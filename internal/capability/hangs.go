// SPDX-License-Identifier: Apache-2.0

package capability

import "github.com/lockstep-otel/lockstep/internal/model"

// hangCell is what dumps of all ranks tell of a class of hang.
type hangCell struct {
	family string // of internal/sim/hang
	told   []string
	why    string
}

// hangs are the cells of Flight Recorder dumps: whole ones, of all ranks.
var hangs = map[string]hangCell{
	model.ClassProcessDead:        {"process_dead", []string{model.ClassProcessDead}, "Where somebody saw the process gone; from dumps alone, who left none is a candidate."},
	model.ClassProcessStopped:     {"", nil, "The kernel says it of a process that lives; dumps do not hold it."},
	model.ClassDumpMissing:        {"no_dump", []string{Nobody}, "Who left no dump is told of as the one candidate, or as one of several; it is not accused."},
	model.ClassNotScheduled:       {"host_stuck", []string{model.ClassNotScheduled}, "Numbers of operations say who has not come to the one that the others wait in, and that nothing it waits for is open."},
	model.ClassStalledOp:          {"stalled_op", []string{model.ClassStalledOp}, "All have enqueued it and nobody gets out; why, dumps do not say."},
	model.ClassCompletionLag:      {"device_stopped", []string{model.ClassCompletionLag}, "Others are through what a rank has open."},
	model.ClassNetwork:            {"network", []string{model.ClassStalledOp}, "It takes a witness of the network beside the dumps; with one, it is told."},
	model.ClassMismatchOp:         {"wrong_op", []string{model.ClassMismatchOp}, "The members' calls under one number are compared; of two members, which is wrong is not decided."},
	model.ClassMismatchSize:       {"wrong_size", []string{model.ClassMismatchSize}, "As for operations, by the number of elements."},
	model.ClassMismatchDType:      {"wrong_dtype", []string{model.ClassMismatchDType}, "As for operations."},
	model.ClassMismatchRoot:       {"wrong_root", []string{model.ClassStalledOp}, "Dumps hold no roots; live events do."},
	model.ClassSplitImbalance:     {"uneven_split", []string{model.ClassSplitImbalance}, "What all members send is compared with what all expect."},
	model.ClassOrderCycle:         {"swapped_groups", []string{model.ClassOrderCycle}, "Who waits for whom is followed over all process groups at once."},
	model.ClassP2PUnmatched:       {"no_recv", []string{model.ClassP2PUnmatched}, "Messages are counted between their ends; which end is wrong is not decided."},
	model.ClassInitIncomplete:     {"init_stuck", []string{model.ClassNotScheduled}, "Who does not come out of making a communicator is named; the class is told only where it does not list that communicator at all."},
	model.ClassIncompleteEvidence: {"", nil, "Told where what was recorded does not decide, with the candidates."},
}

const (
	// ofHangs is why the rows of the live plugin say nothing here.
	ofHangs   = "Told live by the connector `desync`, from the states of ranks that every row of the plugin has (`lockstep.rank.state`), and tested with the demo's faults `hang`, `exit` and `mismatch` and in internal/desync/watch, not on the jobs of this table. Kineto's traces are of jobs that go on."
	testHangs = "TestHangsFromDumps"
)

// hangCellOf returns what a row can tell of a class of hang.
func hangCellOf(row Row, c Class) Cell {
	h := hangs[c.Name]
	cell := Cell{Verdict: Elsewhere, Why: ofHangs, Test: testHangs}
	if row != FlightRecorder {
		return cell
	}
	cell.Why = h.why
	switch {
	case len(h.told) == 0 || h.told[0] == Nobody:
		cell.Verdict = Abstains
	case len(h.told) == 1 && h.told[0] == c.Name:
		cell.Verdict, cell.Told = Decides, h.told
	default:
		cell.Verdict, cell.Told = Bounds, h.told
	}
	return cell
}
