// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// stepLines are lines of steps, one a second.
func stepLines(from, to int, stamped bool) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if stamped {
			fmt.Fprintf(&b, "2026-11-16 10:%02d:%02d,000 INFO ", 10+i/60, i%60)
		}
		fmt.Fprintf(&b, "step %d loss 2.1\n", i)
	}
	return b.String()
}

// labelledLog is a log of four ranks, of which each line has a label: all wait but rank 2.
func labelledLog(stamped bool, behind string) string {
	label := func(rank int64, text string) string {
		out := ""
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			out += fmt.Sprintf("%d: %s\n", rank, line)
		}
		return out
	}
	var b strings.Builder
	for step := range 40 {
		for _, r := range []int64{0, 1, 3} {
			b.WriteString(label(r, stepLines(step, step+1, stamped)))
		}
	}
	b.WriteString(label(2, fmt.Sprintf(outOfMemory, 2, 2)+behind))
	for _, r := range []int64{0, 1, 3} {
		b.WriteString(label(r, versions["2.14"](inDefault(r))))
	}
	return b.String()
}

// What waited in a buffer since before the error is no sign that the process continued.
func TestJudge_BufferedOutputBehindAnError_KeepsTheError(t *testing.T) {
	for name, c := range map[string]struct {
		stamped bool
		behind  string
	}{
		"steps up to those of others":    {false, stepLines(0, 40, false)},
		"the last steps":                 {false, stepLines(33, 40, false)},
		"one step":                       {false, stepLines(39, 40, false)},
		"times of before":                {true, stepLines(20, 40, true)},
		"a heading, then steps":          {false, "building 12 layers\nwarming up\n" + stepLines(0, 40, false) + "saved a checkpoint\n"},
		"times of before, other numbers": {true, strings.ReplaceAll(stepLines(20, 40, true), "step", "tokens")},
		"hundreds":                       {false, strings.Repeat(stepLines(0, 40, false), 5)},
		"behind an end":                  {false, "Exception ignored in: <function It.__del__ at 0x7f12>\n" + stepLines(3, 40, false)},
	} {
		t.Run(name, func(t *testing.T) {
			r := logs{"job.out": labelledLog(c.stamped, c.behind)}.judge(t, Options{WorldSize: 4})
			require.Len(t, r.Roots, 1)
			f := &r.Roots[0].Finding
			if f.Rank.OK {
				assert.Equal(t, []any{model.Some(int64(2)), model.ClassProcessDead}, []any{f.Rank, f.Class})
			} else {
				assert.Equal(t, []int64{2}, f.Candidates)
			}
			assert.Contains(t, evidence.Encode(f.Evidence), "CUDA out of memory")
		})
	}
}

// Lines without a mark in a log of several ranks may be of any of them.
func TestJudge_LinesOfOthersBehindAnError_LeaveNoDoubt(t *testing.T) {
	job := stepLines(0, 40, false) + fmt.Sprintf(outOfMemory, 2, 2) + stepLines(38, 40, false)
	for _, r := range []int64{0, 1, 3} {
		job += versions["2.14"](inDefault(r))
	}
	assertRoot(t, logs{"job.out": job}.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
}

// Times before the last one of the process itself leave no doubt.
func TestJudge_TimesBeforeItsOwn_AreOfABuffer(t *testing.T) {
	text := stepLines(0, 5, true) + "2026-11-16 10:10:41,000 ERROR out of memory soon\n" + fmt.Sprintf(outOfMemory, 2, 2) + stepLines(5, 40, true)
	f := assertRoot(t, files(versions["2.14"], 4, map[int64]string{2: text}).judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
	assert.Greater(t, f.Confidence, 0.9)
}

// A process that continued exceeds what was there before its error.
func TestJudge_StepsBeyondTheError_ShowThatItWasCaught(t *testing.T) {
	for name, c := range map[string]struct {
		stamped bool
		behind  string
	}{
		"further steps":            {false, stepLines(40, 43, false)},
		"the same step, then more": {false, stepLines(39, 42, false)},
		"later times":              {true, stepLines(41, 43, true)},
		"a remark":                 {false, "cache is rebuilt\n"},
		"other numbers":            {false, "batch 16 works\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := logs{"job.out": labelledLog(c.stamped, c.behind)}.judge(t, Options{WorldSize: 4})
			f := assertRoot(t, r, 2, model.ClassNotScheduled, "all_reduce 41")
			assert.Contains(t, evidence.Encode(f.Evidence), "CUDA out of memory")
		})
	}
}
