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

// hold stops the process of a rank, and lets it go on after d.
func (p *plant) hold(rank int, how model.ProcessState, d time.Duration) {
	p.ranks[rank].process = how
	p.run(d)
	p.ranks[rank].process = model.ProcessRunning
	p.run(10 * time.Second)
}

// ofClass are the findings of a class in the order in which they were told.
func (p *plant) ofClass(class string) (out []model.Finding) {
	for _, f := range p.findings {
		if f.Class == class {
			out = append(out, f)
		}
	}
	return out
}

func TestStoppedProcess_AtOnceInfo_ThenError_ThenClosed(t *testing.T) {
	for name, how := range map[string]model.ProcessState{"a signal": model.ProcessStopped, "a debugger": model.ProcessTraced, "a cgroup": model.ProcessFrozen} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			since := p.now
			p.hold(1, how, 60*time.Second)
			f := p.only()
			require.GreaterOrEqual(t, len(p.findings), 3)
			first := p.findings[0]
			assert.Equal(t, model.ClassProcessStopped, first.Class)
			assert.Equal(t, model.SeverityInfo, first.Severity)
			assert.Equal(t, model.Some(int64(1)), first.Rank)
			assert.Contains(t, evidence.Encode(first.Evidence), `"pid":1001`)
			assert.Less(t, p.told(since), 5*time.Second)
			second := p.findings[1]
			assert.Equal(t, model.SeverityError, second.Severity, "others wait for longer than the stall limit")
			assert.Equal(t, []int64{0, 2, 3}, second.Waiting)
			assert.Less(t, p.at[1].Sub(since), 10*time.Second)
			assert.Equal(t, model.StatusClosed, f.Status)
			assert.Less(t, p.at[len(p.at)-1].Sub(since), 65*time.Second)
		})
	}
}

// A profiler stops a process for some milliseconds to read its stacks.
func TestStoppedProcess_ForAMoment_IsNotReported(t *testing.T) {
	for silent, want := range map[float64]int{0.2: 0, 1.5: 1} {
		w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
		s := still(0, now.UnixNano(), false)
		s.Process, s.Silent = model.ProcessTraced, model.Some(silent)
		w.AddState(s, now)
		assert.Len(t, w.Tick(now), want)
	}
}

// A job of which too few gaps are known waits for longer before that is an error.
func TestStoppedProcess_FewGaps_ErrorLater(t *testing.T) {
	p := newPlant(t, 4, time.Second)
	p.run(10 * time.Second)
	since := p.now
	p.hold(1, model.ProcessStopped, 60*time.Second)
	require.GreaterOrEqual(t, len(p.findings), 3)
	assert.Equal(t, model.SeverityInfo, p.findings[0].Severity)
	for i, f := range p.findings {
		if f.Severity == model.SeverityError {
			assert.Greater(t, p.at[i].Sub(since), 25*time.Second)
			assert.Less(t, p.at[i].Sub(since), 40*time.Second)
			return
		}
	}
	t.Error("it never became an error")
}

