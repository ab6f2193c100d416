// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/report"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// render returns the report and checks that it fits.
func render(t *testing.T, in *Input, style report.Style) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, in, style))
	for _, line := range strings.Split(b.String(), "\n") {
		if !style.Color {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), style.Columns(), line)
		}
	}
	return b.String()
}

// words joins what wrapping parted.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// threeRanks is a job of three ranks in which rank 2 arrives 8 ms after rank 0
// and 3 ms after rank 1, so that it causes 11 ms of wait, in each of two steps.
func threeRanks() *straggler.JobReport {
	const step = int64(30 * time.Millisecond)
	rank := func(r int64, own, caused, suffered time.Duration, last int) straggler.RankTotal {
		return straggler.RankTotal{
			Rank: r, Host: "node0", Steps: 2, Meetings: 2, LastArrivals: last,
			Split:      straggler.Split{Compute: 2 * own, Wait: 2 * suffered, Transfer: 2 * time.Millisecond},
			WaitCaused: 2 * caused, WaitSuffered: 2 * suffered,
			Offset: clock.Offset{Clock: "c", Reference: "c"},
		}
	}
	at := func(d time.Duration) int64 { return step + int64(d) }
	return &straggler.JobReport{
		JobName: "job7", Incarnation: "abc", Steps: 2, StepTime: 2 * 19 * time.Millisecond,
		Ranks: []straggler.RankTotal{
			rank(0, 10*time.Millisecond, 0, 8*time.Millisecond, 0),
			rank(1, 15*time.Millisecond, 0, 3*time.Millisecond, 0),
			rank(2, 18*time.Millisecond, 11*time.Millisecond, 0, 2),
		},
		Verdicts: []straggler.Verdict{{
			Finding: model.Finding{
				Kind: model.FindingStraggler, Class: model.ClassHost, Rank: model.Some(int64(2)), Host: "node0",
				Op: "data", StepFirst: model.Some(int64(1)), StepLast: model.Some(int64(2)), BeforeWindow: true,
				CostSeconds: model.Some(0.003), CostShare: model.Some(0.158), CostJoint: model.Some(0.003),
				WaitCaused: model.Some(0.011), WaitCausedShare: model.Some(1.0), Confidence: 0.62,
				Evidence: evidence.Text(`{"meetings":2,"last_arrivals":2,"next_ranks":[1],"missing_ranks":[3],
					"confidence_lowered_by":["only 2 steps","missing ranks: 3"],
					"decisive":{"step":1,"collective":"all_reduce","comm_id":"world","gap_to_second_last_seconds":0.003}}`),
				Action: "look at the loader",
			},
			Decisive: &straggler.Meeting{
				Name: model.AllReduce, CommID: "world", Size: 4, Attributed: true,
				Members: []straggler.Member{
					{Rank: 0, Enter: at(10 * time.Millisecond), Exit: at(20 * time.Millisecond), Wait: 8 * time.Millisecond},
					{Rank: 1, Enter: at(15 * time.Millisecond), Exit: at(20 * time.Millisecond), Wait: 3 * time.Millisecond},
					{Rank: 2, Enter: at(18 * time.Millisecond), Exit: at(20 * time.Millisecond)},
				},
			},
		}},
		Missing: []int64{3}, MissingCount: 1,
	}
}

func input(j *straggler.JobReport) *Input {
	return &Input{Files: 3, Bytes: 2048, Ops: 1234, Jobs: []straggler.JobReport{*j}}
}

