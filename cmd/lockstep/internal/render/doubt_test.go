// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// compared is a job of eight ranks in which all could be compared, and nobody is named.
func compared(a *straggler.Abstention) *straggler.JobReport {
	j := seen(8, 0)
	j.Meetings, j.Attributed, j.Abstained = 10, 10, a
	return j
}

func TestWhoIsUndecidedIsNoHealth(t *testing.T) {
	for _, tc := range []struct {
		a    straggler.Abstention
		want Verdict
		said string
	}{
		{
			straggler.Abstention{Rank: 3, Gate: "few_steps", Got: 1, Want: 3, CostShare: 0.447, Dear: true},
			CannotTell,
			"Cannot tell: rank 3 may slow the job by up to 44.7 %, but too few steps were recorded to tell it from chance. (Gate few_steps: got 1; want 3. What lacks: more steps.)",
		},
		{
			straggler.Abstention{Rank: 1, Gate: "pair", Got: 0.15, Want: 0.2, CostShare: 0.1, Dear: true},
			CannotTell,
			"(Gate pair: got 0.15; want 0.20. What lacks: other ranks that do the same.)",
		},
		{
			straggler.Abstention{Rank: 3, Ranks: []int64{0, 1, 2, 3}, Gate: "half", Got: 0.5, Want: 0.5, CostShare: 0.14, Dear: true},
			CannotTell,
			"Cannot tell: ranks 0-3 may slow the job by up to 14.0 %, but half or more of the ranks that do the same are slower than the rest, and nobody says which are as they should be. (Gate half: got 0.50; want less than 0.50.",
		},
		{straggler.Abstention{Rank: 3, Gate: "few_steps", Got: 1, Want: 3, CostShare: 0.005}, None, "No straggler found."},
		{
			straggler.Abstention{Rank: 3, Gate: "false_alarm", Got: 0.0091, Want: 0.0075, CostShare: 0.387, Dear: true},
			None,
			"No straggler is certain: mending rank 3 would save 38.7 % of the step, but chance may have made it late.",
		},
		{straggler.Abstention{Rank: 3, Gate: "false_alarm", Got: 0.5, Want: 0.0075, CostShare: 0.004}, None, "No straggler found."},
		{straggler.Abstention{Rank: 3, Gate: "excess_share", Got: 0.01, Want: 0.04, CostShare: 0.387, Dear: true}, None, "No straggler found."},
	} {
		j := compared(&tc.a)
		said := words(render(t, input(j), report.Style{}))
		assert.Equal(t, tc.want, VerdictOf(*j), "%+v", tc.a)
		assert.Equal(t, tc.want, VerdictOf(*j, *compared(nil)), "another job that is healthy hides nobody: %+v", tc.a)
		assert.Contains(t, said, tc.said)
		assert.Contains(t, said, "judged over 2 steps and 10 collectives")
	}
	assert.Equal(t, Found, VerdictOf(*compared(&straggler.Abstention{Gate: "half", Dear: true}), *threeRanks()))
}

// Nobody is told to be healthy by stamps in another unit.
func TestAnotherUnitIsNoHealth(t *testing.T) {
	j := compared(nil)
	j.OffUnit = 16
	assert.Equal(t, CannotTell, VerdictOf(*j))
	assert.Contains(t, words(render(t, input(j), report.Style{})), "Cannot tell: 8 ranks seen, and stamps of another unit than nanoseconds, in which they are compared. (Gate unit: got 16; want 0. What lacks: stamps in nanoseconds since 1970.)")
}

// Rank 5 keeps all others waiting, and nothing that is compared explains it.
func TestWhoIsMostAwaitedIsTold(t *testing.T) {
	late := func(split straggler.Split) *straggler.JobReport {
		j := compared(&straggler.Abstention{Rank: 6, Gate: "excess_share"})
		j.StepTime, j.Unowed.Want = 2*28*time.Millisecond, 0.02
		for i := range j.Ranks {
			j.Ranks[i].Steps, j.Ranks[i].Split.Compute = 2, 40*time.Millisecond
		}
		split.Compute += 40 * time.Millisecond
		j.Ranks[5].Split, j.Ranks[5].WaitCaused, j.Ranks[1].WaitCaused = split, 56*time.Millisecond, 3*time.Millisecond
		return j
	}
	for want, split := range map[string]straggler.Split{
		"its device idled 4.00 ms per step longer than the median of the others although work had been launched": {DependencyIdle: 8 * time.Millisecond},
		"its host had launched nothing for 4.00 ms per step longer":                                              {LaunchIdle: 8 * time.Millisecond},
		"it computed 4.00 ms per step longer":                                                                    {Compute: 8 * time.Millisecond},
		"it copied for 4.00 ms per step longer":                                                                  {Copy: 8 * time.Millisecond},
		"by itself it took no longer than the others":                                                            {},
	} {
		j := late(split)
		said := words(render(t, input(j), report.Style{}))
		assert.Contains(t, said, "No straggler is certain: rank 5 caused 94.9 % of all wait, and nothing recorded explains it.")
		assert.Contains(t, said, "most awaited rank 5, which caused 94.9 % of all wait: "+want)
		assert.Equal(t, None, VerdictOf(*j))
	}

	for why, change := range map[string]func(j *straggler.JobReport){
		"too little":         func(j *straggler.JobReport) { j.Ranks[5].WaitCaused, j.Ranks[1].WaitCaused = 7*time.Millisecond, 0 },
		"others as much":     func(j *straggler.JobReport) { j.Ranks[1].WaitCaused = 56 * time.Millisecond },
		"told with its gate": func(j *straggler.JobReport) { j.Abstained.Rank = 5 },
	} {
		j := late(straggler.Split{})
		change(j)
		said := render(t, input(j), report.Style{})
		assert.Contains(t, said, "No straggler found.", why)
		assert.NotContains(t, said, "most awaited", why)
	}
}

func TestWhyNothingCouldBeAnalysedIsTold(t *testing.T) {
	in := &Input{Stats: straggler.Stats{OpsWithoutStep: 2160, WorldsCapped: 240}}
	said := words(render(t, in, report.Style{}))
	assert.Contains(t, said, "lost 2,160 operations without a step")
	assert.Contains(t, said, "lost 240 batches of a world beyond the limit of ranks")
}
