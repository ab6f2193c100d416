// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// TestSecondAttempt: a job saves again at an epoch at which it had saved before, with other
// numbers. Where nothing tells what is left of two attempts from a save, the job says so, and
// what that takes; nothing else is called converged that is of two.
func TestSecondAttempt(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel()
			secondAttempts(t, &job, crashes(t))
		})
	}
}

func secondAttempts(t *testing.T, job *ckptsim.Job, states int) {
	t.Helper()
	converged, blurred := 0, 0
	trials := ckptsim.NewTrials(job)
	for i := range states {
		rng := rand.New(rand.NewPCG(uint64(i), 10))
		trial, err := trials.Again(rng)
		require.NoError(t, err)
		steps := max(rng.IntN(trial.Steps()+1), rng.IntN(2*trial.Steps()))
		crash := ckptsim.Crash(rng.IntN(int(ckptsim.Crashes)))
		state, err := trial.At(steps, crash, rng)
		require.NoError(t, err)
		opt := ckpt.Options{}
		if job.TellWorld {
			opt.WorldSize = int64(job.World)
		}
		said := judge(ckpt.Read(t.Context(), state, opt))
		if !said.converged(20) {
			continue
		}
		converged++
		if state.Truth(trial.Saves[1], nil) == ckptsim.Whole || state.Truth(trial.Saves[2], nil) == ckptsim.Whole {
			continue
		}
		blurred++
		may := job.Blurs == ckptsim.KillBlurs || job.Blurs == ckptsim.CrashBlurs && crash != ckptsim.Kill
		require.True(t, may, "called converged, and is of two attempts:\n%s%s", state, said)
	}
	t.Logf("%s: %d states, %d called converged, %d of them of two attempts at the epoch", job.Name, states, converged, blurred)
}
