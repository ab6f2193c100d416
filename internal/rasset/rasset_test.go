// SPDX-License-Identifier: Apache-2.0

package rasset

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// text is an answer in text of four ranks of which one is behind.
func text(t *testing.T, behind int, most string) *ras.Status {
	t.Helper()
	report := rastest.Report(4, "", "")
	if behind >= 0 {
		at := string(rune('0' + behind))
		report = rastest.Report(4, "", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"+
			"  3 ranks have launched up to operation "+most+"\n  Rank "+at+" has launched up to operation 8 -- GPU 0 managed by process 10"+at+" on node n1\n")
	}
	all, err := ras.ParseAnswers(strings.NewReader(report), 1<<20)
	require.NoError(t, err)
	return all[0]
}

// whole is an answer in JSON of the same job.
func whole(t *testing.T, taken string, counts ...int64) *ras.Status {
	t.Helper()
	c := rastest.Comm{Hash: 0xab}
	for i, n := range counts {
		c.Members = append(c.Members, rastest.Member{Rank: i, PID: 100 + i, Host: "n1", AllGather: n, AllReduce: 3})
	}
	s, err := ras.Parse(strings.NewReader(rastest.JSON(c)), 1<<20)
	require.NoError(t, err)
	s.Taken = taken
	return s
}

func judged(answers ...Answer) *desync.Report {
	hangs := Judge(answers, Options{Job: "j"})
	return hangs[0].Report
}

func answer(path string, s *ras.Status, after time.Duration) Answer {
	return Answer{Path: path, Written: int64(time.Hour + after), Status: s}
}

func TestJudge_TextAndJSONOfOneMoment_DoNotDecide(t *testing.T) {
	rep := judged(answer("d/a.txt", text(t, 2, "9"), 0), answer("d/a.json", whole(t, "", 9, 9, 8, 9), time.Second))
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "a.txt and a.json are 1 s apart")
	require.Len(t, rep.Roots, 1)
	f := rep.Roots[0].Finding
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, "AllGather 9", f.Op)
	assert.Contains(t, evidence.Encode(f.Evidence), "AllGather: 3 ranks launched 9, rank 2 8")
}

