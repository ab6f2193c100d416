// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// onGPU returns a runner on a machine with a GPU.
func onGPU(t *testing.T) *runner {
	t.Helper()
	k := kit.New(t.TempDir(), t.TempDir(), t.TempDir())
	k.GPU = &kit.GPU{Name: "H200"}
	return &runner{kit: k, part: report.NewPart("cupti", "", time.Minute), right: report.Shown, programs: map[string]*program{}}
}

// ended returns a program that has ended, with a ring that had these states of CUPTI.
func (r *runner) ended(name, plan string, states ...string) *program {
	g := &program{name: name, plan: plan, mode: "eager", folder: filepath.Join(r.kit.Work, name), done: make(chan struct{}), ring: &record{states: states}}
	close(g.done)
	r.programs[name] = g
	return g
}

func TestSession_NoLibrary_IsOneCheckOfAll(t *testing.T) {
	r := onGPU(t)
	for _, name := range []string{"before", "silent", "eager"} {
		g := r.ended(name, name, "unasked", "no_library")
		g.err = errors.New("run cupti.py: exit status 1")
		assert.Nil(t, r.session(t.Context(), g))
	}
	require.Len(t, r.part.Checks, 1)
	assert.Equal(t, "library", r.part.Checks[0].Name)
	assert.Equal(t, report.NotShown, r.part.Checks[0].Status)
	assert.Contains(t, r.part.Checks[0].Text, "no libcupti in the process, and none beside PyTorch either: install")
}

func TestSession_NoLibraryOnTheStandIn_Fails(t *testing.T) {
	r := onGPU(t)
	r.kit.GPU = nil
	assert.Nil(t, r.session(t.Context(), r.ended("eager", "compare", "no_library")))
	assert.Equal(t, report.Failed, statuses(r.part.Checks)["library"])
}

func TestSession_NotBegun_IsOneCheckOfTheProgram(t *testing.T) {
	for _, state := range []string{"refused (result 2)", "yielded (39: another client holds CUPTI's one subscription)", "refused"} {
		r := onGPU(t)
		assert.Nil(t, r.session(t.Context(), r.ended("eager", "compare", "unasked", state, "paused")))
		require.Len(t, r.part.Checks, 1, state)
		assert.Equal(t, "eager-run", r.part.Checks[0].Name)
		assert.Equal(t, report.Failed, r.part.Checks[0].Status)
		assert.Contains(t, r.part.Checks[0].Text, state)
	}
}

func TestSession_BegunOrPaused_IsChecked(t *testing.T) {
	r := onGPU(t)
	late := r.ended("late", "compare", "yielded (result 39)")
	late.ring.kernels = make([]kernel, 1)
	for _, g := range []*program{
		r.ended("eager", "compare", "unasked", "active", "yielded (result 39)"),
		r.ended("before", "before", "paused", "refused (result 39)"),
		r.ended("rest", "turns", "paused"),
		late,
	} {
		assert.NotNil(t, r.session(t.Context(), g), g.name)
	}
	assert.Empty(t, r.part.Checks)
}

func TestRecorded_AProgramThatWasNot_HasNoCost(t *testing.T) {
	r := onGPU(t)
	g := r.ended("recording", "turns", "active")
	require.ErrorIs(t, g.recorded(), errNoKernels)
	g.ring.kernels = make([]kernel, 1)
	require.NoError(t, g.recorded())
	assert.ErrorContains(t, r.ended("recording", "turns", "refused (result 35)").recorded(), "CUPTI: refused (result 35)")
	g.ring = nil
	assert.ErrorIs(t, g.recorded(), errNoRing)
}

// turnsOf returns a program's turns of equal steps.
func turnsOf() [][]float64 { return [][]float64{{10e6}, {12e6}, {14e6}, {16e6}} }

func TestCompareTurns_LibraryNotThereOrNotPaused_HasNoCost(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(atRest *program)
		want   report.Status
		text   string
	}{
		"paused":           {func(*program) {}, report.Shown, "the library, paused"},
		"no ring":          {func(g *program) { g.ring = nil }, report.Failed, "at-rest: " + errNoRing.Error()},
		"never paused":     {func(g *program) { g.ring.states = []string{"unasked", "active"} }, report.Failed, "want paused at last"},
		"active after all": {func(g *program) { g.ring.states = []string{"paused", "active"} }, report.Failed, "want paused at last"},
		"no state":         {func(g *program) { g.ring.states = nil }, report.Failed, "want paused at last"},
	} {
		r := onGPU(t)
		without, atRest, recording := r.ended("without", "turns"), r.ended("at-rest", "turns", "active", "paused"), r.ended("recording", "turns", "active")
		without.Turns, atRest.Turns, recording.Turns = turnsOf(), turnsOf(), turnsOf()
		tt.change(atRest)
		r.compareTurns(without, atRest, recording, "")
		assert.Equal(t, map[string]report.Status{"cost-at-rest": tt.want, "cost-of-injection": report.Failed}, statuses(r.part.Checks), name)
		assert.Contains(t, textOf(t, r.part.Checks, "cost-at-rest"), tt.text, name)
	}
}

func TestCompany_NamesWhatElseRuns(t *testing.T) {
	r := onGPU(t)
	g := r.ended("eager", "compare", "active")
	busy := r.ended("compile", "compare")
	busy.done = make(chan struct{})
	assert.Equal(t, "compile runs, too", r.company(g))
	assert.Empty(t, r.company(busy), "itself")
	require.NoError(t, os.MkdirAll(busy.folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(busy.folder, "ready"), nil, 0o600))
	assert.Empty(t, r.company(g), "it waits")

	r.kit.Busy = "other programs use it"
	assert.Equal(t, r.kit.Busy, r.company(g))
	g.company = r.company(g)
	s, err := open(t.Context(), g, report.Shown)
	require.NoError(t, err)
	assert.Equal(t, r.kit.Busy, s.company)
}

func TestMode_WhileAnotherCompiles_IsNotAlone(t *testing.T) {
	r := onGPU(t)
	g := r.ended("graph", "compare", "active")
	g.wait = filepath.Join(r.kit.Work, "go-graph")
	r.ended("compile", "compare").done = make(chan struct{})
	r.mode(t.Context(), g)
	assert.Equal(t, "compile runs, too", g.company)
}

func TestKeep_OneFileTooLarge_CostsNoOther(t *testing.T) {
	r := onGPU(t)
	for _, name := range modes {
		g := r.ended(name, "compare", "active")
		require.NoError(t, os.MkdirAll(g.folder, 0o700))
		g.ring.path = filepath.Join(g.folder, "events.ring")
		for _, file := range []string{"facts.json", "events.ring"} {
			require.NoError(t, os.WriteFile(filepath.Join(g.folder, file), []byte("{}"), 0o600))
		}
	}
	require.NoError(t, os.Truncate(filepath.Join(r.programs["eager"].folder, "facts.json"), maxFacts+1))
	r.keep()
	assert.Equal(t, report.Failed, statuses(r.part.Checks)["fixture"])
	assert.Contains(t, textOf(t, r.part.Checks, "fixture"), "keep facts.json of eager: read file")
	assert.ElementsMatch(t, []string{"eager/events.ring", "compile/facts.json", "compile/events.ring", "graph/facts.json", "graph/events.ring"},
		namesIn(t, filepath.Join(r.kit.Out, "cupti.tar.gz")))
}

func namesIn(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	require.NoError(t, err)
	var names []string
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
}