func TestStoppedProcess_AloneInItsJob_StaysInfo(t *testing.T) {
	p := newPlant(t, 1, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.hold(0, model.ProcessStopped, 5*time.Minute)
	for _, f := range p.findings {
		assert.Equal(t, model.SeverityInfo, f.Severity, "nobody waits")
	}
	assert.Equal(t, model.StatusClosed, p.only().Status)
}

func TestStoppedProcess_WaitShorterThanTheLimit_StaysInfo(t *testing.T) {
	p := newPlant(t, 4, 3*time.Second) // steps of 3 s: the limit is some 30 s
	p.run(20 * time.Minute)
	p.hold(2, model.ProcessStopped, 15*time.Second)
	for _, f := range p.findings {
		assert.Equal(t, model.SeverityInfo, f.Severity)
	}
	assert.Equal(t, model.StatusClosed, p.only().Status)
}

// In the middle of a collective: all have entered it, and no network is accused.
func TestStoppedProcess_InACollective_IsWhatIsTold(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.cut = true
	p.run(time.Second)
	p.ranks[3].process = model.ProcessStopped
	p.run(5 * time.Minute)
	f := p.only()
	assert.Equal(t, model.ClassProcessStopped, f.Class)
	assert.Equal(t, model.Some(int64(3)), f.Rank)
	assert.Equal(t, model.SeverityError, f.Severity)
	p.cut, p.ranks[3].process = false, model.ProcessRunning
	p.run(10 * time.Second)
	assert.Equal(t, model.StatusClosed, p.only().Status)
}

func TestStoppedProcess_Several_EachItsOwn(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[1].process, p.ranks[2].process = model.ProcessStopped, model.ProcessTraced
	p.run(30 * time.Second)
	ranks := map[int64]bool{}
	for _, f := range p.findings {
		require.Equal(t, model.ClassProcessStopped, f.Class)
		ranks[f.Rank.V] = true
		for _, other := range f.Waiting {
			assert.NotContains(t, []int64{1, 2}, other, "who is stopped waits for nobody")
		}
	}
	assert.Equal(t, map[int64]bool{1: true, 2: true}, ranks)
	p.ranks[1].process, p.ranks[2].process = model.ProcessRunning, model.ProcessRunning
	p.run(10 * time.Second)
	assert.Empty(t, p.w.Standing())
}

// One that dies while it is stopped is dead, and not stopped any more.
func TestStoppedProcess_ThatDies_IsDead(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[1].process = model.ProcessStopped
	p.run(20 * time.Second)
	p.die(1)
	p.run(30 * time.Second)
	stopped := p.ofClass(model.ClassProcessStopped)
	require.NotEmpty(t, stopped)
	assert.Equal(t, model.StatusClosed, stopped[len(stopped)-1].Status)
	dead := p.ofClass(model.ClassProcessDead)
	require.NotEmpty(t, dead)
	assert.Equal(t, model.Some(int64(1)), dead[0].Rank)
}

// A rank that hangs by itself is no victim of another job's process, and is named once the stopped
// one goes on.
func TestStoppedProcess_AnotherHang_IsToldAfterwards(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.hold(1, model.ProcessStopped, 20*time.Second)
	p.run(30 * time.Second)
	scheduled := p.ofClass(model.ClassNotScheduled)
	require.NotEmpty(t, scheduled)
	assert.Equal(t, model.Some(int64(2)), scheduled[0].Rank)
}

// A death or a mismatch is a fault by itself, whatever else is stopped.
func TestStoppedProcess_AnotherFault_IsReported(t *testing.T) {
	stop := func(p *plant) { p.ranks[1].process = model.ProcessTraced }
	die := func(p *plant) { p.die(5) }
	differ := func(p *plant) { p.ranks[5].bytes = 1 }
	for name, c := range map[string]struct {
		first, then func(p *plant)
		gap         time.Duration
		class       string
	}{
		"death, then a debugger":       {die, stop, time.Second, model.ClassProcessDead},
		"a debugger, then death":       {stop, die, 3 * time.Second, model.ClassProcessDead},
		"death long after a debugger":  {stop, die, 40 * time.Second, model.ClassProcessDead},
		"mismatch, then a debugger":    {differ, stop, time.Second, model.ClassMismatchSize},
		"a mismatch, while it is held": {stop, differ, 0, model.ClassMismatchSize},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 8, 100*time.Millisecond)
			p.run(30 * time.Second)
			c.first(p)
			p.run(c.gap)
			since := p.now
			c.then(p)
			p.run(60 * time.Second)
			found := p.ofClass(c.class)
			require.NotEmpty(t, found)
			assert.Equal(t, []int64{5}, found[0].Ranks)
			assert.Equal(t, model.SeverityError, found[0].Severity)
			assert.NotEmpty(t, p.ofClass(model.ClassProcessStopped))
			for i, f := range p.findings {
				if f.ID == found[0].ID {
					assert.Less(t, p.at[i].Sub(since), 20*time.Second)
					break
				}
			}
		})
	}
}

// Libraries end ranks that wait for minutes: such a death is an effect of the stopped process.
func TestStoppedProcess_DeathAfterMinutes_IsAnEffect(t *testing.T) {
	p := newPlant(t, 8, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[1].process = model.ProcessStopped
	p.run(3 * time.Minute)
	p.die(5)
	p.run(30 * time.Second)
	assert.Empty(t, p.ofClass(model.ClassProcessDead))
	assert.NotEmpty(t, p.ofClass(model.ClassProcessStopped))
}