func TestJudge_TwoMoments(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []Answer
		want    desync.Verdict
	}{
		"texts, by their files' times":  {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", text(t, 2, "9"), 20*time.Second)}, desync.Hang},
		"text and then JSON":            {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", whole(t, "", 9, 9, 8, 9), 20*time.Second)}, desync.Hang},
		"JSON, by its own time":         {[]Answer{answer("d/1", whole(t, "2026-01-01 10:00:00", 9, 9, 8, 9), 0), answer("d/2", whole(t, "2026-01-01 10:00:30", 9, 9, 8, 9), 0)}, desync.Hang},
		"copied later, at one time":     {[]Answer{answer("d/1", whole(t, "2026-01-01 10:00:00", 9, 9, 8, 9), 0), answer("d/2", whole(t, "2026-01-01 10:00:01", 9, 9, 8, 9), time.Hour)}, desync.Undecided},
		"it went on":                    {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", whole(t, "", 12, 12, 12, 12), 20*time.Second)}, desync.Healthy},
		"another is behind then":        {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", text(t, 1, "9"), 20*time.Second)}, desync.Undecided},
		"one file, one behind another":  {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/1", text(t, 2, "9"), 0)}, desync.Undecided},
		"the times of the files agree":  {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", text(t, 2, "9"), 0)}, desync.Undecided},
		"text without a difference too": {[]Answer{answer("d/1", text(t, 2, "9"), 0), answer("d/2", text(t, -1, ""), 0)}, desync.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			hangs := Judge(tc.answers, Options{Job: "j"})
			require.Len(t, hangs, 1)
			assert.Equal(t, tc.want, hangs[0].Verdict)
			assert.Equal(t, 2, hangs[0].Answers)
		})
	}
}

func TestJudge_Hung_DecidesByOneAnswer(t *testing.T) {
	hangs := Judge([]Answer{answer("d/1", text(t, 1, "9"), 0)}, Options{Hung: true})
	assert.Equal(t, desync.Hang, hangs[0].Verdict)
	assert.Equal(t, "d", hangs[0].Job.Name)
	assert.Equal(t, model.Some(int64(1)), hangs[0].Roots[0].Finding.Rank)
}

func TestJudge_NoDifference_SaysWhatWouldDecide(t *testing.T) {
	for _, s := range []*ras.Status{text(t, -1, ""), whole(t, "", 9, 9, 9, 9)} {
		hangs := Judge([]Answer{answer("d/1", s, 0)}, Options{})
		require.Len(t, hangs, 1)
		assert.Equal(t, desync.Undecided, hangs[0].Verdict)
		assert.Contains(t, hangs[0].MayRun, "launched the same operations")
		assert.Empty(t, hangs[0].Roots)
	}
}

func TestJudge_Unlisted_AsksForMore(t *testing.T) {
	all, err := ras.ParseAnswers(strings.NewReader(rastest.Report(64, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"+
		"  48 ranks have launched up to operation 9\n  16 ranks have launched up to operation 8\n")), 1<<20)
	require.NoError(t, err)
	rep := judged(answer("d/1", all[0], 0))
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "launches of AllReduce: 48 ranks 9, 16 ranks 8")
	assert.Contains(t, rep.MayRun, "ncclras -v")
}

func TestJudge_TwoJobs_Apart(t *testing.T) {
	other := whole(t, "", 4, 5)
	other.Comms[0].Hash = 0xcd
	hangs := Judge([]Answer{answer("d/1", whole(t, "", 9, 9, 8, 9), 0), answer("d/2", other, 0)}, Options{})
	assert.Len(t, hangs, 2)
}

// Replicas of which one has a rank behind: the others are not listed.
func TestJudge_Replicas_OnlyTheOneThatDiffers(t *testing.T) {
	s := whole(t, "", 9, 9, 8, 9)
	even := whole(t, "", 9, 9, 9, 9)
	even.Comms[0].Hash = 0xcd
	for i := range even.Comms[0].Ranks {
		even.Comms[0].Ranks[i].PID += 50
	}
	s.Comms = append(s.Comms, even.Comms...)
	hangs := Judge([]Answer{answer("d/1", s, 0)}, Options{Hung: true})
	require.Len(t, hangs, 1)
	assert.Equal(t, "0x00000000000000ab", hangs[0].Roots[0].Finding.CommID)
}

// An error that a rank reports, and a process that is dead or does not answer.
func TestJudge_FailuresOfRanks(t *testing.T) {
	s := whole(t, "", 9, 9, 9, 9)
	s.Comms[0].Ranks[3].AsyncError = 2
	hangs := Judge([]Answer{answer("d/1", s, 0)}, Options{})
	assert.Contains(t, strings.Join(hangs[0].Remarks, " "), "rank 3: system error on communicator 0x00000000000000ab")

	gone := func(dead bool) *desync.Report {
		s := whole(t, "", 9, 9, 9, 9)
		c := &s.Comms[0]
		c.Missing = append(c.Missing, ras.MissingRank{Process: c.Ranks[1].Process, Unresponsive: true, ConsideredDead: dead})
		c.Ranks = append(c.Ranks[:1:1], c.Ranks[2:]...)
		return judged(answer("d/1", s, 0))
	}
	rep := gone(true)
	assert.Equal(t, desync.Hang, rep.Verdict)
	assert.Equal(t, model.ClassProcessDead, rep.Roots[0].Finding.Class)
	assert.Equal(t, model.Some(int64(1)), rep.Roots[0].Finding.Rank)
	rep = gone(false)
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{1}, rep.Roots[0].Finding.Candidates)
	assert.Equal(t, model.ClassDumpMissing, rep.Roots[0].Finding.Class)
}

// A rank that is no member any more has no count: the rank that is behind is another.
func TestJudge_NoMemberAnyMore_HasNoCount(t *testing.T) {
	at := func(behind int) *ras.Status {
		c := rastest.Comm{Hash: 0xab}
		for i := range 8 {
			m := rastest.Member{Rank: i, PID: 100 + i, Host: "n1", AllGather: 9, AllReduce: 3}
			if i == behind {
				m.AllGather--
			}
			m.Missing, m.Responsive = i == 5, i == 5
			c.Members = append(c.Members, m)
		}
		s, err := ras.Parse(strings.NewReader(rastest.JSON(c)), 1<<20)
		require.NoError(t, err)
		return s
	}
	for behind := range 4 {
		h := Judge([]Answer{answer("d/a", at(behind), 0), answer("d/b", at(behind), 10*time.Second)}, Options{Job: "j"})[0]
		require.Len(t, h.Roots, 1)
		assert.Equal(t, []int64{int64(behind)}, h.Roots[0].Finding.Ranks)
		assert.Contains(t, strings.Join(h.Remarks, " "), "rank 5: it is no member any more")
	}
	for _, hung := range []bool{false, true} {
		h := Judge([]Answer{answer("d/a", at(-1), 0), answer("d/b", at(-1), 10*time.Second)}, Options{Job: "j", Hung: hung})[0]
		assert.Empty(t, h.Roots)
		assert.Contains(t, strings.Join(h.Remarks, " "), "rank 5: it is no member any more")
	}
}

func TestJudge_NothingListed_SaysWhy(t *testing.T) {
	mismatch := "#0-0 (00000000000000ab) MISMATCH\n"
	different := mismatch + "  Communicator ranks have different AllGather operation counts\n"
	for name, text := range map[string]string{"before the warnings": "", "in a warning": mismatch, "in front of counts": different} {
		t.Run(name, func(t *testing.T) {
			all, err := ras.ParseAnswers(strings.NewReader(rastest.Report(4, "", text)), 1<<20)
			require.NoError(t, err)
			all[0].Flagged = "MISMATCH"
			rep := judged(answer("d/a.txt", all[0], 0))
			assert.Equal(t, desync.Undecided, rep.Verdict)
			assert.Contains(t, rep.MayRun, "a.txt says MISMATCH, and the answer ends before")
		})
	}
	rep := judged(answer("d/a.txt", lacking(t, "cut"), 0), answer("d/b.txt", lacking(t, "cut"), 10*time.Second))
	assert.Contains(t, rep.MayRun, "a.txt says MISMATCH, and the answer ends before")
	assert.Contains(t, rep.MayRun, "b.txt says MISMATCH, and the answer ends before")
	rep = judged(answer("d/a.json", &ras.Status{}, 0))
	assert.Contains(t, rep.MayRun, "lists no communicator")
	rep = judged(answer("d/a.txt", text(t, -1, ""), 0))
	assert.Contains(t, rep.MayRun, "have launched the same operations")
}

// lacking are answers that list launches of no rank: rank 1 does not answer, the text is cut, and nothing differs.
func lacking(t *testing.T, what string) *ras.Status {
	t.Helper()
	switch what {
	case "silent":
		all, err := ras.ParseAnswers(strings.NewReader(rastest.Report(4, "#0-0 (00000000000000ab) INCOMPLETE\n  Missing communicator data from 1 rank\n"+
			"  Rank 1 -- GPU 1 managed by process 101 on node n1\n", "")), 1<<20)
		require.NoError(t, err)
		return all[0]
	case "cut":
		s := text(t, -1, "")
		s.Flagged = "MISMATCH"
		return s
	}
	return text(t, -1, "")
}

// Several answers are not called one: the report names which were given, and what each lacks.
func TestJudge_SeveralAnswersThatDoNotCompare_AreNamed(t *testing.T) {
	garbled := whole(t, "yesterday", 9, 9, 8, 9)
	for name, tc := range map[string]struct {
		answers []Answer
		says    []string
	}{
		"both incomplete": {
			[]Answer{answer("d/a.txt", lacking(t, "silent"), 0), answer("d/b.txt", lacking(t, "silent"), 10*time.Second)},
			[]string{"none of the 2 answers", "a.txt: rank 1 does not answer", "b.txt: rank 1 does not answer", "ncclras -v"},
		},
		"one cut": {
			[]Answer{answer("d/a.txt", text(t, 2, "9"), 0), answer("d/b.txt", lacking(t, "cut"), 10*time.Second)},
			[]string{"of the 2 answers", "a.txt alone", "b.txt: says MISMATCH and ends before"},
		},
		"one cut, in one file": {
			[]Answer{answer("d/a.txt", lacking(t, "cut"), 0), answer("d/a.txt", text(t, 2, "9"), 0)},
			[]string{"answer 2 of a.txt alone", "answer 1 of a.txt: says MISMATCH and ends before"},
		},
		"one without a difference": {
			[]Answer{answer("d/a.txt", text(t, 2, "9"), 0), answer("d/b.txt", lacking(t, ""), 10*time.Second)},
			[]string{"ranks differed in a.txt, and no longer do in b.txt"},
		},
		"an incomplete and a cut one": {
			[]Answer{answer("d/a.txt", lacking(t, "silent"), 0), answer("d/b.txt", lacking(t, "cut"), 10*time.Second)},
			[]string{"none of the 2 answers", "a.txt: rank 1 does not answer", "b.txt: says MISMATCH"},
		},
		"two s apart": {
			[]Answer{answer("d/a", whole(t, "2026-01-01 10:00:00", 9, 9, 8, 9), 0), answer("d/b", whole(t, "2026-01-01 10:00:02", 9, 9, 8, 9), time.Hour)},
			[]string{"a and b are 2 s apart by their timestamps", "want 5 s"},
		},
		"no times in one file": {
			[]Answer{answer("d/a", text(t, 2, "9"), 0), answer("d/a", text(t, 2, "9"), 0)},
			[]string{"answer 1 of a and answer 2 of a are 0 s apart by the times of their files", "want 5 s"},
		},
		"times that cannot be read": {
			[]Answer{answer("d/a", garbled, 0), answer("d/b", garbled, time.Second)},
			[]string{"a and b are 1 s apart by the times of their files"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rep := judged(tc.answers...)
			assert.Equal(t, desync.Undecided, rep.Verdict)
			assert.NotContains(t, rep.MayRun, "one answer")
			for _, want := range tc.says {
				assert.Contains(t, rep.MayRun, want)
			}
		})
	}
	rep := judged(answer("d/a.txt", lacking(t, "silent"), 0))
	assert.Contains(t, rep.MayRun, "this is one answer of NCCL's RAS")
	assert.Contains(t, rep.MayRun, "a.txt: rank 1 does not answer")
}

// A rank that no answer mentions is not accused of not answering.
func TestJudge_OnlyTheRankThatDoesNotAnswer_IsTheCandidate(t *testing.T) {
	all, err := ras.ParseAnswers(strings.NewReader(rastest.Report(8, "#0-0 (00000000000000ab) INCOMPLETE\n  Missing communicator data from 1 rank\n"+
		"  Rank 5 -- GPU 1 managed by process 105 on node n1\n\n", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"+
		"  4 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n")), 1<<20)
	require.NoError(t, err)
	rep := judged(answer("d/a.txt", all[0], 0))
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{5}, rep.Roots[0].Finding.Candidates)

	rep = judged(answer("d/a.txt", lacking(t, "silent"), 0))
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, []int64{1}, rep.Roots[0].Finding.Candidates)
	assert.Equal(t, model.Some(int64(4)), rep.Job.WorldSize)
	require.Len(t, rep.Absent, 1, "of the others the text says nothing")
	assert.Equal(t, int64(1), rep.Absent[0].Rank)
}