func TestReportSaysWhoWhereAndWhatItCosts(t *testing.T) {
	for _, width := range []int{40, 80, 100, 120, 300} {
		said := words(render(t, input(threeRanks()), report.Style{Width: width}))
		for _, want := range []string{
			"job job7, incarnation abc",
			"ranks 3 of 4; missing: rank 3",
			"steps 2, 19.0 ms on average",
			"input 3 files, 2.00 KiB, 1,234 operations",
			"Finding 1 of 1: rank 2 on node0 makes the others wait (class host: its host launches work late)",
			`"data"; it shows best in all_reduce of step 1 (communicator world)`,
			"11.0 ms per step, summed over the others: 100 % of all wait; last in 2 of 2 collectives",
			"3.00 ms per step (15.8 % of the step) is all that mending this rank alone would save",
			"in that collective rank 1 would be last once it is mended; the second-last came 3.00 ms before it",
			"1 finding: rank 2 on node0, which costs 3.00 ms per step.",
			"steps 1 to 2; the cause precedes the recording",
			"0.62 of 1; lowered by: only 2 steps; missing ranks: 3",
			"look at the loader",
			"3 of 4 ranks seen",
		} {
			assert.Contains(t, said, want, "width %d", width)
		}
		assert.NotContains(t, said, "problem")
	}
}

// One finding alone has no others to be mended with.
func TestMendingAllIsSaidOfSeveralFindingsOnly(t *testing.T) {
	const all = "; mending all findings together saves 5.00 ms"
	j := threeRanks()
	j.Verdicts[0].Finding.CostJoint = model.Some(0.005)
	assert.NotContains(t, words(render(t, input(j), report.Style{Width: 300})), "mending all")
	j.Verdicts = append(j.Verdicts, j.Verdicts[0])
	assert.Contains(t, words(render(t, input(j), report.Style{Width: 300})), all)
}

func TestTableOfRanks(t *testing.T) {
	text := render(t, input(threeRanks()), report.Style{Width: 120})
	rows := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		if f := strings.Fields(line); len(f) == 9 {
			rows[f[0]] = f
		}
	}
	// rank, host, own, compute, idle, caused, suffered, last, clock; ms per step.
	assert.Equal(t, []string{"0", "node0", "10.00", "10.00", "0.00", "0.00", "8.00", "0/2", "reference"}, rows["0"])
	assert.Equal(t, []string{"2", "node0", "18.00", "18.00", "0.00", "11.00", "0.00", "2/2", "reference"}, rows["2"])
}

func TestTimelineIsToScale(t *testing.T) {
	text := render(t, input(threeRanks()), report.Style{Width: 100})
	bars := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "rank" && strings.HasSuffix(line, "µs") {
			bars[f[1]] = line
		}
	}
	require.Len(t, bars, 3)
	// Arrivals at 0, 5 and 8 of 10 ms over 70 columns.
	waits := func(r string) int { return strings.Count(bars[r], string(waitMark)) }
	transfers := func(r string) int { return strings.Count(bars[r], string(transferMark)) }
	assert.Equal(t, 56, waits("0"))
	assert.Equal(t, 21, waits("1"))
	assert.Equal(t, 0, waits("2"))
	for _, r := range []string{"0", "1", "2"} {
		assert.Equal(t, 14, transfers(r), "2 of 10 ms, rank %s", r)
	}
	assert.True(t, strings.HasSuffix(bars["0"], " -8,000 µs"), bars["0"])
	assert.True(t, strings.HasSuffix(bars["1"], " -3,000 µs"), bars["1"])
	assert.True(t, strings.HasSuffix(bars["2"], " 0 µs"), bars["2"])
	assert.Less(t, strings.Index(text, bars["0"]), strings.Index(text, bars["2"]), "in order of arrival")
}

func TestTimelineOfManyRanksIsCut(t *testing.T) {
	j := threeRanks()
	m := j.Verdicts[0].Decisive
	m.Members = nil
	for r := range int64(1000) {
		m.Members = append(m.Members, straggler.Member{Rank: r, Enter: r * 1000, Exit: 2_000_000})
	}
	text := render(t, input(j), report.Style{})
	assert.Contains(t, text, "… 968 ranks between")
	assert.Contains(t, text, "rank 7 ")
	assert.NotContains(t, text, "rank 8 ")
	assert.NotContains(t, text, "rank 975 ")
	assert.Contains(t, text, "rank 976 ")
	assert.Contains(t, text, "rank 999 ")
}

