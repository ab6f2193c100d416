// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/ckptsim"
	"github.com/lockstep-otel/lockstep/internal/ckptwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// agent looks at a folder each minute, and a watch hears of it.
type agent struct {
	t   *testing.T
	dir string
	*Watch
	looks *ckptwatch.Watcher
	life  int64
	now   time.Time
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{t: t, dir: t.TempDir(), Watch: New(NewDefaultConfig()), now: time.Unix(1_760_000_000, 0)}
	a.restart()
	return a
}

func (a *agent) restart() {
	a.life++
	a.looks = ckptwatch.New(ckptwatch.Config{JobID: "job", Observer: "node", Life: a.life, Heartbeat: 5 * time.Minute, MaxDomains: 1000})
}

// save makes a whole save of a job of some format; ranks: 0 are its own.
func (a *agent) save(name string, ranks int, epoch int64) {
	a.t.Helper()
	for _, job := range ckptsim.Jobs() {
		if job.Name != name {
			continue
		}
		if ranks > 0 {
			job.World = ranks
		}
		require.NoError(a.t, job.Save(epoch, nil).Make(a.t.Context(), a.dir, func(ckptsim.Op) {}))
		return
	}
	require.Fail(a.t, "no such job", name)
}

// quiet looks for some minutes, in which nothing may be said.
func (a *agent) quiet(minutes int) {
	a.t.Helper()
	for range minutes {
		a.look(ckpt.Read(a.t.Context(), os.DirFS(a.dir), ckpt.Options{}))
	}
}

// look sees what is there a minute later, of which nothing may be said.
func (a *agent) look(root *ckpt.Root) {
	a.t.Helper()
	a.now = a.now.Add(time.Minute)
	obs := a.looks.Look(root, a.now)
	for i := range obs {
		a.Observe(&obs[i], a.now)
	}
	assert.Empty(a.t, a.Tick(a.now))
}

func (a *agent) frontier(want int64) {
	a.t.Helper()
	require.Len(a.t, a.Jobs(), 1)
	assert.Equal(a.t, model.Some(want), a.Jobs()[0].Frontier)
}

func (a *agent) rename(from, to string) {
	a.t.Helper()
	require.NoError(a.t, os.Rename(filepath.Join(a.dir, from), filepath.Join(a.dir, to)))
}

// midst is an agent that has seen a save without its last shard, which has come since.
func midst(t *testing.T) *agent {
	t.Helper()
	a := newAgent(t)
	a.save("deepspeed, ZeRO 1", 0, 100)
	a.quiet(15)
	a.save("deepspeed, ZeRO 1", 0, 200)
	shards, err := filepath.Glob(filepath.Join(a.dir, "global_step200", "*zero_pp_rank_2*optim*"))
	require.NoError(t, err)
	require.Len(t, shards, 1)
	shard := filepath.Join("global_step200", filepath.Base(shards[0]))
	a.rename(shard, "hidden")
	a.quiet(1)
	a.rename("hidden", shard)
	return a
}

// TestHealthyJobs: what jobs do beside saving one epoch after the other costs them no accusation,
// and their newest save is what they can recover.
func TestHealthyJobs(t *testing.T) {
	t.Run("a copy of the newest moves on", func(t *testing.T) {
		a := newAgent(t)
		a.save("lightning", 0, 100)
		a.save("lightning", 0, 200)
		a.save("lightning, last.ckpt", 0, 200)
		a.quiet(30)
		a.frontier(200)
		a.save("lightning", 0, 300)
		a.save("lightning, last.ckpt", 0, 300)
		a.quiet(30)
		a.frontier(300)
	})
	t.Run("fewer ranks, in a format that does not say how many", func(t *testing.T) {
		a := newAgent(t)
		a.save("torchtitan", 3, 100)
		a.quiet(30)
		a.save("torchtitan", 2, 200)
		a.quiet(30)
		a.frontier(200)
	})
	t.Run("the agent restarts during a save", func(t *testing.T) {
		a := midst(t)
		a.restart()
		a.quiet(1)
		a.frontier(200)
		a.quiet(60)
	})
	t.Run("the folder can not be read from the midst of a save on", func(t *testing.T) {
		a := midst(t)
		for range 60 {
			a.look(&ckpt.Root{Problems: []ckpt.Problem{{Check: ckpt.CheckInput, Severity: ckpt.Unreadable}}})
		}
		assert.False(t, a.Jobs()[0].Frontier.OK, "what nobody sees is not confirmed")
		a.quiet(1)
		a.frontier(200)
		a.quiet(60)
	})
	t.Run("more ranks, of which the first files do not tell", func(t *testing.T) {
		a := newAgent(t)
		a.save("deepspeed, ZeRO 1", 3, 100)
		a.quiet(15)
		a.save("deepspeed, ZeRO 1", 4, 200)
		says := filepath.Join("global_step200", "mp_rank_00_model_states.pt")
		a.rename(says, "hidden")
		a.quiet(1)
		a.rename("hidden", says)
		a.quiet(60)
		a.frontier(200)
	})
}