// Answers that a loop saved each second: those that are some seconds apart are compared.
func TestJudge_ManyAnswersOfOneFile_AreOfSeveralTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		behind func(i int) int64
		want   desync.Verdict
	}{
		"stands":           {func(int) int64 { return 8 }, desync.Hang},
		"stood since 10 s": {func(i int) int64 { return int64(min(8, i)) }, desync.Hang},
		"moves":            {func(i int) int64 { return 8 - int64(i)%2 }, desync.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []Answer
			for i := range 20 {
				s := whole(t, time.Date(2026, 1, 1, 10, 0, i, 0, time.UTC).Format(time.DateTime), 9, 9, tc.behind(i), 9)
				answers = append(answers, answer("d/a.jsonl", s, 0))
			}
			assert.Equal(t, tc.want, judged(answers...).Verdict)
		})
	}
}

// parsed reads answers in text.
func parsed(t *testing.T, report string) *ras.Status {
	t.Helper()
	all, err := ras.ParseAnswers(strings.NewReader(report), 1<<20)
	require.NoError(t, err)
	return all[0]
}

// An answer without a communicator says nothing of what was launched.
func TestJudge_TextWithoutACommunicator_SaysSo(t *testing.T) {
	report := rastest.Report(16, "", "")
	row := strings.Index(report, "in group\n    0") + len("in group\n")
	left := strings.Replace(report, " RUNNING ", "  NOCOMM ", 1)
	for name, text := range map[string]string{
		"the version alone":         report[:strings.Index(report, "\n")+1],
		"no summary":                before(report, "Job summary"),
		"within the summary":        before(report, "  Nodes"),
		"no table":                  before(report, "Communicators"),
		"the head of the table":     report[:row],
		"half a row":                report[:row+40],
		"a row without errors":      report[:strings.Index(report, "RUNNING")+7],
		"half of OK":                report[:strings.Index(report, "  OK")+3],
		"all have left":             left,
		"all have left, cut behind": before(left, "Errors\n="),
	} {
		t.Run(name, func(t *testing.T) {
			for _, hung := range []bool{false, true} {
				s := parsed(t, text)
				hangs := Judge([]Answer{answer("d/x.txt", s, 0), answer("d/y.txt", s, 20*time.Second)}, Options{Hung: hung})
				require.Len(t, hangs, 1)
				assert.Equal(t, desync.Undecided, hangs[0].Verdict)
				assert.NotContains(t, hangs[0].MayRun, "same operations")
				assert.Contains(t, hangs[0].MayRun, "no communicator")
				assert.Contains(t, hangs[0].MayRun, "x.txt")
				assert.Contains(t, hangs[0].MayRun, "ncclras -v")
			}
		})
	}
}

