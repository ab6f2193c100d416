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

// A rank that a later answer no longer has behind is no candidate, whatever the person knows.
func TestJudge_LaterAnswerClears_NamesNoRank(t *testing.T) {
	silent := func() *ras.Status { return lacking(t, "silent") }
	behind := func() *ras.Status { return text(t, 2, "9") }
	even := func() *ras.Status { return text(t, -1, "") }
	const minute = time.Minute
	for name, tc := range map[string]struct {
		answers []Answer
		says    string
	}{
		"one is behind":       {[]Answer{answer("d/1", behind(), 0), answer("d/2", even(), minute)}, "ranks differed in 1, and no longer do in 2"},
		"the later first":     {[]Answer{answer("d/2", even(), minute), answer("d/1", behind(), 0)}, "ranks differed in 1, and no longer do in 2"},
		"it stood before":     {[]Answer{answer("d/1", behind(), 0), answer("d/2", behind(), minute), answer("d/3", even(), 2*minute)}, "ranks differed in 2, and no longer do in 3"},
		"two even ones":       {[]Answer{answer("d/1", behind(), 0), answer("d/2", even(), minute), answer("d/3", even(), 2*minute)}, "ranks differed in 1, and no longer do in 3"},
		"in one file":         {[]Answer{answer("d/1", behind(), 0), answer("d/1", even(), 0)}, "ranks differed in answer 1 of 1, and no longer do in answer 2 of 1"},
		"JSON before":         {[]Answer{answer("d/1", whole(t, "", 9, 9, 8, 9), 0), answer("d/2", even(), minute)}, "ranks differed in 1, and no longer do in 2"},
		"one did not answer":  {[]Answer{answer("d/1", silent(), 0), answer("d/2", even(), minute)}, "ranks did not answer in 1, and do in 2"},
		"they are not listed": {[]Answer{answer("d/1", unlistedRanks(t), 0), answer("d/2", even(), minute)}, "ranks differed in 1, and no longer do in 2"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hung := range []bool{false, true} {
				hangs := Judge(tc.answers, Options{Job: "j", Hung: hung})
				require.Len(t, hangs, 1)
				assert.Equal(t, desync.Undecided, hangs[0].Verdict)
				assert.Empty(t, hangs[0].Roots)
				assert.Contains(t, hangs[0].MayRun, tc.says)
				assert.Contains(t, hangs[0].MayRun, "py-spy dump")
			}
		})
	}
}

func unlistedRanks(t *testing.T) *ras.Status {
	t.Helper()
	return parsed(t, rastest.Report(4, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"+
		"  2 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n"))
}

// Only a later whole answer of the job clears.
func TestJudge_AnswerThatClearsNothing_KeepsTheRank(t *testing.T) {
	cut := text(t, -1, "")
	cut.Flagged = "MISMATCH"
	left := parsed(t, strings.Replace(rastest.Report(4, "", ""), " RUNNING ", "  NOCOMM ", 1))
	head := rastest.Report(4, "", "")
	noTable := parsed(t, before(head, "Group "))
	for name, second := range map[string]Answer{
		"an earlier one":   answer("d/2", text(t, -1, ""), -time.Minute),
		"one at once":      answer("d/2", text(t, -1, ""), 0),
		"one cut off":      answer("d/2", cut, time.Minute),
		"one of no table":  answer("d/2", noTable, time.Minute),
		"one without any":  answer("d/2", left, time.Minute),
		"one of other job": answer("d/2", parsed(t, rastest.Report(8, "", "")), time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			hangs := Judge([]Answer{answer("d/1", text(t, 2, "9"), 0), second}, Options{Hung: true})
			require.Len(t, hangs, 1)
			require.Len(t, hangs[0].Roots, 1)
			assert.Equal(t, model.Some(int64(2)), hangs[0].Roots[0].Finding.Rank)
			assert.NotContains(t, hangs[0].MayRun, "no longer")
		})
	}
	rep := judged(answer("d/1", whole(t, "", 8, 8, 8, 8), 0), answer("d/2", whole(t, "", 12, 12, 12, 12), time.Minute), answer("d/3", text(t, -1, ""), 2*time.Minute))
	assert.Equal(t, desync.Healthy, rep.Verdict, "counts moved and are equal")
	rep = judged(answer("d/1", whole(t, "", 9, 9, 9, 9), 0), answer("d/2", text(t, -1, ""), time.Minute))
	assert.NotContains(t, rep.MayRun, "no longer")
}

// What is cleared in one communicator accuses nobody beside what differs in another.
func TestJudge_OtherCommunicatorDiffersThen_OnlyThatRank(t *testing.T) {
	mismatch := func(hash, rank string) string {
		return "#0-0 (" + hash + ") MISMATCH\n  Communicator ranks have different AllGather operation counts\n" +
			"  3 ranks have launched up to operation 9\n  Rank " + rank + " has launched up to operation 8 -- GPU 0 managed by process 10" + rank + " on node n1\n\n"
	}
	both, one := parsed(t, rastest.Report(4, "", mismatch("ab", "2")+mismatch("cd", "3"))), parsed(t, rastest.Report(4, "", mismatch("cd", "3")))
	both.GPUs, one.GPUs = 8, 8
	hangs := Judge([]Answer{answer("d/1", both, 0), answer("d/2", one, time.Minute)}, Options{Job: "j"})
	require.Len(t, hangs, 1)
	require.Len(t, hangs[0].Roots, 1)
	assert.Equal(t, desync.Hang, hangs[0].Verdict)
	assert.Equal(t, "0x00000000000000cd", hangs[0].Roots[0].Finding.CommID)
	assert.Contains(t, evidence.Encode(hangs[0].Roots[0].Finding.Evidence), "process 103 on n1")
	assert.Contains(t, strings.Join(hangs[0].Remarks, " "), "In communicator 0x00000000000000ab ranks differed in 1, and no longer do in 2.")
}

// An answer that ends in front of a group of communicators that differ clears none.
func TestJudge_LaterAnswerWithAGroupThatIsNotListed_ClearsNothing(t *testing.T) {
	report := rastest.Report(4, "", "#0-0 (cd) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"+
		"  3 ranks have launched up to operation 9\n  Rank 3 has launched up to operation 8 -- GPU 0 managed by process 103 on node n1\n\n")
	row := report[strings.Index(report, "\n    0 ") : strings.Index(report, "MISMATCH")+len("MISMATCH")]
	both := parsed(t, strings.Replace(report, row, row+strings.Replace(row, "\n    0 ", "\n    1 ", 1), 1))
	require.Equal(t, 2, both.Rows)
	assert.False(t, both.Whole())
	assert.True(t, parsed(t, report).Whole())
}
