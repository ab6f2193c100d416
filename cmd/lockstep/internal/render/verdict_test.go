// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

func seen(n, missing int) *straggler.JobReport {
	j := &straggler.JobReport{Steps: 2, MissingCount: missing}
	for r := range int64(n) {
		j.Ranks = append(j.Ranks, straggler.RankTotal{Rank: r, Meetings: 24})
	}
	for r := range int64(missing) {
		j.Missing = append(j.Missing, int64(n)+r)
	}
	return j
}

func TestVerdictSentence(t *testing.T) {
	with := func(j *straggler.JobReport, meetings, attributed int) *straggler.JobReport {
		j.Meetings, j.Attributed = meetings, attributed
		return j
	}
	for want, j := range map[string]*straggler.JobReport{
		"Cannot tell: 1 of 16 ranks seen, and 24 collectives, but of none more than one member.":                                   seen(1, 15),
		"Cannot tell: 2 of 8 ranks seen, and 10 collectives, but of none can it be told who was waited for: members were not seen": with(seen(2, 6), 10, 0),
		"Cannot tell: 4 ranks seen, and no collective.":                                                                            {Steps: 1, Ranks: make([]straggler.RankTotal, 4)},
		"Cannot tell: 4 ranks seen, and no step.":                                                                                  {Ranks: seen(4, 0).Ranks},
		"No straggler found among the 2 of 8 ranks that were seen.":                                                                with(seen(2, 6), 10, 4),
		"No straggler found.": with(seen(8, 0), 10, 10),
		"1 finding: rank 2 on node0, which costs 3.00 ms per step.": threeRanks(),
	} {
		said := words(render(t, input(j), report.Style{}))
		assert.Contains(t, said, want)
		assert.Equal(t, strings.Contains(want, "Cannot"), VerdictOf(*j) == CannotTell)
	}
	assert.Equal(t, CannotTell, VerdictOf())
	assert.Equal(t, None, VerdictOf(*seen(1, 0), *with(seen(2, 0), 1, 1)))
	assert.Equal(t, Found, VerdictOf(*seen(1, 0), *threeRanks()))
}

func TestVerdictSentence_OfAPlace_NamesItsRanks(t *testing.T) {
	for want, f := range map[string]model.Finding{
		"1 finding: host n1 (2 ranks), which costs 20.0 ms per step.": {Class: model.ClassNode, Host: "n1", Ranks: []int64{8, 9}},
		"1 finding: ranks 3 and 7, which cost 20.0 ms per step.":      {Class: model.ClassWorkImbalance, Ranks: []int64{3, 7}},
	} {
		f.Kind, f.CostSeconds = model.FindingStraggler, model.Some(0.020)
		j := threeRanks()
		j.Verdicts = []straggler.Verdict{{Finding: f}}
		assert.Contains(t, words(render(t, input(j), report.Style{Width: 120})), want)
	}
}

func TestJobsWithTheCostliestFindingFirst(t *testing.T) {
	dear := threeRanks()
	dear.JobName = "dear"
	dear.Verdicts[0].Finding.CostSeconds = model.Some(1.0)
	jobs := []straggler.JobReport{*seen(1, 0), *threeRanks(), *dear, *seen(2, 0)}
	SortJobs(jobs)
	assert.Equal(t, "dear", jobs[0].JobName)
	assert.Equal(t, "job7", jobs[1].JobName)
	assert.Len(t, jobs[2].Ranks, 1, "those without a finding keep their order")
	assert.Len(t, jobs[3].Ranks, 2)
	in := input(dear)
	in.Jobs = jobs
	assert.Equal(t, 1, strings.Count(render(t, in, report.Style{}), "3 files"))
}

func TestRanksApartAreStated(t *testing.T) {
	j := seen(8, 0)
	j.Meetings, j.Attributed, j.Apart = 4, 4, []int64{5}
	assert.Contains(t, words(render(t, input(j), report.Style{})), "apart "+Apart(5))
	j.Apart = []int64{5, 6}
	assert.Contains(t, words(render(t, input(j), report.Style{})), "apart ranks 5 and 6 share no collective")
}

func TestColumnsNeverTouch(t *testing.T) {
	j := threeRanks()
	for i := range j.Ranks {
		r := &j.Ranks[i]
		r.Rank += 1_000_000_000
		r.LastArrivals, r.Meetings, r.WaitCaused = 123_456_789, 987_654_321, 1<<62
	}
	var b strings.Builder
	assert.NoError(t, Write(&b, input(j), report.Style{}))
	rows := 0
	for _, line := range strings.Split(b.String(), "\n") {
		if f := strings.Fields(line); len(f) == 8 && f[6] == "123456789/987654321" {
			rows++
		}
	}
	assert.Equal(t, 3, rows)
}

