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

// restart gives the plant a new watch, which knows what the one before kept, and forgets the findings
// that were seen.
func (p *plant) restart() {
	p.t.Helper()
	data, err := p.w.Snapshot()
	require.NoError(p.t, err)
	p.w = New(p.w.cfg)
	require.NoError(p.t, p.w.Restore(data, p.now))
	p.findings, p.at = nil, nil
}

func TestRestart_HangGoesOn_StaysOpenUnderItsID(t *testing.T) {
	for name, begin := range map[string]func(*plant){
		"a host that hangs":         func(p *plant) { p.ranks[2].stuck = true },
		"a process that is stopped": func(p *plant) { p.ranks[2].process = model.ProcessStopped },
		"a rank that has less":      func(p *plant) { p.ranks[2].bytes = 1 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			begin(p)
			p.run(20 * time.Second)
			open := p.only()
			p.restart()
			p.run(12 * time.Minute)
			for _, f := range p.findings {
				assert.Equal(t, []any{open.ID, model.StatusUpdated}, []any{f.ID, f.Status})
				assert.Greater(t, f.Revision, open.Revision)
			}
			require.Len(t, p.w.Standing(), 1)
			assert.Equal(t, open.ID, p.w.Standing()[0].ID)

			p.findings = nil
			p.ranks[2].stuck, p.ranks[2].process, p.ranks[2].bytes = false, model.ProcessRunning, 1<<20
			p.run(10 * time.Second)
			assert.Equal(t, []string{open.ID, model.StatusClosed}, []string{p.only().ID, p.only().Status})
			assert.Empty(t, p.w.Standing())
		})
	}
}

func TestRestart_HangEndedMeanwhile_IsClosed(t *testing.T) {
	for name, begin := range map[string]func(*plant){
		"a host that hung":           func(p *plant) { p.ranks[2].stuck = true },
		"a process that was stopped": func(p *plant) { p.ranks[2].process = model.ProcessStopped },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			begin(p)
			p.run(20 * time.Second)
			open := p.only()
			p.restart()
			p.ranks[2].stuck, p.ranks[2].process = false, model.ProcessRunning
			p.run(40 * time.Second)
			assert.Equal(t, []string{open.ID, model.StatusClosed}, []string{p.only().ID, p.only().Status})
			if held, ok := evidence.As[evidence.Held](p.only().Evidence); ok && held.Process != "" {
				assert.Greater(t, held.Seconds, 15.0, "in all")
			}
		})
	}
}

func TestRestart_JobIsGone_IsClosedAfterForget(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	p.restart()
	p.ranks = nil
	p.run(p.w.cfg.Forget - time.Second)
	assert.Len(t, p.w.Standing(), 1)
	p.run(2 * time.Second)
	assert.Equal(t, model.StatusClosed, p.only().Status)
}

// A job that makes room for others may still hang.
func TestEvictedJob_ItsHang_IsNotReportedAsClosed(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.w.cfg.MaxJobs = 1
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	open := p.only()
	p.findings = nil
	p.w.AddState(&model.RankState{Source: model.StateRankEvents, Rank: model.Rank{JobID: "other", Incarnation: "o"}, Time: p.now.UnixNano()}, p.now)
	for _, f := range p.w.Tick(p.now) {
		assert.NotEqual(t, open.ID, f.ID)
	}
	assert.Empty(t, p.w.Standing())
}

// Watches that look at different times, and one whose clock is a day ahead of the data, name a hang alike.
func TestHang_SameData_SameID(t *testing.T) {
	ids := map[string]string{}
	for name, change := range map[string]func(*plant){
		"at once":     func(*plant) {},
		"looks later": func(p *plant) { p.phase = 230 * time.Millisecond },
		"a day later": func(p *plant) {
			for _, r := range p.ranks {
				r.clock = -24 * time.Hour
			}
		},
	} {
		p := newPlant(t, 4, 100*time.Millisecond)
		change(p)
		p.run(30 * time.Second)
		p.ranks[2].stuck = true
		p.run(20 * time.Second)
		ids[p.only().ID] = name
	}
	assert.Len(t, ids, 1, "%v", ids)
}

// A job that another watch gets leaves no finding here, and is watched anew when it comes back.
func TestForget_JobThatHangs_ReportsNothingMore(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	open := p.only()
	p.findings = nil
	p.w.Forget([]string{"other"})
	require.Len(t, p.w.Standing(), 1)
	p.w.Forget([]string{open.JobID})
	assert.Empty(t, p.w.Standing())
	assert.Empty(t, p.w.Flush(p.now))
	assert.Zero(t, p.w.Bytes())
	assert.Zero(t, p.w.Stats().JobsEvicted, "it is no loss")
}