// Where one answer has no time, those of one file are as far apart as their own times say.
func TestJudge_TimesOfOneFile_CountBesideAnswersWithout(t *testing.T) {
	rep := judged(answer("d/a.txt", text(t, 2, "9"), 0),
		answer("d/b.json", whole(t, "2026-01-01 10:00:00", 9, 9, 8, 9), 0), answer("d/b.json", whole(t, "2026-01-01 10:00:30", 9, 9, 8, 9), 0))
	assert.Equal(t, desync.Hang, rep.Verdict)
}

// What is cut off is said beside whole answers as well, and nothing is healthy by those alone.
func TestJudge_OneAnswerCutOff_IsNoHealth(t *testing.T) {
	report := rastest.Report(4, "", "")
	cut := func() Answer {
		return answer("d/z.txt", parsed(t, before(report, "Group")), 40*time.Second)
	}
	went := []Answer{answer("d/1", whole(t, "", 8, 8, 8, 8), 0), answer("d/2", whole(t, "", 12, 12, 12, 12), 20*time.Second)}
	assert.Equal(t, desync.Healthy, judged(went...).Verdict)
	rep := judged(append(went, cut())...)
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "z.txt")

	hangs := Judge([]Answer{answer("d/1", whole(t, "", 9, 9, 8, 9), 0), answer("d/2", whole(t, "", 9, 9, 8, 9), 20*time.Second), cut()}, Options{})
	require.Len(t, hangs, 1)
	assert.Equal(t, desync.Hang, hangs[0].Verdict)
	assert.Equal(t, []int64{2}, hangs[0].Roots[0].Finding.Ranks)
	assert.Contains(t, strings.Join(hangs[0].Remarks, " "), "z.txt")

	rep = judged(answer("d/1", text(t, -1, ""), 0), cut())
	assert.Equal(t, desync.Undecided, rep.Verdict)
	assert.Contains(t, rep.MayRun, "z.txt")
}

// before is a text in front of a mark, and from what begins with the mark.
func before(text, mark string) string {
	head, _, _ := strings.Cut(text, mark)
	return head
}

func from(text, mark string) string { return strings.TrimPrefix(text, before(text, mark)) }
