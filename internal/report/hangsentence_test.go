// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestHangSentences(t *testing.T) {
	at := time.Date(2026, 11, 23, 14, 3, 12, 999, time.UTC).UnixNano()
	rank9 := model.Finding{
		Kind: model.FindingDesync, Rank: model.Some(int64(9)), Host: "node3", Op: "all_reduce 812", CommID: "0xaa", CommName: "TENSOR_MODEL_PARALLEL_GROUP",
		Waiting: []int64{8, 10, 11}, Through: model.Some(int64(12)), Start: at, Confidence: 0.95, Status: model.StatusOpen,
	}
	with := func(change func(*model.Finding)) model.Finding {
		f := rank9
		change(&f)
		return f
	}
	for want, f := range map[string]model.Finding{
		"rank 9 on node3: desync (not_scheduled): has not entered all_reduce 812 of TENSOR_MODEL_PARALLEL_GROUP; 3 ranks wait for it, 12 more through others; since 14:03:12 UTC (confidence 0.95)": with(func(f *model.Finding) {
			f.Class = "not_scheduled"
		}),
		"rank 9 on node3: desync (not_scheduled), cause dataloader: has not entered all_reduce 812 of 0xaa; from 14:03:12 to 14:03:15 UTC (confidence 0.95)": with(func(f *model.Finding) {
			f.Class, f.Cause, f.CommName, f.Waiting, f.Through = "not_scheduled", "dataloader", "", nil, model.Some(int64(0))
			f.Status, f.Time = model.StatusClosed, at+3e9
		}),
		"ranks 9 and 14: desync (completion_lag): their devices have not completed all_reduce 812 of TENSOR_MODEL_PARALLEL_GROUP, which others have; since 14:03:12 UTC (confidence 0.95)": with(func(f *model.Finding) {
			f.Class, f.Rank, f.Host, f.Ranks = "completion_lag", model.Optional[int64]{}, "", []int64{9, 14}
			f.Waiting, f.Through = nil, model.Optional[int64]{}
		}),
		"rank 9 on node3: desync (process_dead): its process is gone, and with it the end of all_reduce 812 of TENSOR_MODEL_PARALLEL_GROUP; 1 rank waits for it; since 14:03:12 UTC (confidence 0.95)": with(func(f *model.Finding) {
			f.Class, f.Waiting, f.Through = "process_dead", nil, model.Optional[int64]{}
			f.WaitingCount = model.Some(int64(1))
		}),
		"communicator TENSOR_MODEL_PARALLEL_GROUP: desync (incomplete_evidence): all_reduce 812 of TENSOR_MODEL_PARALLEL_GROUP hangs; the evidence does not decide: candidates are ranks 3 and 5; 3 ranks wait, 12 more through others; since 14:03:12 UTC (confidence 0.95)": with(func(f *model.Finding) {
			f.Class, f.Rank, f.Host, f.Candidates = "incomplete_evidence", model.Optional[int64]{}, "", []int64{3, 5}
		}),
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: the candidate is rank 9; 1 rank waits (confidence 0.00)": {
			Kind: "desync", Class: "incomplete_evidence", CommID: "c", Candidates: []int64{9}, Waiting: []int64{1},
		},
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: candidates are ranks 0-9, 12, 14 and 88 more (confidence 0.00)": {
			Kind: "desync", Class: "incomplete_evidence", CommID: "c", Candidates: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14}, CandidatesCount: model.Some(int64(100)),
		},
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: candidates are ranks 0 and 1, or a rank that has no state here (confidence 0.00)": {
			Kind: "desync", Class: "incomplete_evidence", CommID: "c", Candidates: []int64{0, 1}, Evidence: evidence.Text(`{"members_inferred": true}`),
		},
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: the candidates are ranks of which nothing is known (confidence 0.00)": {
			Kind: "desync", Class: "incomplete_evidence", CommID: "c", Evidence: evidence.Text(`{"members_inferred": true}`),
		},
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: candidates are ranks 3, 1, 2 and 5 more (confidence 0.00)": {
			Kind: model.FindingDesync, Class: model.ClassIncompleteEvidence, CommID: "c", Candidates: []int64{3, 1, 2}, CandidatesCount: model.Some[int64](8),
		},
		"rank 1: desync (not_scheduled): has not entered all_reduce 11 of c; at fault with it may be rank 2 (confidence 0.60)": {
			Kind: model.FindingDesync, Class: model.ClassNotScheduled, Op: "all_reduce 11", CommID: "c", Rank: model.Some[int64](1), Ranks: []int64{1}, RanksCount: model.Some[int64](1),
			Candidates: []int64{1, 2}, CandidatesCount: model.Some[int64](2), Confidence: 0.6,
		},
		"communicator c: desync (incomplete_evidence): an operation of c hangs; the evidence does not decide: candidates are ranks 1 and 2 (confidence 0.00)": {
			Kind: "desync", Class: "incomplete_evidence", CommID: "c", Candidates: []int64{1, 2}, Evidence: evidence.Text(`{"members_inferred": true, "world_size": 4}`),
		},
		"rank 9: desync (init_incomplete): has not come to set up 0xaa; 3 ranks wait for it (confidence 0.00)": {
			Kind: "desync", Class: "init_incomplete", Rank: model.Some(int64(9)), CommID: "0xaa", Waiting: []int64{1, 2, 3},
		},
		"rank 9: desync (dump_missing): nothing is known of it, and nobody else is missing in an operation; 2 ranks wait through others (confidence 0.00)": {
			Kind: "desync", Class: "dump_missing", Rank: model.Some(int64(9)), Through: model.Some(int64(2)),
		},
		"rank 9: desync (dump_missing): nothing is known of it, and nobody else is missing in an operation; 1 rank waits through others (confidence 0.00)": {
			Kind: "desync", Class: "dump_missing", Rank: model.Some(int64(9)), Through: model.Some(int64(1)),
		},
		"ranks 0 and 1: desync (mismatch_size): the members have different sizes in an operation of c; 2 ranks wait for them (confidence 0.00)": {
			Kind: "desync", Class: "mismatch_size", Ranks: []int64{0, 1}, CommID: "c", Waiting: []int64{2, 3},
		},
		"rank 9: desync (not_scheduled): has not come to receive from rank 1, which waits in send 1 -> 9 of P (42); 1 rank waits for it (confidence 0.00)": {
			Kind: "desync", Class: "not_scheduled", Rank: model.Some(int64(9)), Op: "send 1 -> 9", CommID: "42", CommName: "P", Waiting: []int64{1},
		},
		"rank 1: desync (not_scheduled): has not come to send to rank 9, which waits in recv 1 -> 9 of P (42); 1 rank waits for it (confidence 0.00)": {
			Kind: "desync", Class: "not_scheduled", Rank: model.Some(int64(1)), Op: "recv 1 -> 9", CommID: "42", CommName: "P", Waiting: []int64{9},
		},
		"rank 1: desync (not_scheduled): has not entered send 1 -> 9 of P (42) (confidence 0.00)": {
			Kind: "desync", Class: "not_scheduled", Rank: model.Some(int64(1)), Op: "send 1 -> 9", CommID: "42", CommName: "P",
		},
		"communicator P: desync (stalled_op): members do not get out of all_reduce 7 of P (42), which others are through; 2 ranks wait (confidence 0.00)": {
			Kind: "desync", Class: "stalled_op", Op: "all_reduce 7", CommID: "42", CommName: "P", Waiting: []int64{1, 2}, Evidence: evidence.Text(`{"members_through": 1}`),
		},
		"communicator P: desync (stalled_op): all members have entered all_reduce 7 of P (42), and nobody gets out; 2 ranks wait (confidence 0.00)": {
			Kind: "desync", Class: "stalled_op", Op: "all_reduce 7", CommID: "42", CommName: "P", Waiting: []int64{1, 2}, Evidence: evidence.Text(`{"members_in_it": 2}`),
		},
		"rank 3: desync (some_class), at send 4 (confidence 0.00)": {Kind: "desync", Class: "some_class", Rank: model.Some(int64(3)), Op: "send 4"},
		"communicator c1: desync (confidence 0.00)":                {Kind: "desync", CommID: "c1"},
		"ranks 1 and 899 more: desync (confidence 0.00)":           {Kind: "desync", Ranks: []int64{1}, RanksCount: model.Some(int64(900))},
	} {
		assert.Equal(t, want, Sentence(&f))
	}
}

// Every class of a hang is said in words of its own, for one rank and for several.
func TestEveryHangClassIsSaid(t *testing.T) {
	seen := map[string]string{}
	for _, class := range []string{
		model.ClassProcessDead, model.ClassProcessStopped, model.ClassDumpMissing, model.ClassNotScheduled, model.ClassStalledOp, model.ClassCompletionLag,
		model.ClassNetwork, model.ClassMismatchOp, model.ClassMismatchSize, model.ClassMismatchDType, model.ClassMismatchRoot,
		model.ClassSplitImbalance, model.ClassOrderCycle, model.ClassP2PUnmatched, model.ClassInitIncomplete, model.ClassIncompleteEvidence,
	} {
		for _, f := range []model.Finding{
			{Class: class, Rank: model.Some(int64(1)), Op: "all_reduce 7", CommName: "G"}, {Class: class, Ranks: []int64{1, 2}, Op: "all_reduce 7", CommName: "G"},
		} {
			text := hang(&f)
			assert.Contains(t, text, "all_reduce 7 of G", class)
			assert.NotContains(t, text, "%")
			if of, ok := seen[text]; ok {
				assert.Equal(t, of, class, text)
			}
			seen[text] = class
		}
	}
	assert.Len(t, hangClaims, 16)
}
