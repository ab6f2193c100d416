// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
)

func fakeTask(name string, f fake) *task {
	return &task{
		Part: partFaults, Case: name, Family: name, Ranks: f.n, Steps: f.steps, Seed: 1, Floor: 1,
		open: func() (simulation, error) { job := f; return &job, nil },
	}
}

func byMethod(t *testing.T, all []outcome, name string) *outcome {
	t.Helper()
	for i := range all {
		if all[i].Method == name {
			return &all[i]
		}
	}
	t.Fatalf("no outcome of %s", name)
	return nil
}

func TestEveryMethodOnASlowRank(t *testing.T) {
	all, err := fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1}).run(methods.All)
	require.NoError(t, err)
	for _, m := range methods.All {
		o := byMethod(t, all, m.Name)
		assert.True(t, o.Result.Top, m.Name)
		assert.EqualValues(t, 24*8*3, o.Ops)
	}
	f := byMethod(t, all, methods.Lockstep).Result.Faults[0]
	assert.True(t, f.WithClass && f.WithOp)
	assert.InDelta(t, 0.02/0.041, f.Share, 0.02, "20 ms of 41")
	assert.Less(t, f.BlameError, 0.1)
	assert.GreaterOrEqual(t, f.Steps, int64(0))
}

func TestHealthyJobAccusesAsTheMethodDoes(t *testing.T) {
	all, err := fakeTask("healthy", fake{n: 8, steps: 24, slow: -1, missing: -1}).run(methods.All)
	require.NoError(t, err)
	assert.Empty(t, byMethod(t, all, methods.Lockstep).Result.Rows)
	assert.Len(t, byMethod(t, all, methods.LatestStart).Result.Rows, 1, "it cannot abstain")
	assert.True(t, byMethod(t, all, methods.Lockstep).healthy())
}

func TestMissingRankDoesNotStopTheEngine(t *testing.T) {
	all, err := fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: 2}).run(methods.All[:1])
	require.NoError(t, err)
	f := all[0].Result.Faults[0]
	assert.True(t, f.Who)
	assert.GreaterOrEqual(t, f.Steps, int64(1), "a step is closed by its deadline, in the next")
}

func TestLateRankIsStillJudged(t *testing.T) {
	all, err := fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1, late: 3}).run(methods.All[:1])
	require.NoError(t, err)
	assert.True(t, all[0].Result.Faults[0].Who)
	assert.EqualValues(t, 24*8*3, all[0].Ops)
}

// What is small is what the scenario file says, whatever an engine is configured to.
func TestSmallIsOfTheScenarios(t *testing.T) {
	for small, want := range map[float64]bool{0.02: false, 0.9: true} {
		at := fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1})
		at.Small = small
		all, err := at.run(methods.All[:1])
		require.NoError(t, err)
		assert.Equal(t, want, all[0].Result.Faults[0].Small)
	}
	tasks, _, err := load(&options{scenarios: "scenarios.yaml", cases: regexp.MustCompile("gpu_clock/ddp/1.1"), scale: 8, parts: []string{partFaults}})
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	assert.InDelta(t, 0.02, tasks[0].Small, 0)
}

func TestRunAllKeepsTheOrderAndReports(t *testing.T) {
	tasks := []*task{
		fakeTask("gpu_clock", fake{n: 4, steps: 12, slow: 1, missing: -1}),
		fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1}),
		fakeTask("healthy", fake{n: 8, steps: 24, slow: -1, missing: -1}),
	}
	finished := 0
	all, err := runAll(t.Context(), tasks, methods.All, 2, func(*task) { finished++ })
	require.NoError(t, err)
	assert.Equal(t, 3, finished)
	require.Len(t, all, 3*len(methods.All))
	assert.Equal(t, 4, all[0].Ranks)
	var out strings.Builder
	tables(&out, all)
	for _, want := range []string{"## lockstep: aims", "## methods side by side", "## lockstep: faults, by family and scale", "gpu_clock", "healthy"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestRunAllStopsAtAnError(t *testing.T) {
	bad := &task{Case: "bad", Ranks: 99, Steps: 9, open: func() (simulation, error) { return nil, errors.New("no such layout") }}
	_, err := runAll(t.Context(), []*task{bad, fakeTask("healthy", fake{n: 4, steps: 4, slow: -1, missing: -1})}, methods.All, 1, func(*task) {})
	assert.ErrorContains(t, err, "no such layout")
	assert.ErrorContains(t, err, "bad")
}

func TestInterruptKeepsWhatIsThere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tasks := []*task{
		fakeTask("gpu_clock", fake{n: 8, steps: 24, slow: 5, missing: -1}),
		fakeTask("healthy", fake{n: 4, steps: 4, slow: -1, missing: -1}),
		fakeTask("healthy", fake{n: 4, steps: 3, slow: -1, missing: -1}),
	}
	all, err := runAll(ctx, tasks, methods.All[:1], 1, func(*task) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.NotEmpty(t, all)
	assert.Less(t, len(all), 3)
	assert.Equal(t, "gpu_clock", all[0].Case, "the largest comes first")
}

func TestRoomBoundsRanksAtOnce(t *testing.T) {
	r := newRoom(10)
	assert.Equal(t, 10, r.take(99), "a larger job takes all")
	r.give(10)
	r.take(6)
	done := make(chan struct{})
	go func() { r.take(6); close(done) }()
	select {
	case <-done:
		t.Fatal("12 of 10")
	default:
	}
	r.give(6)
	<-done
}

func TestGrowth(t *testing.T) {
	row, err := fakeTask("healthy", fake{n: 8, steps: 6, slow: -1, missing: -1}).grow(&methods.All[0])
	require.NoError(t, err)
	assert.Equal(t, []string{"8", "6", "3"}, row[1:4])
	assert.Equal(t, "0", row[len(row)-1], "nobody is named")
}
