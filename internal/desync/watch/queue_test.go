// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// firstOfClass is when the first finding of a class came, and that finding.
func (p *plant) firstOfClass(class string) (time.Time, *model.Finding) {
	for i := range p.findings {
		if p.findings[i].Class == class {
			return p.at[i], &p.findings[i]
		}
	}
	return time.Time{}, nil
}

// A process that is stopped in what the others wait in holds nobody up: the rank that never came is
// reported, as soon as it is without the stopped one.
func TestStoppedProcess_ThatHasEnteredIt_HoldsNobodyUp(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, stuck int
		held         []int
		how          model.ProcessState
		after        time.Duration
	}{
		"a signal at once":           {6, 3, []int{0}, model.ProcessStopped, 400 * time.Millisecond},
		"a debugger after 2 s":       {8, 2, []int{6}, model.ProcessTraced, 2 * time.Second},
		"a cgroup before it is told": {4, 0, []int{3}, model.ProcessFrozen, 1500 * time.Millisecond},
		"two that are stopped":       {8, 7, []int{0, 4}, model.ProcessTraced, time.Second},
		"after it was told":          {8, 4, []int{1}, model.ProcessTraced, time.Minute},
		"all others but one":         {6, 1, []int{0, 2, 3, 4}, model.ProcessStopped, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(held ...int) *plant {
				p := newPlant(t, c.ranks, 100*time.Millisecond)
				p.run(30 * time.Second)
				p.ranks[c.stuck].stuck = true
				p.run(c.after)
				for _, of := range held {
					p.ranks[of].process = c.how
				}
				p.run(2 * time.Minute)
				return p
			}
			without, _ := run().firstOfClass(model.ClassNotScheduled)
			p := run(c.held...)
			at, f := p.firstOfClass(model.ClassNotScheduled)
			require.NotNil(t, f)
			assert.Equal(t, []int64{int64(c.stuck)}, f.Ranks)
			assert.Equal(t, model.SeverityError, f.Severity)
			assert.WithinDuration(t, without, at, time.Second)
			stopped := p.ofClass(model.ClassProcessStopped)
			require.NotEmpty(t, stopped)
			for i := range stopped {
				assert.Equal(t, model.SeverityInfo, stopped[i].Severity)
				assert.Empty(t, stopped[i].Waiting)
			}
		})
	}
}

// Who waits for a dead rank does not wait for a process that is stopped in the same operation.
func TestStoppedProcess_BesideADeadRank_HasNoWaiters(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 300 * time.Millisecond, "within seconds": 2 * time.Second, "later": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 6, 100*time.Millisecond)
			p.run(30 * time.Second)
			p.die(4)
			p.run(after)
			p.ranks[2].process = model.ProcessTraced
			p.run(time.Minute)
			require.NotEmpty(t, p.ofClass(model.ClassProcessDead))
			stopped := p.ofClass(model.ClassProcessStopped)
			require.NotEmpty(t, stopped)
			for i := range stopped {
				assert.Equal(t, model.SeverityInfo, stopped[i].Severity)
			}
			assert.Empty(t, stopped[len(stopped)-1].Waiting)
		})
	}
}

// One that is stopped before it enters what another does not come to either is what is reported: that
// one may come when it goes on.
func TestStoppedProcess_ThatHasNotEnteredIt_HoldsThemUp(t *testing.T) {
	p := newPlant(t, 6, 100*time.Millisecond)
	p.run(30 * time.Second)
	for p.ranks[1].inOp {
		p.run(tickEvery)
	}
	p.ranks[5].stuck = true
	p.ranks[1].process = model.ProcessStopped
	p.run(time.Minute)
	assert.Empty(t, p.ofClass(model.ClassNotScheduled))
	stopped := p.ofClass(model.ClassProcessStopped)
	require.NotEmpty(t, stopped)
	last := stopped[len(stopped)-1]
	assert.Equal(t, model.SeverityError, last.Severity)
	assert.Equal(t, []int64{0, 2, 3, 4}, last.Waiting)
}
