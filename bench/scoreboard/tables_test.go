// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
	"github.com/lockstep-otel/lockstep/bench/scoreboard/score"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

func made(family string, ranks int, floor float64, r score.Result) outcome {
	return outcome{
		task:   &task{Part: partFaults, Case: family, Family: family, Ranks: ranks, Steps: 100, Floor: floor},
		Method: methods.Lockstep, Culprits: len(r.Faults), Unequal: len(r.Imbalances), Result: r,
	}
}

func found() score.Result {
	return score.Result{
		Top:    true,
		Faults: []score.Fault{{Decided: true, Who: true, WithClass: true, Candidate: true, Steps: 6, BlameError: 0.01}},
		Rows:   []score.Row{{Accuses: true, Who: true, WithClass: true, Accusation: methods.Accusation{Confidence: model.Some(0.9)}}},
	}
}

func victim() score.Result {
	return score.Result{
		Faults: []score.Fault{{Decided: true, Steps: -1, BlameError: -1}},
		Rows:   []score.Row{{Accuses: true, Victim: true, Accusation: methods.Accusation{Confidence: model.Some(0.9)}}},
	}
}

func silent(small bool) score.Result {
	return score.Result{Faults: []score.Fault{{Small: small, Steps: -1, BlameError: -1}}}
}

func lineWith(t *testing.T, text, prefix string) []string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return strings.Fields(line)
		}
	}
	t.Fatalf("no line begins with %q in:\n%s", prefix, text)
	return nil
}

// Of four faults one is small. Of the other three one is found, one is laid on a victim,
// one is left alone: 2 of 3 decided, which misses a floor of 90 %; one of two
// accusations right.
func TestFaultTable(t *testing.T) {
	all := []outcome{
		made("gpu_clock", 64, 0.9, found()), made("gpu_clock", 64, 0.9, victim()),
		made("gpu_clock", 64, 0.9, silent(false)), made("gpu_clock", 64, 0.9, silent(true)),
	}
	var out strings.Builder
	faultTable(&out, all, methods.Lockstep)
	assert.Equal(t, []string{"gpu_clock", "64", "4", "3", "1", "66.7", "90!", "50.0", "33.3", "33.3", "33.3", "33.3", "-", "1", "6", "6", "0.010"},
		lineWith(t, out.String(), "gpu_clock"))
}

func TestAimsAreMissed(t *testing.T) {
	told := score.Result{Imbalances: []score.Fault{{Who: true, Decided: true}}, Rows: []score.Row{{Who: true, WithClass: true}}}
	long := made("healthy", 64, 0, score.Result{})
	long.Steps = 1_000_000
	good, bad := []outcome{made("gpu_clock", 64, 0.9, found()), made("jitter", 64, 0, told), long}, []outcome{
		made("gpu_clock", 64, 0.9, found()), made("gpu_clock", 64, 0.9, victim()),
		made("jitter", 64, 0, score.Result{Imbalances: []score.Fault{{Decided: true}}, Rows: []score.Row{{Accuses: true}}}),
		made("healthy", 64, 0, score.Result{Rows: []score.Row{{Accuses: true}}}),
	}
	var reached, missed strings.Builder
	aims(&reached, good, methods.Lockstep)
	assert.Positive(t, aims(&missed, bad, methods.Lockstep))
	for _, what := range []string{"who and class", "victims", "accusations on imbalance", "false accusations"} {
		line := lineWith(t, reached.String(), what)
		assert.Equal(t, "reached", line[len(line)-1], what)
		line = lineWith(t, missed.String(), what)
		assert.Equal(t, "missed", line[len(line)-1], what)
	}
	// One in 100 steps of 64 ranks: 10,000,000 / 6,400, and 4.74 times as many could be.
	assert.Contains(t, missed.String(), "1.56e+03 (1 in 6.4e+03; up to 7.41e+03)")
}

// lastWords returns what is said of each aim.
func lastWords(t *testing.T, all []outcome) (got map[string]string, misses int) {
	t.Helper()
	var out strings.Builder
	misses = aims(&out, all, methods.Lockstep)
	got = map[string]string{}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, " \n")
		for _, word := range []string{reached, missed, notMeasured, notShown} {
			if what, ok := strings.CutSuffix(line, " "+word); ok {
				got[strings.TrimSpace(what[:min(len(what), 20)])] = word
			}
		}
	}
	return got, misses
}

func TestNothingIsReachedByRunningNothing(t *testing.T) {
	got, misses := lastWords(t, nil)
	assert.Zero(t, misses)
	assert.NotEmpty(t, got)
	for what, word := range got {
		assert.Equal(t, notMeasured, word, what)
	}
	got, _ = lastWords(t, []outcome{made("healthy", 64, 0, score.Result{})})
	assert.Equal(t, notShown, got["false accusations pe"], "none in 6,400 rank-steps says nothing of 10,000,000")
	assert.Equal(t, notMeasured, got["victims accused"], "there is no fault")
	got, _ = lastWords(t, []outcome{made("gpu_clock", 64, 0.9, silent(true))})
	assert.Equal(t, notMeasured, got["floors of the share"], "all of the case is small")
	assert.Equal(t, notMeasured, got["who and class, of fa"])
	assert.Equal(t, missed, got["the same, with those"], "small ones, too")
}

