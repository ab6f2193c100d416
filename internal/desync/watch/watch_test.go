// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Each is told within 5 s of the limit, which is the floor for gaps of 100 ms.
func TestFaultsAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		fault func(p *plant)
		class string
		rank  int64
	}{
		"a host that hangs":    {func(p *plant) { p.ranks[5].stuck = true }, model.ClassNotScheduled, 5},
		"a process that dies":  {func(p *plant) { p.die(5) }, model.ClassProcessDead, 5},
		"a rank that has less": {func(p *plant) { p.ranks[5].bytes = 1 << 10 }, model.ClassMismatchSize, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 8, 100*time.Millisecond)
			p.run(30 * time.Second)
			require.Empty(t, p.findings)
			since := p.now
			tt.fault(p)
			p.run(30 * time.Second)
			f := p.only()
			assert.Equal(t, tt.class, f.Class)
			assert.Equal(t, model.Some(tt.rank), f.Rank)
			assert.Equal(t, model.Some(int64(7)), f.WaitingCount)
			assert.Equal(t, "job", f.JobID)
			assert.Less(t, p.told(since), 7*time.Second)
			assert.Greater(t, p.told(since), 2*time.Second)
			ev, ok := evidence.As[evidence.Hang](f.Evidence)
			require.True(t, ok)
			assert.InDelta(t, 2, ev.Limit, 1e-9)
			assert.Equal(t, "train", ev.Phase)
			assert.Len(t, p.w.Standing(), 1)
		})
	}
}

// What mends itself is closed, under the same id; the next hang is another.
func TestFindingClosesWhenThingsMove(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	open := p.only()
	assert.Equal(t, model.StatusOpen, p.findings[0].Status)
	p.ranks[2].stuck = false
	p.run(5 * time.Second)
	closed := p.only()
	assert.Equal(t, model.StatusClosed, closed.Status)
	assert.Greater(t, closed.Revision, open.Revision)
	assert.Empty(t, p.w.Standing())
	p.run(30 * time.Second)

	n := len(p.findings)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	require.Greater(t, len(p.findings), n)
	assert.NotEqual(t, closed.ID, p.findings[n].ID)
	assert.Equal(t, model.StatusOpen, p.findings[n].Status)
}

// The percentile of the job's own gaps makes the limit.
func TestLimitFollowsTheJob(t *testing.T) {
	p := newPlant(t, 4, 2*time.Second)
	p.run(10 * time.Minute)
	require.Len(t, p.w.Limits(), 1)
	l := p.w.Limits()[0]
	assert.InEpsilon(t, 20.3, l.Limit.Seconds(), 0.07)
	since := p.now
	p.ranks[1].stuck = true
	p.run(time.Minute)
	p.only()
	assert.Greater(t, p.told(since), l.Limit)
	assert.Less(t, p.told(since), l.Limit+5*time.Second)
}

// A job of which too little is known has ten minutes.
func TestStartLimit(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(time.Second)
	since := p.now
	p.ranks[1].stuck = true
	p.run(9 * time.Minute)
	require.Empty(t, p.findings)
	p.run(2 * time.Minute)
	assert.Equal(t, model.Some(int64(1)), p.only().Rank)
	assert.Greater(t, p.told(since), 10*time.Minute)
	assert.Less(t, p.told(since), 10*time.Minute+5*time.Second)
}

