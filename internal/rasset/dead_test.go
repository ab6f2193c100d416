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
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// deadOf is a section of an answer in text: processes that RAS considers dead.
func deadOf(processes ...string) string {
	out := "DEAD\n  N job processes are considered dead (unreachable via the RAS network)\n"
	for _, p := range processes {
		out += "  Process " + p + "\n"
	}
	return out + "\n"
}

// uncollected is an answer that lists no communicator.
func uncollected(failures string) string {
	report := rastest.Report(8, failures, "")
	return before(report, "Group ") + "No communicator data collected!\n\n" + from(report, "Errors\n===")
}

const missing = "#0-0 (00000000000000ab) INCOMPLETE\n  Missing communicator data from 1 rank\n"

// A process that RAS considers dead is one, whatever else an answer in text lists.
func TestJudge_TextWithADeadProcess_NamesItsRank(t *testing.T) {
	dead := deadOf("105 on node n2 managing GPU 1")
	named := missing + "  Rank 5 -- GPU 1 managed by process 105 on node n2\n\n"
	for name, report := range map[string]string{
		"and its rank":                 rastest.Report(8, dead+named, ""),
		"and its rank by number alone": rastest.Report(8, dead+missing+"  The missing rank: 5\n\n", ""),
		"in two lists":                 rastest.Report(8, "INCOMPLETE\n  Process 105 on node n2 managing GPU 1\n\n"+dead+named, ""),
	} {
		t.Run(name, func(t *testing.T) {
			for _, hung := range []bool{false, true} {
				hangs := Judge([]Answer{answer("d/1", parsed(t, report), 0)}, Options{Job: "j", Hung: hung})
				require.Len(t, hangs, 1)
				assert.Equal(t, desync.Hang, hangs[0].Verdict)
				assert.Empty(t, hangs[0].MayRun)
				require.Len(t, hangs[0].Roots, 1)
				f := hangs[0].Roots[0].Finding
				assert.Equal(t, model.ClassProcessDead, f.Class)
				assert.Equal(t, model.Some(int64(5)), f.Rank)
				assert.InDelta(t, 0.75, f.Confidence, 0.001)
				assert.Contains(t, evidence.Encode(f.Evidence), "process 105 on n2")
			}
		})
	}
	alive := parsed(t, rastest.Report(8, named, ""))
	rep := judged(answer("d/1", alive, 0))
	require.Len(t, rep.Roots, 1)
	assert.Equal(t, model.ClassDumpMissing, rep.Roots[0].Finding.Class, "it does not answer, and is not called dead")
	assert.Equal(t, desync.Undecided, rep.Verdict)
}

// Where no rank is known, the finding names the process.
func TestJudge_DeadProcessWithoutARank_IsNamed(t *testing.T) {
	one, two := deadOf("105 on node n2 managing GPU 3"), deadOf("105 on node n2 managing GPU 3", "106 on node n3 managing GPU 4")
	report := rastest.Report(8, one+missing+"  The missing rank: 5\n\n", "")
	for name, tc := range map[string]struct {
		text string
		host string
		says []string
	}{
		"no data collected":       {uncollected(one), "n2", []string{"process 105 on n2, GPU 3"}},
		"of two":                  {uncollected(two), "", []string{"process 105 on n2, GPU 3", "process 106 on n3, GPU 4"}},
		"of one that drives two":  {uncollected(deadOf("105 on node n2 managing GPUs 0,1")), "n2", []string{"process 105 on n2, GPU 0", "process 105 on n2, GPU 1"}},
		"cut in front of members": {before(report, "#0-0"), "n2", []string{"process 105 on n2, GPU 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hung := range []bool{false, true} {
				hangs := Judge([]Answer{answer("d/1", parsed(t, tc.text), 0)}, Options{Job: "j", Hung: hung})
				require.Len(t, hangs, 1)
				assert.Equal(t, desync.Hang, hangs[0].Verdict)
				assert.Empty(t, hangs[0].Absent, "no rank is known")
				require.Len(t, hangs[0].Roots, 1)
				f := hangs[0].Roots[0].Finding
				assert.Equal(t, model.ClassProcessDead, f.Class)
				assert.InDelta(t, 0.75, f.Confidence, 0.001)
				assert.Equal(t, tc.host, f.Host)
				assert.False(t, f.Rank.OK)
				assert.Empty(t, f.Ranks)
				for _, text := range tc.says {
					assert.Contains(t, evidence.Encode(f.Evidence), text)
				}
			}
		})
	}
}

// A process that no communicator lacks holds up none: it is mentioned.
func TestJudge_DeadProcessThatNoneLacks_IsMentioned(t *testing.T) {
	dead := deadOf("105 on node n2 managing GPU 3")
	whole := strings.Replace(rastest.Report(8, dead, ""), "MISMATCH", "OK", 1)
	hangs := Judge([]Answer{answer("d/1", parsed(t, whole), 0)}, Options{Job: "j"})
	require.Len(t, hangs, 1)
	assert.Equal(t, desync.Undecided, hangs[0].Verdict)
	assert.Empty(t, hangs[0].Roots)
	assert.Contains(t, hangs[0].Remarks, "NCCL's RAS considers process 105 on n2, GPU 3 dead (asked at 1).")

	ok := rastest.Report(8, "", "")
	hangs = Judge([]Answer{answer("d/1", parsed(t, uncollected(dead)), 0), answer("d/2", parsed(t, ok), time.Minute)}, Options{Job: "j"})
	require.Len(t, hangs, 1)
	assert.Empty(t, hangs[0].Roots, "a later answer does not list it")
	hangs = Judge([]Answer{answer("d/1", parsed(t, ok), 0), answer("d/2", parsed(t, uncollected(dead)), time.Minute)}, Options{Job: "j"})
	require.Len(t, hangs, 1)
	require.Len(t, hangs[0].Roots, 1)
	assert.Equal(t, model.ClassProcessDead, hangs[0].Roots[0].Finding.Class)
}
