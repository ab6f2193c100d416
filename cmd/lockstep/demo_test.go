// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/report"
)

func TestDemoWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--ranks 0":              "check --ranks: got 0; want 1 to 64",
		"--ranks 65":             "got 65",
		"--fault fire":           `check --fault: got "fire"; want none, compute, host, link, compile, dataloader, gc, checkpoint, hang, exit, mismatch`,
		"--fault hang --ranks 1": "check --fault: got hang with --ranks 1; want at least 2",
		"--fault exit --torch":   "check --fault: got \"exit\"; want none, compute, compile, dataloader, gc, checkpoint, hang",
		"--rank 4":               "check --rank: got 4; want 0 to 3, since there are 4 ranks",
		"--ranks 2 --rank 2":     "check --rank: got 2",
		"--rank 1 --fault none":  "check --rank: got 1 with --fault none",
		"--level some":           `check --level: got "some"`,
		"--witness eyes":         `check --witness: got "eyes"; want host-events, kernels, proxy, scopes, cupti`,
		"--steps=-1":             "check --steps: got -1",
		"--fault-from=-1":        "check --fault-from: got -1",
		"surplus":                "unknown command",
		"--fault none --rank=x":  `read --rank: got "x"; want a whole number`,
	} {
		status, _, stderr := call(append([]string{"demo"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUnusable, status, args)
		assert.Contains(t, stderr, want, args)
		assert.True(t, strings.HasPrefix(stderr, "lockstep: ") && strings.Count(stderr, "\n") == 1, stderr)
		assert.Contains(t, stderr, "; see `lockstep demo --help`\n", args)
	}
}

// Without --rank the slow one is among those there are.
func TestDemoTakesAnyNumberOfRanks(t *testing.T) {
	t.Setenv("LOCKSTEP_BIN", t.TempDir())
	for _, n := range []string{"1", "2", "3"} {
		status, _, stderr := call("demo", "--ranks", n)
		assert.Equal(t, exitFailed, status)
		assert.Contains(t, stderr, "find lockstep-demo-worker", "the usage is right")
	}
}

func TestDemoSaysWhatIsNotBuilt(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("LOCKSTEP_BIN", bin)
	status, _, stderr := call("demo")
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "find lockstep-demo-worker: got none in "+bin)
	assert.Contains(t, stderr, "`make run`")

	require.NoError(t, os.WriteFile(filepath.Join(bin, demoWorkerFile), nil, 0o700))
	status, _, stderr = call("demo")
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, stderr, "find libnccl-profiler-lockstep.so: got none")
	assert.Contains(t, stderr, "`make inject`")
}

func TestDemoDirectoryIsPrivate(t *testing.T) {
	dir, err := makeDemoDir(t.TempDir())
	require.NoError(t, err)
	for _, path := range []string{dir, filepath.Join(dir, "rings"), filepath.Join(dir, "meet")} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), st.Mode().Perm(), path)
	}
	_, err = makeDemoDir(filepath.Join(dir, "absent"))
	assert.ErrorContains(t, err, "make the demo's directory")
}

func TestDemoEnvironmentNamesNoOtherJob(t *testing.T) {
	kept := demoEnviron([]string{
		"PATH=/bin", "RANK=3", "SLURM_JOB_ID=7", "LOCKSTEP_DISABLE=1", "NCCL_PROFILER_PLUGIN=x", "NCCL_DEBUG=INFO",
		"OMPI_COMM_WORLD_RANK=1", "PMI_RANK=1", "TORCHELASTIC_RUN_ID=1", "WORLD_SIZE=9", "LOCAL_RANK=2", "LOCKSTEP_DEBUG=1",
		"LOCKSTEP_EVENT_MASK=0", "CUDA_INJECTION64_PATH=/x", "NVTX_INJECTION64_PATH=/x",
	})
	assert.Equal(t, []string{"PATH=/bin", "NCCL_DEBUG=INFO"}, kept)
}

// A directory may have any name; the collector must not expand it.
func TestDemoOverlayQuotes(t *testing.T) {
	var got struct {
		Receivers map[string]struct{ Directory, Level string }
	}
	text, ok := strings.CutPrefix(demoOverlay("/tmp/a b\"${env:HOME}", "all"), "yaml:")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	assert.Equal(t, "/tmp/a b\"$${env:HOME}", got.Receivers["rank_events"].Directory)
	assert.Equal(t, "all", got.Receivers["rank_events"].Level)
}

func screenFor(o *demoOptions) (*demoScreen, *bytes.Buffer) {
	var out bytes.Buffer
	s := newDemoScreen(o, "/rings", &out)
	s.style = report.Style{Width: 100}
	return s, &out
}

func TestDemoScreen(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 2, fault: "link", rank: 1, steps: 9})
	s.begin()
	assert.Contains(t, out.String(), "the link that rank 1 sends on is throttled")
	assert.Contains(t, out.String(), "Ends after 9 steps")
	out.Reset()

	f := model.Finding{ID: "x", Kind: model.FindingStraggler, Class: "link", Rank: model.Some(int64(1)), Status: model.StatusOpen}
	s.line(&demoLine{Step: 6})
	s.finding(&f)
	f.Revision, f.Status = 2, model.StatusUpdated
	s.finding(&f)
	assert.Equal(t, 1, strings.Count(out.String(), "rank 1"), "once, however often it is revised")
	assert.Contains(t, out.String(), "The job is at step 6.")
	assert.Contains(t, out.String(), "Finding 1: rank 1")
	assert.NotContains(t, out.String(), "\r", "no live line where nobody looks")
	out.Reset()

	for range 2 {
		s.line(&demoLine{Done: true, Steps: 9, Identical: true, LossFirst: 0.5, LossLast: 0.25, Iteration: []byte(`{"p50":45.04,"p95":47}`)})
	}
	s.summary(newTap(), "")
	assert.Contains(t, words(out.String()), "9 steps of 45.0 ms (95 of 100 within 47.0 ms); loss 0.5000 to 0.2500; all ranks hold the same weights.")
	assert.Contains(t, out.String(), "1 finding, above.")
}

