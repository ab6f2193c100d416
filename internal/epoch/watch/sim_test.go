// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/ckptwatch"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// TestJobsThatAreKilled: a job of each format is watched while it saves, and is killed at some
// point. Nothing is said of a save that is whole, nor of one that is under way; and of a save of
// which a part was left, and a part is confirmed, it is said that it is partial or mixed.
func TestJobsThatAreKilled(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			trial, err := ckptsim.NewTrial(&job, 2, 10, 20, 30)
			require.NoError(t, err)
			said, seeds := 0, tier.N(t, 4, 20)
			for seed := range uint64(seeds) {
				said += killed(t, trial, seed)
			}
			t.Logf("%s: %d of %d killed saves told of", job.Name, said, seeds)
		})
	}
}

func killed(t *testing.T, trial *ckptsim.Trial, seed uint64) (said int) {
	t.Helper()
	job, rng := trial.Job, rand.New(rand.NewPCG(seed, 13))
	cfg := ckptwatch.Config{JobID: "job", Observer: "here", Heartbeat: time.Minute, MaxDomains: 1000}
	if job.TellWorld {
		cfg.World = int64(job.World)
	}
	looks, w, now := ckptwatch.New(cfg), New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	look := func(steps int) *ckptsim.State {
		state, err := trial.At(steps, ckptsim.Kill, rand.New(rand.NewPCG(seed, 14)))
		require.NoError(t, err)
		now = now.Add(time.Minute)
		obs := looks.Look(ckpt.Read(t.Context(), state, ckpt.Options{WorldSize: cfg.World}), now)
		for i := range obs {
			w.Observe(&obs[i], now)
		}
		return state
	}
	end := rng.IntN(trial.Steps() + 1)
	for i := range 5 { // less than it takes to settle
		look(end * i / 5)
		require.Empty(t, w.Tick(now), "it is under way")
	}
	var state *ckptsim.State
	for range 12 {
		state = look(end)
		w.Tick(now)
	}
	for _, e := range w.Standing(now) {
		for _, of := range trial.Saves {
			if of.Epoch == saveOf(&e) {
				require.NotEqual(t, ckptsim.Whole, state.Truth(of, trial.Saves), "seed %d: %+v", seed, e)
			}
		}
		said++
	}
	for _, of := range trial.Saves {
		for _, g := range w.engine.Generations("job") {
			v := w.engine.Judge("job", g, of.Epoch).Verdict
			require.False(t, v == epoch.Converged && state.Truth(of, trial.Saves) != ckptsim.Whole, "seed %d", seed)
		}
	}
	return min(said, 1)
}
