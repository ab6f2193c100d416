// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// long is a name of 1,000 bytes that no other is.
func long(i int) string { return strconv.Itoa(i) + padding[:1000-len(strconv.Itoa(i))] }

var padding = strings.Repeat("x", 1000)

// hostile is an observation that makes a save mixed, of a job of its own.
func hostile(job, generation string, save int64, domain, observer string) model.EpochObservation {
	return model.EpochObservation{
		JobID: job, Generation: generation, Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: domain},
		State: model.DomainCommitted, Epoch: model.Some(save + 1), Observer: observer, Revision: 1,
	}
}

// Whatever observers report on other jobs, the watch reports a job's mixed save. It keeps to its bytes, also
// between two ticks.
func TestWatch_Flood_StaysWithinBytesAndTellsOfOthers(t *testing.T) {
	const limit = 4 << 20
	for name, flood := range map[string]func(i int) model.EpochObservation{
		"new saves":     func(i int) model.EpochObservation { return hostile("hostile", "g", int64(i), long(i%64), "o") },
		"new jobs":      func(i int) model.EpochObservation { return hostile(long(i), long(i), int64(i), long(i), long(i)) },
		"new observers": func(i int) model.EpochObservation { return hostile("hostile", "g", 1, "d", long(i)) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			r := newRig(func(c *Config) { c.MaxObservers, c.Engine.Observers, c.Engine.Bytes = 256, 256, limit })
			sent := 0
			send := func(n int) {
				for range n {
					o := flood(sent)
					r.Observe(&o, r.now)
					sent++
				}
				require.LessOrEqual(t, r.Stats().Engine.Bytes, limit)
			}
			r.tell(10, 10, 10, 10)
			r.pass(3 * beat)
			send(tier.N(t, 3000, 30_000))
			assert.LessOrEqual(t, len(r.saves), 2*r.pruned+spare+1, "until the next tick")
			r.pass(beat)
			r.tell(20, 20, 20, 10)
			for range 8 {
				send(tier.N(t, 300, 5000))
				r.pass(beat)
			}
			var open []model.Finding
			for _, f := range r.Standing(r.now) {
				if f.JobID == "job" {
					open = append(open, f)
				}
			}
			require.Len(t, open, 1, "%+v", r.Stats())
			assert.Equal(t, model.ClassMixed, open[0].Class)
			assert.Less(t, heap()-before, int64(2*limit+finding.DefaultBytes))
			runtime.KeepAlive(r)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Open episodes that name long domains are bounded in bytes, and so is the snapshot of them.
func TestWatch_EpisodesOfLongNames_StayWithinBytes(t *testing.T) {
	r := newRig(nil)
	for i := range 400 {
		job := strconv.Itoa(i)
		for d := range epoch.MaxNamed {
			o := hostile(job, "g", 1, long(d), "o")
			o.State, o.Epoch = model.DomainTentative, model.Optional[int64]{}
			r.hear(o)
		}
		r.hear(hostile(job, "g", 1, "d", "o"))
	}
	r.mute = true
	r.pass(beat)
	r.mute = false
	r.pass(4 * beat)
	open := r.Standing(r.now)
	require.NotEmpty(t, open)
	assert.LessOrEqual(t, r.book.Bytes(), finding.DefaultBytes)
	assert.Positive(t, r.Stats().Withheld)
	data, err := r.Snapshot()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(data), 2*finding.DefaultBytes)
	again := New(r.cfg)
	require.NoError(t, again.Restore(data, r.now))
	assert.Len(t, again.Standing(r.now), len(open))
	assert.LessOrEqual(t, again.book.Bytes(), finding.DefaultBytes)
}

// One observer may be named like a life of another: nothing stays of either after both fell silent.
func TestWatch_ObserverNamedLikeALife_IsForgotten(t *testing.T) {
	alive := hostile("job", "g", 1, "d", "node")
	alive.Life = 5
	named := hostile("job", "g", 1, "d", "node, life 5")
	for _, of := range [][]model.EpochObservation{{alive, named}, {named, alive}} {
		r := newRig(nil)
		for i := range of {
			r.Observe(&of[i], r.now)
		}
		require.Equal(t, 1, r.observers.Len())
		r.pass(3 * r.cfg.Silent)
		assert.Zero(t, r.observers.Len())
		assert.Empty(t, r.lives)
	}
}

// After a restart jobs come and go as before it: they push out no frontier that is waited for.
func TestWatch_JobsComeAndGoAfterRestart_FrontierOfBeforeStays(t *testing.T) {
	r := newRig(func(c *Config) { c.Engine.Jobs, c.Engine.Generations = 4, 2 })
	r.tell(10, 10, 10)
	r.pass(beat)
	r.said = map[string]model.EpochObservation{}
	r.restart(t, time.Minute)
	for i := range 100 {
		o := hostile(strconv.Itoa(i), "g", 7, "d", "o")
		o.Epoch = model.Some(o.Save)
		r.Observe(&o, r.now)
		r.Tick(r.now)
		require.LessOrEqual(t, len(r.frontiers), 8)
	}
	assert.Equal(t, model.Some[int64](10), r.frontiers[genKey{"job", "g"}])
	assert.Zero(t, r.Stats().Withheld)
}

// What is kept of a save for its span counts with all of its texts.
func TestSave_KindsOfLongNames_Count(t *testing.T) {
	r := newRig(nil)
	for i := range maxKinds {
		o := hostile("job", "g", 1, "d", "o")
		o.Domain.Kind = model.DomainKind(long(i))
		r.Observe(&o, r.now)
	}
	k := saveKey{genKey{"job", "g"}, 1}
	require.Len(t, r.saves[k].spans.kinds, maxKinds)
	assert.Greater(t, r.saves[k].bytes(k), maxKinds*1000)
}
