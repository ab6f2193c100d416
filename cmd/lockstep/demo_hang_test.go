// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// The rank that hangs is named while the others wait, and nothing is left behind. Each step
// has three all-reduces, and the first of step 60 is the one that is not left. e2e has the
// other ways to hang.
func namesTheRankThatHangs(t *testing.T, bin string) {
	t.Helper()
	dir := t.TempDir()
	var stderr bytes.Buffer
	cmd := demoCommand(t, bin, "--json --fault hang --rank 1 --once --dir "+dir)
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	findings, summary := parseDemoLines(t, string(stdout))
	var hangs []demoFinding
	for _, f := range findings {
		if f.Finding == model.FindingDesync {
			hangs = append(hangs, f)
		}
	}
	require.Len(t, hangs, 1)
	f := hangs[0]
	require.NotNil(t, f.Rank)
	assert.Equal(t, int64(1), *f.Rank)
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, "all_reduce 180", f.Op)
	assert.ElementsMatch(t, []int64{0, 2, 3}, f.Waiting)
	assert.GreaterOrEqual(t, f.Limit, 2.0, "the least limit")
	assert.Greater(t, f.Still, f.Limit)
	assert.Equal(t, int64(60), summary.Steps)
	assert.False(t, summary.Identical, "there is no last step to compare after")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestDemoHangEnds(t *testing.T) {
	at := time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		o     demoOptions
		found time.Duration // before at; 0: nothing was
		step  time.Duration // before at; 0: none was told of
		began time.Duration
		want  bool
	}{
		"just begun":                     {demoOptions{fault: "hang"}, 0, 0, time.Second, false},
		"never began":                    {demoOptions{fault: "hang"}, 0, 0, 2 * time.Minute, true},
		"stands, and is looked at":       {demoOptions{fault: "exit"}, 5 * time.Second, 30 * time.Second, time.Minute, false},
		"found, and nobody looks":        {demoOptions{fault: "exit", unattended: true}, 5 * time.Second, 30 * time.Second, time.Minute, true},
		"just found, and nobody looks":   {demoOptions{fault: "exit", unattended: true}, time.Second, 30 * time.Second, time.Minute, false},
		"stood for too long":             {demoOptions{fault: "mismatch"}, 0, 121 * time.Second, time.Hour, true},
		"goes on for long":               {demoOptions{fault: "mismatch"}, 0, time.Second, time.Hour, false},
		"one that is slow may take long": {demoOptions{fault: "host"}, 0, time.Hour, time.Hour, false},
	} {
		d := demo{options: &tc.o, screen: &demoScreen{}, began: at.Add(-tc.began)}
		if tc.step > 0 {
			d.screen.stepAt = at.Add(-tc.step)
		}
		if tc.found > 0 {
			d.hangFound = at.Add(-tc.found)
		}
		assert.Equal(t, tc.want, d.hung(at), name)
	}
}

// Other findings may come first where a machine is busy; a hang is what is waited for.
func TestDemoHangOnce(t *testing.T) {
	slow, hang := model.Finding{Kind: model.FindingStraggler}, model.Finding{Kind: model.FindingDesync}
	d := demo{options: &demoOptions{once: true, fault: "hang"}}
	assert.False(t, d.enough(&slow))
	assert.True(t, d.enough(&hang))
	d.options.fault = "host"
	assert.True(t, d.enough(&slow))
	d.options.once = false
	assert.False(t, d.enough(&hang))
}

func TestDemoHangBegins(t *testing.T) {
	o := demoOptions{fault: "hang"}
	o.ofHang(func(string) bool { return false })
	assert.Equal(t, int64(60), o.from)
	given := demoOptions{fault: "hang", from: 7}
	given.ofHang(func(flag string) bool { return flag == "fault-from" })
	assert.Equal(t, int64(7), given.from)
	slow := demoOptions{fault: "host"}
	slow.ofHang(func(string) bool { return false })
	assert.Zero(t, slow.from)
}

func TestDemoScreenOfAHang(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 4, fault: "exit", rank: 1})
	s.begin()
	assert.Contains(t, words(out.String()), "the process of rank 1 is to end without a word")
	out.Reset()
	f := model.Finding{
		ID: "x", Kind: model.FindingDesync, Class: model.ClassProcessDead, Rank: model.Some(int64(1)), Host: "node7", Op: "all_reduce 180",
		CommName: "demo", CommID: "0xaa", Waiting: []int64{0, 2, 3}, Status: model.StatusOpen, Confidence: 0.97,
		Start: time.Date(2026, 11, 23, 14, 3, 12, 0, time.UTC).UnixNano(), Evidence: evidence.Text(`{"stall_limit_seconds":2.5,"stood_seconds":4,"limit_of_phase":"train"}`),
	}
	s.line(&demoLine{Step: 59})
	s.finding(&f)
	assert.Contains(t, words(out.String()), "Finding 1: rank 1 on node7: desync (process_dead): its process is gone")
	assert.Contains(t, out.String(), "ranks 0, 2 and 3 wait for it themselves")
	assert.Contains(t, out.String(), "2.50 s in phase train")

	j, told := screenFor(&demoOptions{ranks: 4, fault: "exit", rank: 1, json: true})
	j.line(&demoLine{Step: 59})
	j.finding(&f)
	assert.Contains(t, told.String(), `"waiting":[0,2,3],"stall_limit_seconds":2.5,"limit_of_phase":"train","still_seconds":`)
}

func TestDemoProgress(t *testing.T) {
	s, out := screenFor(&demoOptions{json: true, progress: true})
	s.line(&demoLine{Step: 7})
	assert.JSONEq(t, `{"step":7}`, out.String())
	quiet, none := screenFor(&demoOptions{json: true})
	quiet.line(&demoLine{Step: 7})
	assert.Empty(t, none.String())
}
