// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// said is what analyze prints, without its lines.
func said(t *testing.T, dir string) (int, string) {
	t.Helper()
	status, stdout, stderr := call("analyze", dir)
	return status, strings.Join(strings.Fields(stdout+stderr), " ")
}

// How an earlier life of a job ended is said beside the judgement of the last one, and instead of it
// where that has no time-out.
func TestAnalyzeLogs_OfSeveralLives_SayHowEarlierOnesEnded(t *testing.T) {
	rotated, well := t.TempDir(), t.TempDir()
	for r := range 4 {
		older := strings.NewReplacer("SeqNum=41", "SeqNum=90", "id: 41", "id: 90", "work: 41", "work: 90", "work: 40", "work: 89").Replace(timedOut(r))
		last := timedOut(r)
		steps := "building\nwarming up\nstep 1\nstep 2\nstep 3\n"
		if r == 1 {
			last = "step 1\n"
		}
		putFile(t, older, rotated, fmt.Sprintf("rank_%d.log.1", r))
		putFile(t, last, rotated, fmt.Sprintf("rank_%d.log", r))
		putFile(t, steps+older+steps, well, fmt.Sprintf("rank_%d.log", r))
	}
	const ended = "An earlier life of the job ended so: 4 ranks timed out in all_reduce 90 of default_pg."
	status, text := said(t, rotated)
	assert.Equal(t, exitFindings, status)
	assert.Contains(t, text, "rank 1: ")
	assert.Contains(t, text, "has not entered all_reduce 41")
	assert.Contains(t, text, ended)

	status, text = said(t, well)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, text, "Cannot tell: the time-outs of 4 ranks are of an earlier life of the job;")
	assert.Contains(t, text, ended)
}

// Time-outs of ranks that nothing tells are not said to be none.
func TestAnalyzeLogs_OfUnknownRanks_SayThatOperationsTimedOut(t *testing.T) {
	dir := t.TempDir()
	for r := range 8 {
		old, _, _ := strings.Cut(strings.ReplaceAll(timedOut(r%4), fmt.Sprintf("[rank%d]:", r%4), ""), "\n")
		putFile(t, strings.ReplaceAll(old, "SeqNum=41", fmt.Sprintf("SeqNum=%d", 41+r/4))+"\n", dir, fmt.Sprintf("worker-%d.out", r))
	}
	status, text := said(t, dir)
	assert.Equal(t, exitUnusable, status)
	assert.Contains(t, text, "Cannot tell: 8 operations timed out on ranks that no line names;")
	assert.Contains(t, text, "ranks 0 known; 8 logs of ranks that nothing tells")
	assert.NotContains(t, text, "no log says")
}