func TestTableOfManyRanksShowsTheWorst(t *testing.T) {
	j := &straggler.JobReport{Steps: 1}
	for r := range int64(1000) {
		j.Ranks = append(j.Ranks, straggler.RankTotal{Rank: r, Steps: 1, WaitCaused: time.Duration(r) * time.Millisecond})
	}
	text := render(t, input(j), report.Style{})
	assert.Contains(t, text, "968 ranks more; all of them are in --json")
	assert.Contains(t, text, "\n   999")
	assert.Contains(t, text, "\n   968")
	assert.NotContains(t, text, "\n   967")
}

func TestAbstentionSaysWhichGate(t *testing.T) {
	j := threeRanks()
	j.Verdicts, j.Missing, j.MissingCount = nil, nil, 0
	j.Meetings, j.Attributed = 3, 2
	j.Abstained = &straggler.Abstention{Rank: 1, Gate: "cost_share", Got: 0.004, Want: 0.02, WaitShare: 0.22, CostShare: 0.004}
	said := words(render(t, input(j), report.Style{}))
	assert.Contains(t, said, "No straggler found.")
	assert.Contains(t, said, "judged over 2 steps and 3 collectives; of 1 no wait is owed to anybody")
	assert.Contains(t, said, "rank 1, which caused 22.0 % of all wait and is not named: mending it would save too little")
	assert.Contains(t, said, "gate cost_share: got 0.004; limit 0.02")
	assert.NotContains(t, said, "Finding")
	assert.NotContains(t, said, "not seen")

	j.Missing, j.MissingCount = []int64{3}, 1
	assert.Contains(t, words(render(t, input(j), report.Style{})), "rank 3 not seen: waits that may be owed to one not seen")
}

func TestALinkIsSaidToBeOne(t *testing.T) {
	j := threeRanks()
	v := &j.Verdicts[0]
	v.Finding = model.Finding{
		Kind: model.FindingStraggler, Class: model.ClassLink, Cause: model.CauseUnknown, Rank: model.Some(int64(2)), Host: "node0",
		Peer: model.Some(int64(0)), Link: "rank 2 -> rank 0", Op: model.AllReduce, CommID: "world", Confidence: 0.9,
		CostSeconds: model.Some(0.02), CostShare: model.Some(0.4), StepFirst: model.Some(int64(1)), StepLast: model.Some(int64(2)),
		Evidence: evidence.Text(`{"steps":9,"decisive":{"step":1,"collective":"all_reduce","comm_id":"world","wire_wait_seconds":0.252,"wire_steps":24,"wire_wait_per_step_seconds":0.0105,"peers_wire_wait_per_step_seconds":0.0005}}`),
	}
	said := words(render(t, input(j), report.Style{}))
	assert.Contains(t, said, "1 finding: link rank 2 -> rank 0, sent from node0, which costs 20.0 ms per step.")
	assert.Contains(t, said, "link rank 2 -> rank 0, sent from node0 lengthens everybody's transfers (class link: "+
		"sends wait longer for the wire than its peers', which end is at fault is not decided)")
	assert.Contains(t, said, "it shows best in all_reduce of step 1 (communicator world), where each of its 24 sends waited 10.5 ms for the wire, its peers' 500 µs")
	assert.Contains(t, said, "is all that mending this link alone would save")
	assert.NotContains(t, said, "wait caused")
	j.Verdicts = nil
	j.Attributed = 1
	for want, a := range map[string]straggler.Abstention{
		"a place of class jitter, which is not told: mending it would save too little":                                   {Rank: -1, Class: "jitter", Gate: "cost_share"},
		"a place that is no rank, which is not told: mending it would save too little":                                   {Rank: -1, Gate: "cost_share"},
		"a link, which is not named: its transfers take hardly longer than its peers'":                                   {Rank: -1, Link: true, Gate: "excess_share"},
		"rank 4, which caused 50.0 % of all wait and is not named (it would be class host): what it takes longer varies": {Rank: 4, Class: "host", Gate: "steadiness", WaitShare: 0.5},
	} {
		assert.Contains(t, candidate(&a), want)
	}
	j.Abstained = &straggler.Abstention{Rank: 2, Link: true, Gate: "excess_share", Got: 0.02, Want: 0.1}
	assert.Contains(t, words(render(t, input(j), report.Style{})), "the link behind rank 2, which is not named: its transfers take hardly longer")
}

