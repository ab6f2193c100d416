// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"math/rand/v2"
	"slices"
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

// waiter is a rank of a random job: by communicator, how far it has come and in what it waits (0: in nothing).
type waiter struct {
	enqueued, waits [2]int64
	process         model.ProcessState
}

type waiters []waiter

func randomWaiters(r *rand.Rand) waiters {
	list := make(waiters, 7)
	for i := range list {
		p := &list[i]
		p.process = []model.ProcessState{model.ProcessRunning, model.ProcessRunning, model.ProcessFrozen, model.ProcessDead}[r.IntN(4)]
		for c := range p.enqueued {
			p.enqueued[c] = 1 + r.Int64N(4)
			if p.process == model.ProcessRunning && r.IntN(3) > 0 {
				p.waits[c] = 1 + r.Int64N(p.enqueued[c])
			}
		}
	}
	return list
}

var waitedComms = [2]string{"0xa", "0xb"}

func (l waiters) queue(now time.Time) (*queue, *job) {
	w := New(NewDefaultConfig())
	for i := range l {
		s := &model.RankState{
			Rank: model.Rank{JobID: "job", Rank: int64(i)}, Time: now.UnixNano(), Source: model.StateRankEvents, Process: l[i].process,
			LastEnqueue: now.Add(-time.Minute).UnixNano(),
		}
		for c, id := range waitedComms {
			s.Comms = append(s.Comms, model.CommState{
				Comm: model.Comm{ID: id}, Members: []int64{0, 1, 2, 3, 4, 5, 6}, Scope: model.ScopeCommFunc,
				Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(l[i].enqueued[c]), Completed: model.Some(int64(0))}},
			})
			if seq := l[i].waits[c]; seq > 0 {
				s.Ops = append(s.Ops, model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Comm: c, Seq: seq, Created: s.LastEnqueue})
			}
		}
		w.AddState(s, now)
	}
	j := w.inOrder()[0]
	return w.queueOf(j, now), j
}

// late are the ranks that have not entered an operation.
func (l waiters) late(c int, seq int64) map[int64]bool {
	list := map[int64]bool{}
	for i := range l {
		if l[i].process == model.ProcessDead || l[i].enqueued[c] < seq {
			list[int64(i)] = true
		}
	}
	return list
}

// behind are the ranks that wait for one: themselves, and through others.
func (l waiters) behind(of int64) (direct, all map[int64]bool, comms [2]bool) {
	direct, all = map[int64]bool{}, map[int64]bool{}
	each := func(do func(i int64, c int, late map[int64]bool)) {
		for i := range l {
			for c, seq := range l[i].waits {
				if seq > 0 && int64(i) != of {
					do(int64(i), c, l.late(c, seq))
				}
			}
		}
	}
	each(func(i int64, c int, late map[int64]bool) {
		if len(late) == 0 || late[of] {
			direct[i], all[i], comms[c] = true, true, true
		}
	})
	for range l {
		each(func(i int64, _ int, late map[int64]bool) {
			for other := range late {
				if all[other] {
					all[i] = true
				}
			}
		})
	}
	return direct, all, comms
}

// explains is what queue.explains must report of a root that names these ranks in a communicator.
func (l waiters) explains(of int64, c int, named []int64) bool {
	_, all, comms := l.behind(of)
	if slices.ContainsFunc(named, func(n int64) bool { return all[n] || n == of }) {
		return true
	}
	for i := range l {
		if l[i].waits[c] == 0 {
			continue
		}
		late := l.late(c, l[i].waits[c])
		lack := len(named) > 0 && !slices.ContainsFunc(named, func(n int64) bool { return !late[n] })
		if lack && !late[of] {
			return false
		}
	}
	return comms[c]
}

func TestQueue_RandomJobs_IsWhoWaitsByDefinition(t *testing.T) {
	now, explained, through := time.Unix(1_760_000_000, 0), 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // random jobs, not secrets
		l := randomWaiters(r)
		q, j := l.queue(now)
		c, named := r.IntN(2), []int64{r.Int64N(7), r.Int64N(7)}[:r.IntN(3)]
		a := q.accuse(&model.Finding{CommID: waitedComms[c], Ranks: named})
		for of := range int64(len(l)) {
			direct, all, _ := l.behind(of)
			waits, _ := q.waitersFor(j.ranks[of], now)
			require.Equal(t, slices.Sorted(maps.Keys(direct)), waits, "seed %d, rank %d: %+v", seed, of, l)
			require.Equal(t, all, q.through(q.behind(j.ranks[of])), "seed %d, rank %d: %+v", seed, of, l)
			want := l.explains(of, c, named)
			require.Equal(t, want, q.explains(j.ranks[of], a), "seed %d, rank %d, named %v in %d: %+v", seed, of, named, c, l)
			if through += len(all) - len(direct); want {
				explained++
			}
		}
	}
	require.Greater(t, explained, 100)
	require.Greater(t, through, 100)
}
