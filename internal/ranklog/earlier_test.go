// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of several earlier lives the number is said, and which ranks timed out in the last of them: all of them together hide
// the silent rank of each.
func TestJudge_SeveralEarlierLives_AreNotOne(t *testing.T) {
	const again = "api.py:882] [default] worker group FAILED. 2/3 attempts left; will restart worker group\n"
	lifeOf := func(silent, seq int64, hour string) string {
		text := "[rank0]: step 1\n"
		for r := range int64(8) {
			if r != silent {
				text += waitsIn(r, seq, hour)
			}
		}
		return text
	}
	bare := func(text string) string { return regexp.MustCompile(`E1116 [0-9:.]+ `).ReplaceAllString(text, "E ") }
	last := stepsOf("[rank0]: ", 50)
	perRank := func(hours [3]string) logs {
		l := logs{}
		for r := range int64(8) {
			text := ""
			for life, hour := range hours {
				if r != int64(life+3) {
					text += waitsIn(r, 90-10*int64(life), hour)
				}
			}
			l[fmt.Sprintf("rank%d.log", r)] = text + waitsIn(r, 5, "23")
		}
		return l
	}
	noTimes := perRank([3]string{"10", "13", "16"})
	for name, text := range noTimes {
		noTimes[name] = bare(text)
	}
	for name, c := range map[string]struct {
		l    logs
		want string
		of   string
	}{
		"three, one log":              {logs{"job.out": lifeOf(3, 41, "10") + again + lifeOf(4, 41, "12") + again + lifeOf(5, 41, "14") + again + last}, "3 earlier lives of the job timed out, the last of them so: 7 ranks timed out in all_reduce 41 of default_pg; no line says it of rank 5", "3 earlier lives"},
		"two, without times":          {logs{"job.out": bare(lifeOf(3, 41, "10")) + again + bare(lifeOf(6, 44, "10")) + again + last}, "2 earlier lives of the job timed out, the last of them so: 7 ranks timed out in all_reduce 44 of default_pg; no line says it of rank 6", "2 earlier lives"},
		"logs without times":          {noTimes, "several earlier lives of the job ended so, in one of them or another: 7 ranks timed out in all_reduce 70 of default_pg", ""},
		"two, of one time":            {logs{"job.out": lifeOf(2, 41, "10") + again + lifeOf(7, 41, "10") + again + last}, "2 earlier lives of the job timed out, the last of them so: 7 ranks timed out in all_reduce 41 of default_pg; no line says it of rank 7", "2 earlier lives"},
		"one, two agents start again": {logs{"job.out": lifeOf(3, 41, "10") + again + again + last}, "an earlier life of the job ended so: 7 ranks timed out in all_reduce 41 of default_pg", "an earlier life"},
		"three, a log of each rank":   {perRank([3]string{"10", "13", "16"}), "3 earlier lives of the job timed out, the last of them so: 7 ranks timed out in all_reduce 70 of default_pg; no line says it of rank 5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.l.judge(t, Options{WorldSize: 8})
			assert.Contains(t, r.Earlier, c.want)
			if c.of != "" {
				assert.Contains(t, r.MayRun, "are of "+c.of+" of the job")
			}
		})
	}
}

// Lines that are cut at a column say that an operation timed out, and not which: that is said.
func TestJudge_LinesCutAtAColumn_SayThatAnOperationTimedOut(t *testing.T) {
	for _, columns := range []int{100, 118, 131} {
		l := logs{}
		for r := range int64(8) {
			text := "step 40 loss 2.1\n"
			if r != 3 {
				for _, line := range strings.Split(versions["2.14"](inDefault(r)), "\n") {
					text += line[:min(len(line), columns)] + "\n"
				}
			}
			l[fmt.Sprintf("rank%d.log", r)] = text
		}
		r := l.judge(t, Options{WorldSize: 8})
		assertNobody(t, r)
		assert.Contains(t, r.MayRun, "an operation timed out on ranks 0-2, 4-7, by lines that are cut in front of its name", columns)
		assert.NotContains(t, r.MayRun, "no log says")
	}
}
