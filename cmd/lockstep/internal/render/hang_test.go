// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// hung is a report on rank 5, for which others wait.
func hung() *desync.Report {
	some := model.Some[int64]
	tp := model.Comm{ID: "37", Name: "tp"}
	op := desync.OpRef{Name: "all_reduce", Comm: tp, Ranks: []int64{4, 5, 6, 7}, Seq: 812}
	return &desync.Report{
		Job: desync.Job{Name: "llama", ID: "llama"}, Verdict: desync.Hang, Since: 1758580156069236457, Ranks: 15, Victims: 14,
		Absent: []model.Absence{{Rank: 13, Reason: model.AbsentUnreadable, Detail: "rank_13: dump is empty"}},
		Roots: []desync.Root{{
			Finding: model.Finding{
				Kind: model.FindingDesync, Class: model.ClassNotScheduled, Rank: some(5), Op: "all_reduce 812", CommID: "37",
				Waiting: []int64{4, 6, 7}, WaitingCount: some(3), Through: some(11), Confidence: 0.95,
				Evidence: evidence.Text(`{"members":4}`), Action: "get its stack", Stack: "next (loader.py:7)\nmain (train.py:40)",
			},
			Op:   op,
			Path: []desync.Hop{{Rank: 0, Op: desync.OpRef{Name: "broadcast", Comm: model.Comm{ID: "1"}, Seq: 9}, For: 4, Why: "which rank 4 has not enqueued"}},
			Members: []desync.Member{
				{Rank: 5, State: "not enqueued", What: "last: nccl:all_gather 7 [[8]]", Stack: "next (loader.py:7)\nmain (train.py:40)"},
				{Rank: 4, State: "waits in it", What: "nccl:all_reduce 812 [[4]]", Stack: "main (train.py:41)"},
				{Rank: 6, State: "waits in it", What: "nccl:all_reduce 812 [[4]]", Stack: "main (train.py:41)"},
			},
		}},
		Groups: []desync.Group{
			{Comm: tp, Ranks: []int64{4, 5, 6, 7}, Members: 4, Seen: 4, EnqueuedMin: some(811), EnqueuedMax: some(812), CompletedMin: some(811), CompletedMax: some(811), Head: op, HasHead: true, Open: 3, Absent: []int64{5}},
			{Comm: model.Comm{ID: "0", Name: "default_pg"}, Members: 16, Seen: 15},
		},
	}
}

func renderHang(t *testing.T, width int, hangs ...dumpset.Hang) string {
	t.Helper()
	var b bytes.Buffer
	in := &HangInput{Result: &dumpset.Result{Hangs: hangs}, Sentence: func(f *model.Finding) string {
		return fmt.Sprintf("rank %d: has not entered %s", f.Rank.V, f.Op)
	}}
	require.NoError(t, WriteHangs(&b, in, report.Style{Width: width}))
	return b.String()
}

// Who, what and since when come first, then the groups, then who waits, then the stacks.
func TestHangIsToldInOrder(t *testing.T) {
	out := renderHang(t, 120, dumpset.Hang{Report: hung(), Files: 16, Entries: 32000, Versions: []string{"2.9", "2.10"}, Libs: []string{"2.27.3"}, OnlyActive: 2, Partial: 1})
	at := 0
	for _, want := range []string{
		"job llama", "rank 5: has not entered all_reduce 812",
		"15 of 16 known", "unreadable: 13", "2025-09-22 22:29:16.069 UTC", "14 ranks in all",
		"16 files, 32,000 operations recorded; version 2.9, 2.10; library 2.27.3; 2 without what was over; 1 not", "whole",
		"process group", "tp (37)", "4-7", "811-812", "811", "3", "all_reduce 812", "5", "and 1 more group with nothing open",
		"Root 1 of 1: rank 5, not_scheduled", "all_reduce 812 of tp (37), ranks 4-7",
		"ranks 4, 6 and 7 wait for it themselves; 11 more through others",
		"rank 0 is in broadcast 9, which rank 4 has not enqueued",
		"0.95", "get its stack", "not enqueued", "waits in it", "nccl:all_reduce 812 [[4]]",
		"Last call of rank 5: nccl:all_gather 7 [[8]]", "next (loader.py:7)", "main (train.py:40)",
		"Call stack of ranks 4 and 6, in nccl:all_reduce 812 [[4]]", "main (train.py:41)",
	} {
		i := strings.Index(out[at:], want)
		require.GreaterOrEqual(t, i, 0, "%q behind %q in\n%s", want, out[:at], out)
		at += i
	}
}

func TestUndecidedHangNamesTheCandidates(t *testing.T) {
	r := hung()
	r.Verdict = desync.Undecided
	f := &r.Roots[0].Finding
	f.Class, f.Rank = model.ClassIncompleteEvidence, model.Optional[int64]{}
	f.Candidates, f.CandidatesCount = []int64{5, 13}, model.Some[int64](2)
	out := renderHang(t, 80, dumpset.Hang{Report: r})
	assert.Contains(t, out, "Root 1 of 1: one of 2 ranks, incomplete_evidence")
	assert.Contains(t, out, "the evidence does not decide between ranks 5 and 13")
}