// Of n events of a Poisson law the means that the tables of its exact 95 % limits have.
func TestMostEvents(t *testing.T) {
	for n, want := range map[int]float64{0: 2.996, 1: 4.744, 5: 10.513, 10: 16.962} {
		assert.InDelta(t, want, mostEvents(n), 0.001)
	}
}

// What cannot be told is no excuse for accusing somebody.
func TestWhatCannotBeToldCounts(t *testing.T) {
	wrong := score.Row{Accuses: true, Accusation: methods.Accusation{Confidence: model.Some(0.98)}}
	blind := made("hot_expert_blind", 8, 0, score.Result{Imbalances: []score.Fault{{Decided: true}}, Rows: []score.Row{wrong}})
	lost := made("nic_tx_unseen", 8, 0, silent(false))
	blind.Part, lost.Part = partLimit, partLimit
	got, misses := lastWords(t, []outcome{blind, lost})
	assert.Equal(t, missed, got["accusations on imbal"])
	assert.Equal(t, missed, got["expected calibration"])
	assert.Equal(t, reached, got["victims accused"])
	assert.Equal(t, notMeasured, got["who and class, of fa"], "silence is right")
	assert.Equal(t, notMeasured, got["floors of the share"])
	assert.Equal(t, 2, misses)
	var out strings.Builder
	innocent(&out, []outcome{blind})
	line := lineWith(t, out.String(), "hot_expert_blind")
	assert.Equal(t, "1", line[len(line)-1])
}

func TestFloorsOfCurvesAreChecked(t *testing.T) {
	at := made("gpu_clock", 64, 0.9, silent(false))
	at.Part = partCurve
	got, misses := lastWords(t, []outcome{at})
	assert.Equal(t, missed, got["the same, curves and"])
	assert.Equal(t, 1, misses)
	var out strings.Builder
	missedTable(&out, []outcome{at}, methods.Lockstep)
	assert.Equal(t, []string{"gpu_clock", "90", "0", "of", "1"}, lineWith(t, out.String(), "gpu_clock"))
}

func TestFaultsOfANatureThatNothingCalibrates(t *testing.T) {
	wrong := found()
	wrong.Rows[0].WithClass = false
	wrong.Rows[0].Confidence = model.Some(0.99)
	other := made("host_cpu", 64, 0, wrong)
	other.Novel = true
	got, _ := lastWords(t, []outcome{made("transient", 64, 0, found()), other})
	assert.Equal(t, missed, got["the same, faults of"])
	got, _ = lastWords(t, []outcome{made("transient", 64, 0, found())})
	assert.Equal(t, notMeasured, got["the same, faults of"])
}

func TestInnocentJobsAreCountedApart(t *testing.T) {
	accused := score.Result{Rows: []score.Row{{Accuses: true}, {Accuses: true}}}
	uneven := score.Result{Imbalances: []score.Fault{{Who: true, Decided: true}, {Small: true}}, Rows: []score.Row{{WithClass: true}}}
	tl := sum([]outcome{made("healthy", 8, 0, accused), made("jitter", 8, 0, uneven)}, func(*outcome) bool { return true })
	assert.Equal(t, 2, tl.falseHealthy)
	assert.Equal(t, 0, tl.falseUneven)
	assert.Equal(t, 1, tl.uneven)
	assert.Equal(t, 1, tl.unevenTold)
	assert.Equal(t, 1, tl.smallUneven)
	assert.InDelta(t, 800, tl.healthyRankSteps, 0)
}

func TestScalesAreSortedWithinFamilies(t *testing.T) {
	labels := []string{"b\t512", "a\t64", "b\t8", "a\t8"}
	sortScales(labels)
	assert.Equal(t, []string{"b\t8", "b\t512", "a\t8", "a\t64"}, labels)
}

func TestTimeLeft(t *testing.T) {
	assert.Equal(t, 30*time.Second, left(10*time.Second, 100, 400))
	assert.Zero(t, left(10*time.Second, 0, 400))
	assert.Equal(t, 64*48+8*20, rankSteps([]*task{{Ranks: 64, Steps: 48}, {Ranks: 8, Steps: 20}}))
}

// An aim that is missed fails the run where that is asked for.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scenarios.yaml")
	text := "version: 1\nsmall: 0.02\nnoise: {kernel: 0.03}\nlayouts: {ddp: {8: {dp: 8, layers: 1, per_node: 2}}}\ncases:\n" +
		"  - {family: gpu_clock, group: fault, layouts: [ddp], steps: 2, seeds: {8: 1}, floor: 1, faults: [{family: gpu_clock, severity: 2}]}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	args := []string{"-scenarios", path, "-methods", "lockstep", "-parts", "faults"}
	var out strings.Builder
	require.NoError(t, run(t.Context(), args, &out, io.Discard), "nobody can be named after two steps, and it is said")
	assert.Contains(t, out.String(), missed)
	assert.Contains(t, out.String(), training.SourceHash())
	assert.Contains(t, out.String(), "of processor time")
	err := run(t.Context(), append(args, "-check"), io.Discard, io.Discard)
	assert.ErrorContains(t, err, "check aims")
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-quick", "-scale", "8", "-methods", "lockstep"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, 8, o.scale)
	assert.Equal(t, 1, o.seeds)
	assert.NotContains(t, o.parts, partGrowth)
	assert.Len(t, o.methods, 1)
	for _, bad := range [][]string{{"-cases", "("}, {"-methods", "oracle"}, {"more"}, {"-no-such"}} {
		_, err := parse(bad, io.Discard)
		assert.Error(t, err, bad)
	}
}