func TestDemoScreenTellsOfRevisions(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 4, fault: "compute", rank: 2})
	now := time.Unix(100, 0)
	s.now = func() time.Time { return now }
	f := model.Finding{
		ID: "x", Kind: model.FindingStraggler, Class: "compute", Rank: model.Some(int64(2)), Status: model.StatusOpen,
		Evidence: evidence.Text(`{"steps":6}`), CostSeconds: model.Some(0.020), StepFirst: model.Some(int64(0)), StepLast: model.Some(int64(5)),
	}
	revise := func(step int64, cost float64, status string) string {
		out.Reset()
		s.line(&demoLine{Step: step})
		f.Revision++
		f.CostSeconds, f.StepLast, f.Status = model.Some(cost), model.Some(step), status
		s.finding(&f)
		return out.String()
	}
	assert.Contains(t, revise(6, 0.020, model.StatusOpen), "Finding 1: rank 2")
	assert.Empty(t, revise(20, 0.025, model.StatusUpdated), "a quarter more is no news")
	assert.Contains(t, revise(40, 0.031, model.StatusUpdated),
		"Step 40: finding 1 is now: rank 2, compute, cost 31.0 ms per step (6 steps judged); since step 0.")
	assert.Empty(t, revise(41, 0.060, model.StatusUpdated), "not so soon after the last")
	now = now.Add(updateEvery)
	assert.Contains(t, revise(42, 0.060, model.StatusUpdated), "cost 60.0 ms")
	assert.Contains(t, revise(43, 0.060, model.StatusClosed), "Step 43: finding 1 closed: rank 2")
	s.over = true
	assert.Empty(t, revise(44, 0.200, model.StatusUpdated), "the summary says it")

	f.ID, f.Rank = "y", model.Some(int64(1))
	assert.Contains(t, revise(45, 0.003, model.StatusOpen), "Finding 2: rank 1")
	out.Reset()
	s.summary(newTap(), "")
	assert.Contains(t, out.String(), "2 findings, above.")
	assert.Contains(t, out.String(), "At the end, finding 1: rank 2, compute, cost 200 ms per step (6 steps judged); since step 0.")
	assert.Contains(t, out.String(), "At the end, finding 2: rank 1, compute, cost 3.00 ms")
}

func TestDemoScreenSaysWhyNothingCanBeJudged(t *testing.T) {
	for want, o := range map[string]*demoOptions{
		"nothing could be judged: one rank has nobody to be compared with.": {ranks: 1, fault: "none", level: "all"},
		"nothing could be judged: level summary carries no single":          {ranks: 4, fault: "none", level: "summary"},
		"nothing could be judged: when operations are enqueued does not":    {ranks: 4, fault: "none", level: "all", witness: "host-events"},
		"nothing was found.": {ranks: 4, fault: "none", level: "collectives"},
	} {
		s, out := screenFor(o)
		s.step = 199
		s.summary(newTap(), "")
		assert.Contains(t, words(out.String()), want)
	}
}

func TestDemoScreenSaysThatARunWasTooShort(t *testing.T) {
	for steps, want := range map[int64]string{
		5: "nothing could be judged: 5 steps of 4 ranks are too few; 9 are needed.",
		8: "nothing could be judged: 8 steps of 4 ranks are too few; 9 are needed.",
		9: "nothing was found.",
	} {
		s, out := screenFor(&demoOptions{ranks: 4, fault: "compute", level: "collectives"})
		s.step = steps - 1
		s.summary(newTap(), "")
		assert.Contains(t, words(out.String()), want)
	}
	s, out := screenFor(&demoOptions{ranks: 4, level: "collectives"})
	s.step = 4
	s.finding(&model.Finding{ID: "x", Kind: model.FindingStraggler})
	s.summary(newTap(), "")
	assert.Contains(t, words(out.String()), "1 finding, above.", "what was found was judged")
}

func TestDemoScreenKeepsToItsWidth(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 1, fault: "compute", steps: 1})
	s.style.Width = 80
	s.begin()
	s.line(&demoLine{Done: true, Steps: 200, Identical: true, LossFirst: 0.5, LossLast: 0.25, Iteration: []byte(`{"p50":45.04,"p95":47}`)})
	s.summary(newTap(), "")
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 81, line)
	}
	assert.Contains(t, out.String(), "1 rank trains a small model")
	assert.Contains(t, out.String(), "Ends after 1 step,")
	assert.Contains(t, words(out.String()), "rings: /rings/rings (bin/lockstep rings /rings/rings shows")
}

func TestDemoScreenJSON(t *testing.T) {
	s, out := screenFor(&demoOptions{ranks: 1, fault: "none", json: true})
	s.begin()
	s.line(&demoLine{Step: 3})
	s.finding(&model.Finding{ID: "x", Kind: model.FindingStraggler, Class: "host", Cause: "compile", Op: "compile", Rank: model.Some(int64(0)), StepLast: model.Some(int64(2))})
	s.summary(newTap(), "")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	assert.JSONEq(t, `{"finding":"straggler","class":"host","cause":"compile","op":"compile","rank":0,"step_last":2,"cost_seconds":0,"at_step":3}`, lines[0])
	assert.Contains(t, lines[1], `"findings":1`)
	assert.Contains(t, lines[1], `"weights_identical":false`, "a rank that said nothing does not agree")
}