func TestWhatMayRunIsSaidFirst(t *testing.T) {
	r := hung()
	r.Verdict, r.MayRun = desync.Undecided, "its dumps were written late"
	out := renderHang(t, 200, dumpset.Hang{Report: r})
	assert.Contains(t, out, "Cannot tell whether anything hangs: its dumps were written late. If it does:\n")
	r.Roots = nil
	out = renderHang(t, 200, dumpset.Hang{Report: r})
	assert.Contains(t, out, "Cannot tell whether anything hangs: its dumps were written late.\n")
}

// That no dump says when it was taken is said before anybody is named.
func TestWhatRestsOnStandingStillIsSaidFirst(t *testing.T) {
	r := hung()
	r.Untimed = true
	lines := strings.Split(renderHang(t, 200, dumpset.Hang{Report: r}), "\n")
	assert.Equal(t, "If the job stood still when its dumps were taken, which none of them tells:", lines[1])
	assert.Contains(t, lines[2], "rank 5: ")
	r.Verdict = desync.Undecided
	lines = strings.Split(renderHang(t, 200, dumpset.Hang{Report: r}), "\n")
	assert.Equal(t, "If the job stood still when its dumps were taken, which none of them tells:", lines[1])
}

func TestASizeThatNobodyRecorded(t *testing.T) {
	r := hung()
	assert.NotContains(t, renderHang(t, 200, dumpset.Hang{Report: r}), "--world-size")
	r.Unlisted = true
	assert.Contains(t, renderHang(t, 200, dumpset.Hang{Report: r}), "with --world-size more is decided")
	out := renderHang(t, 200, dumpset.Hang{Report: r, SizeRefused: true})
	assert.Contains(t, out, "the dumps contradict the one that was given")
	assert.NotContains(t, out, "with --world-size")
}

// One dump each of many jobs is mostly one job's, in a folder for each node.
func TestFewDumpsOfManyJobs(t *testing.T) {
	job := func(name string) dumpset.Hang {
		r := hung()
		r.Job.Name, r.Ranks = name, 1
		r.Absent = []model.Absence{{Rank: 1}, {Rank: 2}}
		return dumpset.Hang{Report: r}
	}
	assert.NotContains(t, renderHang(t, 200, job("a")), "--job")
	assert.Contains(t, strings.Join(strings.Fields(renderHang(t, 300, job("a"), job("b"))), " "),
		"There are few dumps each of 2 jobs, told apart by their folders and the beginnings of their names. If they are of one job, say so with --job NAME. job a")
	whole := job("c")
	whole.Absent = nil
	assert.NotContains(t, renderHang(t, 200, job("a"), whole), "--job")
}

// Whose dump was left out is said beside what is concluded without it.
func TestStaleDumpsAreSaid(t *testing.T) {
	r := hung()
	r.Absent = []model.Absence{{Rank: 1, Reason: model.AbsentStale}, {Rank: 2, Reason: model.AbsentMissing}}
	lines := strings.Split(renderHang(t, 200, dumpset.Hang{Report: r}), "\n")
	assert.Equal(t, "The dump of rank 1 is not of this incident, and was left out.", lines[2])
	r.Absent[1].Reason = model.AbsentStale
	assert.Contains(t, renderHang(t, 200, dumpset.Hang{Report: r}), "The dumps of ranks 1, 2 are not of this incident, and were left out.\n")
}

func TestNothingHangs(t *testing.T) {
	out := renderHang(t, 80, dumpset.Hang{Report: &desync.Report{Job: desync.Job{Name: "x"}, Verdict: desync.Healthy, Ranks: 4}})
	assert.Contains(t, out, "Nothing hangs.")
	out = renderHang(t, 80, dumpset.Hang{Report: &desync.Report{Job: desync.Job{Name: "x"}, Verdict: desync.Healthy, Ranks: 4, Absent: []model.Absence{{Rank: 4, Reason: model.AbsentMissing}}}})
	assert.Contains(t, out, "Nothing hangs among the 4 ranks whose state is known.")
	out = renderHang(t, 80, dumpset.Hang{Report: &desync.Report{Job: desync.Job{Name: "x"}, Verdict: desync.NoData}})
	assert.Contains(t, out, "Cannot tell: no dump could be read.")
}