func TestAHostOutsideOfScopesIsSaidToBe(t *testing.T) {
	j := threeRanks()
	f := &j.Verdicts[0].Finding
	f.Class, f.Op, f.Evidence = model.ClassHost, "(other)", evidence.Text(`{"steps":2,"place_excess_seconds":0.02}`)
	said := words(render(t, input(j), report.Style{}))
	assert.Contains(t, said, "outside of any scope, 20.0 ms per step more than its peers' median")
	assert.NotContains(t, said, "(other)")
	assert.Contains(t, said, "(class host: its host launches work late)")

	f.Evidence = evidence.Text(`{"steps":2,"host_or_device":true}`)
	assert.Contains(t, words(render(t, input(j), report.Style{})), "its host launches work late, or its device does what was not recorded")
}

func TestOffsets(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	for want, o := range map[string]clock.Offset{
		"reference":        {Clock: "a", Reference: "a"},
		"unknown":          {Clock: "a", Reference: "b"},
		"+12.0±3.0 µs":     {Clock: "a", Reference: "b", Meetings: 4, Value: us(12), Estimate: us(12), Sigma: us(3)},
		"(+2.0±3.0 µs)":    {Clock: "a", Reference: "b", Meetings: 4, Estimate: us(2), Sigma: us(3)},
		"-10.001±0.003 ms": {Clock: "a", Reference: "b", Meetings: 4, Value: us(-10001), Estimate: us(-10001), Sigma: us(3)},
	} {
		assert.Equal(t, want, offsetText(&o))
	}
}

func TestProblemsAreListedWithPlace(t *testing.T) {
	rank := int64(3)
	in := input(threeRanks())
	in.Problems = []model.Problem{
		{File: "a/rank3.json.gz", Offset: 4711, What: "read gzip: unexpected EOF", Rank: &rank},
		{File: "b.json", Offset: -1, What: "tell format"},
	}
	for range 30 {
		in.Problems = append(in.Problems, model.Problem{Offset: -1, What: "more"})
	}
	in.ProblemsOmitted = 5
	said := words(render(t, in, report.Style{}))
	assert.Contains(t, said, "37 problems in the input:")
	assert.Contains(t, said, "a/rank3.json.gz: at byte 4711: read gzip: unexpected EOF (rank 3)")
	assert.Contains(t, said, "b.json: tell format")
	assert.Contains(t, said, "and 17 more")
}

func TestLossesAreStated(t *testing.T) {
	in := input(threeRanks())
	in.Stats = straggler.Stats{OpsWithoutStep: 1, StepsEvicted: 2}
	said := words(render(t, in, report.Style{}))
	assert.Contains(t, said, "lost 1 operation without a step")
	assert.Contains(t, said, "lost 2 steps judged before they were complete")
}

func TestColourOnlyOnDemandAndNoControlCharactersOfOthers(t *testing.T) {
	j := threeRanks()
	j.JobName, j.Ranks[0].Host = "evil\x1b[31mjob", "\x07host"
	j.Verdicts[0].Finding.Op = "op\x1b]0;title\x07"
	j.Verdicts[0].Decisive.Name = "\x1b[2J"
	plain := render(t, input(j), report.Style{})
	assert.NotContains(t, plain, "\x1b")
	assert.NotContains(t, plain, "\x07")
	assert.Contains(t, render(t, input(j), report.Style{Color: true}), "\x1b[")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	require.ErrorContains(t, Write(brokenWriter{}, input(threeRanks()), report.Style{}), "disk full")
}
