// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// TestWatchedSaves: a job of each format is watched while it saves. Whatever is told of it, in
// part and again, the engine that takes it calls no save converged that is not whole, and each
// that is finished.
func TestWatchedSaves(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			var trials []*ckptsim.Trial
			for _, epochs := range [][]int64{{10}, {10, 20}, {10, 20, 30}} {
				trial, err := ckptsim.NewTrial(&job, 2, epochs...)
				require.NoError(t, err)
				trials = append(trials, trial)
			}
			converged, seeds := 0, tier.N(t, 3, 12)
			for seed := range seeds {
				converged += watched(t, trials[seed%len(trials)], uint64(seed))
			}
			t.Logf("%s: %d times converged", job.Name, converged)
			require.True(t, job.Unproven || converged >= 2*seeds, "two looks at the end of each: got %d", converged)
		})
	}
}

func watched(t *testing.T, trial *ckptsim.Trial, seed uint64) (times int) {
	t.Helper()
	job, rng := trial.Job, rand.New(rand.NewPCG(seed, 11))
	cfg := Config{JobID: "job", Observer: "here", Heartbeat: time.Minute, MaxDomains: 1000}
	if job.TellWorld {
		cfg.World = int64(job.World)
	}
	w, e, now := New(cfg), epoch.New(epoch.Config{}), time.Unix(1_760_000_000, 0)
	may := map[int64]bool{} // what was whole when all was told last, or since
	steps := []int{0}
	for range 12 {
		steps = append(steps, rng.IntN(trial.Steps()+1))
	}
	steps = append(steps, trial.Steps(), trial.Steps())
	slices.Sort(steps)
	for i, n := range steps {
		state, err := trial.At(n, ckptsim.Kill, rand.New(rand.NewPCG(seed, 12)))
		require.NoError(t, err)
		now = now.Add(time.Duration(rng.IntN(90)) * time.Second)
		obs := w.Look(ckpt.Read(t.Context(), state, ckpt.Options{WorldSize: cfg.World}), now)
		// Of what is told in parts each is taken for itself, and the rest may be refused.
		delivered := true
		for _, of := range trial.Saves {
			may[of.Epoch] = may[of.Epoch] || state.Truth(of, trial.Saves) == ckptsim.Whole
		}
		for k := range obs {
			if rng.IntN(200) == 0 && i < len(steps)-2 {
				w.Refused(obs[k:])
				delivered = false
				break
			}
			e.Observe(&obs[k])
			checkNone(t, job, e, trial, may)
		}
		if !delivered {
			continue
		}
		for _, of := range trial.Saves {
			may[of.Epoch] = state.Truth(of, trial.Saves) == ckptsim.Whole
		}
		if rng.IntN(6) == 0 && i < len(steps)-3 { // who is told begins anew, and hears all again
			e = epoch.New(epoch.Config{})
			now = now.Add(cfg.Heartbeat)
		}
		for _, of := range trial.Saves {
			converged := false
			for _, g := range e.Generations("job") {
				converged = converged || e.Judge("job", g, of.Epoch).Verdict == epoch.Converged
			}
			if converged {
				times++
			}
			truth := state.Truth(of, trial.Saves)
			require.False(t, converged && truth != ckptsim.Whole, "%s, seed %d, after %d of %d: %d is called converged, and is %s:\n%s", job.Name, seed, n, trial.Steps(), of.Epoch, truth, state)
			if last := i == len(steps)-1; last && state.Finished(of, trial.Saves) && !job.Unproven && !converged {
				for _, g := range e.Generations("job") {
					t.Logf("%q: %+v", g, e.Judge("job", g, of.Epoch))
				}
				t.Fatalf("%s, seed %d: %d is finished, and not called converged:\n%s", job.Name, seed, of.Epoch, state)
			}
		}
	}
	return times
}

// checkNone wants nothing called converged that was not whole when all was told last, nor since.
func checkNone(t *testing.T, job *ckptsim.Job, e *epoch.Engine, trial *ckptsim.Trial, may map[int64]bool) {
	t.Helper()
	for _, of := range trial.Saves {
		for _, g := range e.Generations("job") {
			if e.Judge("job", g, of.Epoch).Verdict == epoch.Converged {
				require.True(t, may[of.Epoch], "%s: %d is called converged", job.Name, of.Epoch)
			}
		}
	}
}
