// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// A finding of a structure is told with its ranks, and says that nobody is at fault.
func TestStructuresAreTold(t *testing.T) {
	const text = `{"steps":5,"peers":7,"cohort_rung":"symmetric members of the stage","pauses":{"median_seconds":0.04,"period_steps":12}}`
	ms20, since := model.Some(0.020), model.Some(int64(40))
	for name, tc := range map[string]struct {
		finding model.Finding
		want    []string
		brief   string
	}{
		"node": {
			model.Finding{Class: model.ClassNode, Cause: "throttle", Host: "n1", Ranks: []int64{8, 9}},
			[]string{
				"host n1 (2 ranks) makes the others wait (class node: all of its ranks are slow alike; cause: throttle)",
				"its ranks 8 and 9", "is all that mending this host alone would save",
			},
			"host n1 (2 ranks), node (throttle), cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"card": {
			model.Finding{Class: model.ClassLink, Rank: model.Some(int64(2)), Host: "n1", Link: "rank 2 nic tx"},
			[]string{"rank 2 nic tx on n1 lengthens everybody's transfers (class link: all of its transfers that way take longer than its peers')"},
			"rank 2 nic tx on n1, link, cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"kernel": {
			model.Finding{Class: model.ClassKernelChoice, Rank: model.Some(int64(3)), Host: "n1", Op: "gemm"},
			[]string{"rank 3 on n1 makes the others wait (class kernel_choice: it runs another kernel than its peers for the same work)", `where "gemm"`},
			"rank 3 on n1, kernel_choice, cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"stage": {
			model.Finding{Class: model.ClassStageImbalance, Op: "stage 2", Ranks: []int64{4, 5}},
			[]string{
				"stage 2 (2 ranks) makes the others wait (class stage_imbalance: more work than the other stages, nobody is at fault)",
				"its ranks 4 and 5", "is all that spreading the work evenly would save",
			},
			"stage 2 (2 ranks), stage_imbalance, cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"fixed work": {
			model.Finding{Class: model.ClassWorkImbalance, Ranks: []int64{3, 7}, Op: "expert"},
			[]string{
				"ranks 3 and 7 make the others wait (class work_imbalance: more work than their peers, nobody is at fault)", `where "expert"`,
			},
			"ranks 3 and 7, work_imbalance, cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"rotating work": {
			model.Finding{Class: model.ClassWorkImbalance},
			[]string{"unequal work that changes from rank to rank makes the others wait (class work_imbalance: nobody is at fault)"},
			"unequal work that changes from rank to rank, work_imbalance, cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"jitter": {
			model.Finding{Class: model.ClassJitter, Cause: "gc"},
			[]string{
				"pauses of 40.0 ms that rotate over the ranks (every 12.0 steps on each) make the others wait (class jitter: nobody is at fault; cause: gc)",
				"is all that being rid of the pauses would save",
			},
			"pauses of 40.0 ms that rotate over the ranks (every 12.0 steps on each), jitter (gc), cost 20.0 ms per step (5 steps judged); since step 40",
		},
		"job": {
			model.Finding{Class: model.ClassJobWide, Op: "gemm"},
			[]string{"all ranks alike are slower since step 40 (class job_wide: nobody is at fault)", "is what a step takes longer than before"},
			"all ranks alike, job_wide, cost 20.0 ms per step (5 steps judged); since step 40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.finding
			f.Kind, f.JobID, f.CostSeconds, f.StepFirst, f.Evidence = model.FindingStraggler, "job", ms20, since, evidence.Text(text)
			assert.Equal(t, tc.brief, Brief(&f))
			said := finding(t, &f)
			assert.Contains(t, said, "compared with 7 peers: symmetric members of the stage")
			for _, want := range tc.want {
				assert.Contains(t, said, want)
			}
		})
	}
}

// Evidence of the critical path, of pauses and of what others hide is told.
func TestEvidenceIsTold(t *testing.T) {
	f := model.Finding{
		Kind: model.FindingStraggler, Class: model.ClassHost, Rank: model.Some(int64(3)), CostSeconds: model.Some(0.001),
		StepFirst: model.Some(int64(1)), StepLast: model.Some(int64(9)),
		Evidence: evidence.Text(`{"blame_share":0.25,"blame_op":"gc","intermittent":true,"pauses":{"median_seconds":0.04,"period_steps":12},"cost_once_others_are_mended_seconds":0.02}`),
	}
	var b strings.Builder
	require.NoError(t, Finding(&b, &f, "Finding 1", Style{Width: 120}))
	said := words(b.String())
	assert.Contains(t, said, `path it holds 25.0 % of the steps on their critical path, over its peers, most in "gc"`)
	assert.Contains(t, said, "steps 1 to 9; in some of them only, for 40.0 ms, every 12.0 steps")
	assert.Contains(t, said, "would save, and 20.0 ms once the other stragglers are mended")

	for text, want := range map[string]string{
		`{"cost_at_most_seconds":0.02}`:                    " would save, or up to 20.0 ms, since ranks that were not seen may have waited for it, too",
		`{"cost_at_most_seconds":0.02,"lost_share":0.25}`:  " would save, or up to 20.0 ms, since 25.0 % of its operations were lost",
		`{"cost_at_most_seconds":0.001,"lost_share":0.25}`: "would save when",

		`{"cost_at_least_seconds":0.001,"cost_at_most_seconds":0.02}`: "cost at least 1.00 ms per step",
		`{"cost_at_least_seconds":0.0005}`:                            "would save, or down to 500 µs if a rank that was not seen was late, too",
	} {
		f.Evidence = evidence.Text(text)
		b.Reset()
		require.NoError(t, Finding(&b, &f, "Finding 1", Style{Width: 120}))
		assert.Contains(t, words(b.String()), want)
	}

	f.WaitCaused, f.Evidence = model.Some(0.12), evidence.Text(`{"wait_caused_at_least_seconds":0.02}`)
	b.Reset()
	require.NoError(t, Finding(&b, &f, "Finding 1", Style{Width: 120}))
	assert.Contains(t, words(b.String()), "120 ms per step, summed over the others; for it alone at least 20.0 ms")
	f.WaitCaused = model.Optional[float64]{}

	// A host's pauses say nothing of a slow device, and what comes in each step has no period.
	f.Class, f.Evidence = model.ClassCompute, evidence.Text(`{"intermittent":true,"pauses":{"median_seconds":0.001,"period_steps":1}}`)
	b.Reset()
	require.NoError(t, Finding(&b, &f, "Finding 1", Style{Width: 120}))
	assert.Contains(t, words(b.String()), "steps 1 to 9; in some of them only confidence")
}