func TestLongNamesAreCut(t *testing.T) {
	j := threeRanks()
	long := strings.Repeat("x", 100_000)
	v := &j.Verdicts[0]
	v.Finding.Op, v.Finding.Action = long, "look at "+long+" now"
	v.Decisive.Name, j.JobName = long, long
	in := input(j)
	in.Problems = []model.Problem{{Offset: -1, What: long}}
	var b strings.Builder
	assert.NoError(t, Write(&b, in, report.Style{}))
	assert.Less(t, b.Len(), 8_000)
	assert.Contains(t, b.String(), "xxx…")
	assert.Contains(t, words(b.String()), "… now", "what follows the name stays")
}

func TestWhatLacksIsNamed(t *testing.T) {
	met := func(missing int, u straggler.Unowed) *straggler.JobReport {
		j := seen(8-missing, missing)
		j.Meetings, j.Unowed = 10, u
		return j
	}
	for want, j := range map[string]*straggler.JobReport{
		"(Gate steps: got 0; want 1. What lacks: operations with lockstep.step.)":                                                          {Ranks: seen(4, 0).Ranks},
		"(Gate collectives: got 0; want 1. What lacks: operations with lockstep.op.kind collective":                                        {Steps: 1, Ranks: make([]straggler.RankTotal, 4)},
		"that agree in lockstep.comm.id and lockstep.collective.seq.)":                                                                     seen(1, 15),
		"and 23.0 % of the step may be waits for who was not. (Gate unseen_share: got 0.23; want 0.02. What lacks: operations of rank 7.)": met(1, straggler.Unowed{Members: 10, Share: 0.23, Want: 0.02}),
		"(Gate unseen_members: got 10; want 0. What lacks: operations of rank 7.)":                                                         met(1, straggler.Unowed{Members: 10, Share: 1, Want: 0.02}),
		"(Gate clocks: got 0; want 1. What lacks: a common lockstep.clock.id":                                                              met(0, straggler.Unowed{Members: 1, Clocks: 9}),
		"(Gate synchronising: got 0; want 1. What lacks: collectives in which all wait for all, or lockstep.collective.root.)":             met(0, straggler.Unowed{Kind: 10}),
	} {
		assert.Contains(t, words(render(t, input(j), report.Style{})), want)
		assert.Equal(t, CannotTell, VerdictOf(*j))
	}
	for want, change := range map[string]func(j *straggler.JobReport){
		"What lacks: communication of rank 5, of which none was recorded.)":                                   func(j *straggler.JobReport) { j.Ranks[5].Meetings = 0 },
		"What lacks: operations of rank 2 that meet those of the others.)":                                    func(j *straggler.JobReport) { j.Apart = []int64{2} },
		"What lacks: lockstep.comm.size that is true: more ranks take part (12 operations joined nothing for": func(j *straggler.JobReport) { j.Unjoined = straggler.Unjoined{Alone: 3, Crowded: 12} },
	} {
		j := met(0, straggler.Unowed{Members: 10, Share: 0.2, Want: 0.02})
		change(j)
		assert.Contains(t, words(render(t, input(j), report.Style{})), want)
	}
	for want, u := range map[string]straggler.Unjoined{
		"lockstep.collective.seq.scope that says over what the ranks count together (24 operations joined nothing for this).)": {Scope: 24, Alone: 23},
		"What lacks: lockstep.collective.seq (": {Number: 1},
		"What lacks: lockstep.peer (":           {Peer: 1},
		"that agree in lockstep.collective.name and lockstep.collective.bytes (1 operation joined nothing for this).)": {Unlike: 1},
		"that agree in lockstep.comm.id and lockstep.collective.seq (2 operations":                                     {Alone: 2, Unlike: 1},
	} {
		j := seen(8, 0)
		j.Unjoined = u
		assert.Contains(t, words(render(t, input(j), report.Style{})), want)
	}
	harmless := met(1, straggler.Unowed{Members: 10, Share: 0.01, Want: 0.02})
	assert.Equal(t, None, VerdictOf(*harmless))
	assert.Contains(t, words(render(t, input(harmless), report.Style{})), "No straggler found among the 7 of 8 ranks that were seen.")
	harmless.Unowed.Clocks = 1
	assert.Equal(t, CannotTell, VerdictOf(*harmless))
}
