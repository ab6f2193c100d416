// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// tally counts states by what they hold and by what was said.
type tally struct {
	states, whole, finished, converged, wrong int
	distinct                                  map[uint64]bool
	sound                                     bool // look only for what is wrongly called converged
}

func (n *tally) count(truth ckptsim.Truth, finished, converged bool) {
	for _, c := range []struct {
		to *int
		is bool
	}{{&n.whole, truth == ckptsim.Whole}, {&n.finished, finished}, {&n.converged, converged}} {
		if c.is {
			*c.to++
		}
	}
}

// crashes is how many random states of each job are judged; LOCKSTEP_CKPT_CRASHES sets another number.
func crashes(t *testing.T) int {
	t.Helper()
	return tier.NOr(t, "LOCKSTEP_CKPT_CRASHES", 40, 1000)
}

// TestCrashStates: no state that a crash can leave is called converged unless the save is
// whole, and each finished save is.
func TestCrashStates(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel()
			crashStates(t, &job, crashes(t))
		})
	}
}

func crashStates(t *testing.T, job *ckptsim.Job, states int) {
	t.Helper()
	n := tally{distinct: map[uint64]bool{}}
	var trials []*ckptsim.Trial
	for _, epochs := range [][]int64{{10}, {10, 20}, {10, 20, 30}} {
		trial, err := ckptsim.NewTrial(job, 2, epochs...)
		require.NoError(t, err)
		trials = append(trials, trial)
		singles, err := trial.Singles(rand.New(rand.NewPCG(0, 8)))
		require.NoError(t, err)
		for i, state := range singles {
			n.distinct[state.Hash()] = true
			n.check(t, job, trial.Saves, state, fmt.Sprintf("one loss, state %d", i))
		}
	}
	after := ckptsim.NewTrials(job)
	for i := range states {
		rng := rand.New(rand.NewPCG(uint64(i), 8))
		trial := trials[rng.IntN(len(trials))]
		n.sound = i%4 == 3 // then nothing promises that a finished save is known to be so
		if n.sound {
			trial = troubled(t, job, after, rng)
		}
		// The states at the end are nearest to a whole save.
		steps := max(rng.IntN(trial.Steps()+1), rng.IntN(2*trial.Steps()))
		state, err := trial.At(steps, ckptsim.Crash(rng.IntN(int(ckptsim.Crashes))), rng)
		require.NoError(t, err)
		if n.sound {
			state.Tick = []int64{1, 1, 4, 60}[rng.IntN(4)]
		}
		n.distinct[state.Hash()] = true
		n.check(t, job, trial.Saves, state, fmt.Sprintf("state %d", i))
		if n.wrong >= 3 {
			break
		}
	}
	t.Logf("%s: %d states, %d different; saves in them: %d whole, %d finished, %d called converged, %d wrongly judged",
		job.Name, n.states, len(n.distinct), n.whole, n.finished, n.converged, n.wrong)
}

// troubled is a job that was killed in its saves before, and that had more ranks then.
func troubled(t *testing.T, job *ckptsim.Job, after *ckptsim.Trials, rng *rand.Rand) *ckptsim.Trial {
	t.Helper()
	ranks := 0
	if job.InPlace && job.World > 1 {
		ranks = rng.IntN(2)
	}
	trial, err := after.AfterCrashes(ranks, rng, 10, 20, 30)
	require.NoError(t, err)
	return trial
}

// check holds what is said of a folder against what is true.
func (n *tally) check(t *testing.T, job *ckptsim.Job, saves []*ckptsim.Save, state holder, name string) {
	t.Helper()
	n.states++
	opt := ckpt.Options{}
	if job.TellWorld {
		opt.WorldSize = int64(job.World)
	}
	n.judged(t, job, saves, state, name, opt)
	if job.Digests {
		opt.Verify = true
		n.judged(t, job, saves, state, name+", verified", opt)
	}
}

// judged reads the folder in one way.
func (n *tally) judged(t *testing.T, job *ckptsim.Job, saves []*ckptsim.Save, state holder, name string, opt ckpt.Options) {
	t.Helper()
	said := judge(ckpt.Read(t.Context(), state, opt))
	wrong := func(what string, epoch int64) {
		n.wrong++
		t.Errorf("%s: %s, epoch %d, is %s:\n%s%s", job.Name, name, epoch, what, state, said)
	}
	for _, of := range saves {
		truth := state.Truth(of, saves)
		converged := said.converged(of.Epoch)
		finished := state.Finished(of, saves)
		if !opt.Verify { // each state is counted once
			n.count(truth, finished, converged)
		}
		switch {
		case converged && truth != ckptsim.Whole:
			wrong("called converged, and is "+truth.String(), of.Epoch)
		case converged && !state.Published(of, saves):
			wrong("called converged before it was published", of.Epoch)
		case finished && !converged && !job.Unproven && !n.sound:
			wrong("finished and not called converged", of.Epoch)
		}
	}
	said.unnamed(saves, state, wrong)
}