// What others wrote does not drive the terminal, nor fill it.
func TestHostileHang(t *testing.T) {
	r := hung()
	r.Job.Name = "a\x1b[2J" + strings.Repeat("b", 10_000)
	r.Roots[0].Finding.Stack = strings.Repeat("f (x.py:1)\x07\n", 10_000)
	r.Roots[0].Members[1].What = strings.Repeat("w", 10_000)
	r.Groups[0].Comm.Name = strings.Repeat("g\x00", 10_000)
	for range 200 {
		r.Roots = append(r.Roots, r.Roots[0])
		r.Groups = append(r.Groups, r.Groups[0])
	}
	out := renderHang(t, 80, dumpset.Hang{Report: r})
	assert.NotContains(t, out, "\x1b[2J")
	assert.NotContains(t, out, "\x07")
	assert.NotContains(t, out, "\x00")
	assert.Less(t, len(out), 40_000)
	assert.Contains(t, out, "And 193 more roots")
	assert.Contains(t, out, "and 9,977 more frames")
}

// Whose stack it is, and of which call, is what the member did, not what the others wait in.
func TestStacksAreOfTheirOwnCalls(t *testing.T) {
	r := hung()
	root := &r.Roots[0]
	r.Roots[0].Members[0].What = ""
	assert.Equal(t, "Call stack of rank 5 (not enqueued)", stacksOf(root)[0].title)
	root.Members, root.Finding.Stack = nil, "main (train.py:41)"
	assert.Equal(t, []namedStack{{"Call stack of one that waits in all_reduce 812", "main (train.py:41)"}}, stacksOf(root))
	root.Op = desync.OpRef{}
	assert.Equal(t, "Call stack of rank 5", stacksOf(root)[0].title)
	root.Finding.Stack = ""
	assert.Empty(t, stacksOf(root))
}

func TestOneCandidate(t *testing.T) {
	r := hung()
	f := &r.Roots[0].Finding
	f.Class, f.Rank = model.ClassIncompleteEvidence, model.Optional[int64]{}
	f.Candidates, f.CandidatesCount = []int64{9}, model.Some[int64](1)
	out := renderHang(t, 100, dumpset.Hang{Report: r})
	assert.Contains(t, out, "Root 1 of 1: perhaps rank 9, incomplete_evidence")
	assert.Contains(t, out, "rank 9; the evidence does not decide whether it is at fault")
}

// That what is compared contradicts itself bears on whether nothing hangs.
func TestNothingHangsInDumpsThatContradict(t *testing.T) {
	r := &desync.Report{Verdict: desync.Healthy, Ranks: 4, Problems: []string{"rank 2 was through operation 7, which rank 0 had not enqueued: the job went on"}}
	out := renderHang(t, 120, dumpset.Hang{Report: r})
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "Nothing hangs, if the dumps are of one run. Rank 2 was through operation 7, which rank 0 had not enqueued: the job went on.")
}

func TestNoOperationRecorded(t *testing.T) {
	out := renderHang(t, 200, dumpset.Hang{Report: &desync.Report{Verdict: desync.NoData, Ranks: 4}})
	assert.Contains(t, out, "Cannot tell: the dumps recorded no operation.")
	out = renderHang(t, 200, dumpset.Hang{Report: &desync.Report{Verdict: desync.NoData, Ranks: 4}, Partial: 1})
	assert.Contains(t, out, "Cannot tell: no operation could be read from the dumps, which are not whole.")
}

// Which incident it is, and that nothing tells whether it is one, stands at the top.
func TestIncidentsAreToldApart(t *testing.T) {
	out := renderHang(t, 200, dumpset.Hang{Report: hung(), Incidents: 2, Began: 1758580156069236457, Times: "The newest operation of rank 2 is 5m1s before."})
	assert.Contains(t, out, "job llama, one of 2 incidents, its dumps of 2025-09-22 22:29:16 UTC on\n")
	lines := strings.Split(out, "\n")
	assert.Equal(t, "The newest operation of rank 2 is 5m1s before.", lines[2])
	assert.NotContains(t, renderHang(t, 200, dumpset.Hang{Report: hung(), Incidents: 1}), "incident")
}

// Where no rank of the job is known, processes and their host stand in the place of ranks.
func TestAProcessWithoutARank(t *testing.T) {
	r := hung()
	f := &r.Roots[0].Finding
	f.Rank, f.Waiting, f.Host = model.Optional[int64]{}, nil, "10.0.0.2"
	f.RanksCount, f.WaitingCount, f.Through = model.Some(int64(1)), model.Some(int64(7)), model.Some(int64(0))
	out := renderHang(t, 200, dumpset.Hang{Report: r, Answers: 2, Files: 2, Remarks: []string{"It says more."}})
	assert.Contains(t, out, "Root 1 of 1: a process on 10.0.0.2, not_scheduled")
	assert.Contains(t, out, "7 processes wait for it themselves")
	assert.Contains(t, out, "2 files, 2 answers of NCCL's RAS")
	assert.Contains(t, out, "It says more.\n")
	f.Host, f.RanksCount, f.WaitingCount = "", model.Some(int64(2)), model.Some(int64(1))
	out = renderHang(t, 200, dumpset.Hang{Report: r})
	assert.Contains(t, out, "2 processes, not_scheduled")
	assert.Contains(t, out, "1 process waits for it itself")
}
