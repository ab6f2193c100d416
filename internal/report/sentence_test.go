// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestSentencePlaces(t *testing.T) {
	tests := map[string]model.Finding{
		"rank 0 on n1: straggler (confidence 0.00)": {Kind: "straggler", Rank: model.Some(int64(0)), Host: "n1"},
		"3 ranks: fabric (confidence 0.00)":         {Kind: "fabric", Ranks: []int64{1, 2, 3}},
		"900 ranks: fabric (confidence 0.00)":       {Kind: "fabric", Ranks: []int64{1}, RanksCount: model.Some(int64(900))},
		"host n1: clock (confidence 0.00)":          {Kind: "clock", Host: "n1"},
		"link a-b: fabric (confidence 0.00)":        {Kind: "fabric", Link: "a-b"},
		"host n1: clock (step) (confidence 0.95)": {
			Kind: "clock", Class: "step", Host: "n1", Confidence: 0.95, Evidence: evidence.Text(`{"timeline":"t","jump_seconds":0.5,"steps":1}`), // of the clock
		},
		"link rank 2 -> rank 3, sent from n1: straggler (link), at all_reduce; mending it alone would save 20.0 ms per step; which end is at fault is not decided (confidence 0.90)": {
			Kind: "straggler", Class: "link", Cause: "unknown", Rank: model.Some(int64(2)), Host: "n1", Link: "rank 2 -> rank 3", Op: "all_reduce",
			CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"rank 1: straggler (host), cause compile, at forward (confidence 0.90)": {
			Kind: "straggler", Class: "host", Cause: "compile", Rank: model.Some(int64(1)), Op: "forward", Confidence: 0.9,
		},
		"rank 1: straggler (host), outside of any scope (confidence 0.90)": {
			Kind: "straggler", Class: "host", Rank: model.Some(int64(1)), Op: "(other)", Confidence: 0.9,
		},
		"rank 1: straggler (compute), at (other) (confidence 0.90)": {
			Kind: "straggler", Class: "compute", Rank: model.Some(int64(1)), Op: "(other)", Confidence: 0.9,
		},
		"rank 1: straggler; mending it alone would save 20.0 ms per step (confidence 0.90, 64 steps judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), Confidence: 0.9, Evidence: evidence.Text(`{"steps":64}`),
		},
		"rank 1: straggler; mending it alone would save at least 20.0 ms per step, or up to 30.0 ms, since ranks that were not seen may have waited for it, too (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), CostLeast: model.Some(0.020), CostMost: model.Some(0.03), Confidence: 0.9,
		},
		"rank 1: straggler; mending it alone would save 0 s per step, and 4.00 ms once the other stragglers are mended (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.0), Confidence: 0.9,
			Evidence: evidence.Text(`{"cost_once_others_are_mended_seconds":0.004}`),
		},
		"rank 1: straggler; mending it alone would save 20.0 ms per step, or down to 0 s if a rank that was not seen was late, too (confidence 0.90)": {
			Kind: "straggler", Rank: model.Some(int64(1)), CostSeconds: model.Some(0.020), CostLeast: model.Some(0.0), Confidence: 0.9,
		},
		"rank 1: straggler (method kair, 64 steps judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), Confidence: 0.99, Evidence: evidence.Text(`{"method":"kair","steps":64}`),
		},
		"rank 1: straggler (confidence 0.90, 1 step judged)": {
			Kind: "straggler", Rank: model.Some(int64(1)), Confidence: 0.9, Evidence: evidence.Text(`{"steps":1}`),
		},
		"rank 2 nic tx on n1: straggler (link) (confidence 0.90)": {
			Kind: "straggler", Class: "link", Rank: model.Some(int64(2)), Host: "n1", Link: "rank 2 nic tx", Confidence: 0.9,
		},
		"link group c7: straggler (link); which end is at fault is not decided (confidence 0.90)": {
			Kind: "straggler", Class: "link", Link: "group c7", Ranks: []int64{1, 2}, Confidence: 0.9,
		},
		"host n1 (8 ranks): straggler (node), cause throttle, all of its ranks are slow alike; mending it alone would save 20.0 ms per step (10.0 % of the step) (confidence 0.90)": {
			Kind: "straggler", Class: "node", Cause: "throttle", Host: "n1", Ranks: []int64{0, 1, 2, 3, 4, 5, 6, 7}, CostSeconds: model.Some(0.020), CostShare: model.Some(0.1), Confidence: 0.9,
		},
		"rank 3 on n1: straggler (kernel_choice), it runs another kernel than its peers for the same work, at gemm (confidence 0.90)": {
			Kind: "straggler", Class: "kernel_choice", Rank: model.Some(int64(3)), Host: "n1", Op: "gemm", Confidence: 0.9,
		},
		"stage 2 (1 rank): straggler (stage_imbalance), more work than the other stages; spreading the work evenly would save 20.0 ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "stage_imbalance", Op: "stage 2", Ranks: []int64{9}, CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"ranks 3 and 7: straggler (work_imbalance), more work than their peers, at expert_gemm; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", Ranks: []int64{3, 7}, Op: "expert_gemm", Confidence: 0.9,
		},
		"ranks 0-8 and 91 more: straggler (work_imbalance), more work than their peers; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", Ranks: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, RanksCount: model.Some(int64(100)), Confidence: 0.9,
		},
		"job j: straggler (work_imbalance), unequal work that changes from rank to rank; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "work_imbalance", JobID: "j", Confidence: 0.9,
		},
		"job j: straggler (jitter), cause gc, pauses of 40.0 ms that rotate over the ranks (every 12.0 steps on each); being rid of the pauses would save 20.0 ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "jitter", Cause: "gc", JobID: "j", CostSeconds: model.Some(0.020), Confidence: 0.9, Evidence: evidence.Text(`{"pauses":{"median_seconds":0.04,"period_steps":12}}`),
		},
		"job j: straggler (jitter), pauses that rotate over the ranks; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "jitter", JobID: "j", Confidence: 0.9, Evidence: evidence.Text("none"),
		},
		"job j: straggler (job_wide), all ranks alike since step 40, at gemm; it adds 20.0 ms per step; nobody is at fault (confidence 0.90)": {
			Kind: "straggler", Class: "job_wide", JobID: "j", StepFirst: model.Some(int64(40)), Op: "gemm", CostSeconds: model.Some(0.020), Confidence: 0.9,
		},
		"communicator c1: desync (confidence 0.00)":        {Kind: "desync", CommID: "c1"},
		"job j: epoch, cause checkpoint (confidence 1.00)": {Kind: "epoch", JobID: "j", Cause: "checkpoint", Confidence: 1},
	}
	for want, f := range tests {
		assert.Equal(t, want, Sentence(&f))
	}
}