// Ten minutes each of what a job does beside training: nothing is told.
func TestQuiet(t *testing.T) {
	pause := func(p *plant, rank int, d time.Duration, phase, scope string) {
		r := p.ranks[rank]
		from := p.now
		r.stuck, r.phase, r.scope = true, phase, scope
		p.run(d)
		r.stuck, r.phase, r.scope = false, "", ""
		p.w.AddOps(&model.RankOps{Rank: r.rank, Ops: []model.Op{{
			Kind: model.KindScope, Name: scope, Phase: phase, Start: from.UnixNano(), End: p.now.UnixNano(),
		}}}, p.now)
	}
	for name, ten := range map[string]func(p *plant){
		"checkpointing": func(p *plant) {
			for range 10 {
				pause(p, 0, 20*time.Second, model.PhaseCheckpoint, model.ScopeCheckpointSave)
				p.run(40 * time.Second)
			}
		},
		"a scope alone says it": func(p *plant) {
			for range 10 {
				pause(p, 0, 20*time.Second, "", model.ScopeCheckpointSave)
				p.run(40 * time.Second)
			}
		},
		"evaluation": func(p *plant) {
			for range 5 {
				pause(p, 0, time.Minute, model.PhaseEval, "evaluate")
				p.run(time.Minute)
			}
		},
		"a breakpoint": func(p *plant) { pause(p, 3, 590*time.Second, "", scopeDebugger) },
		"a debugger": func(p *plant) {
			p.ranks[3].process = model.ProcessTraced
			p.run(590 * time.Second)
			p.ranks[3].process = model.ProcessRunning
			p.run(10 * time.Second)
		},
		"signals": func(p *plant) {
			for i := range 10 {
				p.ranks[i%4].process = model.ProcessStopped
				p.run(30 * time.Second)
				p.ranks[i%4].process = model.ProcessRunning
				p.run(30 * time.Second)
			}
		},
		"compilation": func(p *plant) {
			for range 10 {
				pause(p, 1, 30*time.Second, model.PhaseCompile, model.ScopeCompile)
				p.run(30 * time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			ten(p)
			for _, f := range p.findings {
				require.Equal(t, model.ClassProcessStopped, f.Class, "that a process is stopped is told")
			}
			assert.Empty(t, p.w.Standing())
			assert.Positive(t, p.w.Stats().Withheld, "and something was there to be told")
			p.findings, p.at = nil, nil

			// A hang is still told afterwards, as soon as ever.
			since := p.now
			p.ranks[2].stuck = true
			p.run(30 * time.Second)
			assert.Equal(t, model.Some(int64(2)), p.only().Rank)
			assert.Less(t, p.told(since), 7*time.Second)
		})
	}
}

// Compilation of the first step, before anything was ever seen.
func TestFirstStepCompiles(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.ranks[1].busy = p.now.Add(9 * time.Minute)
	p.run(10 * time.Minute)
	assert.Empty(t, p.findings)
}

// A rank that was held and goes on has not hung since it was held. Its states come each 2 s:
// whenever it goes on, one of them comes before it has moved.
func TestHeldRankStandsAnewWhenItGoesOn(t *testing.T) {
	for offset := range 8 {
		p := newPlant(t, 4, 100*time.Millisecond)
		p.run(30 * time.Second)
		r := p.ranks[1]
		r.process = model.ProcessStopped
		p.run(30*time.Second + time.Duration(offset)*250*time.Millisecond)
		r.process, r.busy = model.ProcessRunning, p.now.Add(1900*time.Millisecond)
		p.run(30 * time.Second)
		assert.Len(t, p.ofClass(model.ClassProcessStopped), len(p.findings))
		assert.Empty(t, p.w.Standing())
	}
}

// What moves between two looks does not hang, although it stood for longer than the limit.
// The last to enter an operation does so where the others have waited for as long as it was
// held: that all have entered and nobody gets out is so from then on only.
func TestWhoComesLateStandsNowhereYet(t *testing.T) {
	for offset := range 8 {
		for name, before := range map[string]time.Duration{"held outside": 0, "held inside": 100 * time.Millisecond} {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			r := p.ranks[1]
			if before > 0 {
				p.cut = true
				p.run(2 * before)
			}
			r.process = model.ProcessStopped
			p.run(30*time.Second + time.Duration(offset)*250*time.Millisecond)
			r.process, p.cut = model.ProcessRunning, true
			p.run(1500 * time.Millisecond)
			p.cut = false
			p.run(30 * time.Second)
			assert.Len(t, p.ofClass(model.ClassProcessStopped), len(p.findings), "%s, %d", name, offset)
			assert.Empty(t, p.w.Standing())
			p.findings, p.at = nil, nil

			p.cut = true
			p.run(30 * time.Second)
			require.NotEmpty(t, p.findings, "what then hangs is told")
			assert.Equal(t, model.ClassStalledOp, p.findings[0].Class)
		}
	}
}

func TestSeenOnceIsNotTold(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	for range 10 {
		p.ranks[1].stuck = true
		p.run(3500 * time.Millisecond)
		p.ranks[1].stuck = false
		p.run(5 * time.Second)
	}
	assert.Empty(t, p.findings)
	assert.Positive(t, p.w.Stats().Withheld)
}

// One that stands at a breakpoint for longer than its own limit is told.
func TestHeldForEver(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	since := p.now
	p.ranks[1].stuck, p.ranks[1].scope = true, scopeDebugger
	p.run(11 * time.Minute)
	assert.Equal(t, model.Some(int64(1)), p.only().Rank)
	assert.Greater(t, p.told(since), 10*time.Minute)
}

// When the job is torn down after a hang, those that die then are no cause.
func TestTearingDownAccusesNobody(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	p.die(0)
	p.run(10 * time.Second)
	for _, i := range []int{1, 2, 3} {
		p.die(i)
	}
	p.run(20 * time.Second)
	f := p.only()
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.StatusClosed, f.Status)
}

// A job that ends all at once, by a crash or by its launcher, hangs nowhere.
func TestAllDie(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	for i := range p.ranks {
		p.die(i)
	}
	p.run(20 * time.Minute)
	assert.Empty(t, p.findings)
	assert.Empty(t, p.w.jobs, "and is forgotten")
}

// A node that is lost leaves ranks of which nothing is known: they are candidates, or
// missing, and nobody else is named.
func TestLostNode(t *testing.T) {
	p := newPlant(t, 8, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[6].stuck, p.ranks[6].mute = true, true
	p.run(time.Minute)
	f := p.only()
	assert.Contains(t, []string{model.ClassDumpMissing, model.ClassIncompleteEvidence}, f.Class)
	assert.Equal(t, []int64{6}, blamed(&f))
}
