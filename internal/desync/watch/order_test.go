// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A source that nobody knows is not believed in place of one that is, and takes no room.
func TestForeignSourcesAreRefused(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	w.AddState(still(0, 1000, true), now)
	for _, source := range []model.StateSource{"", "somebody", "another"} {
		s := still(0, 2000, false)
		s.Source = source
		w.AddState(s, now)
	}
	r := w.jobs[jobKey{"job", "life"}].ranks[0]
	assert.Len(t, r.states, 1)
	assert.Equal(t, int64(1000), r.live(now, &w.cfg).state.Time)
	assert.Equal(t, int64(3), w.Stats().StatesForeign)
}

// What is judged, and what is told, comes in one order whatever the order of maps.
func TestEverythingIsInOrder(t *testing.T) {
	const ranks = 40
	cfg := NewDefaultConfig()
	var absent []int64
	w := newWatch(cfg, func(ev *Evidence) *desync.Report {
		for _, a := range ev.Absences {
			absent = append(absent, a.Rank)
		}
		return &desync.Report{Roots: []desync.Root{{Finding: model.Finding{Class: model.ClassStalledOp}}}}
	})
	now := time.Unix(1_760_000_000, 0)
	for _, job := range []string{"c", "a", "e", "b", "d"} {
		for rank := range int64(ranks) {
			of := still(rank, now.UnixNano(), true)
			of.Rank.JobID, of.Source = job, model.StateFlightRecorder
			if rank == 0 {
				w.AddState(of, now)
			} else {
				w.AddAbsence(&of.Rank, model.Absence{Rank: rank, Reason: model.AbsentMissing}, now)
			}
		}
	}
	out := w.Tick(now.Add(cfg.DumpWait))
	require.Len(t, out, 5)
	var jobs []string
	for i := range out {
		jobs = append(jobs, out[i].JobID)
	}
	assert.Equal(t, []string{"a", "b", "c", "d", "e"}, jobs)
	for of := range slices.Chunk(absent, ranks-1) {
		assert.True(t, slices.IsSorted(of), "%v", of)
	}
}

// Any number of events between two looks make one state.
func TestOpenOperationsAreMadeAStateOnce(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	of := &model.Rank{JobID: "job", Incarnation: "life"}
	tell := func() {
		for seq := range int64(100) {
			w.AddOpen(of, openAt(seq, now), now)
		}
	}
	tell()
	r := w.jobs[jobKey{"job", "life"}].ranks[0]
	assert.Empty(t, r.states, "nobody has asked")
	w.Tick(now)
	assert.Len(t, r.states[model.StateRankEvents].state.Ops, 100)
	assert.Equal(t, 1, r.states[model.StateRankEvents].still)
	now = now.Add(time.Second)
	tell()
	w.Tick(now)
	assert.Equal(t, 2, r.states[model.StateRankEvents].still)

	// The rank's own state, which came meanwhile, says more.
	now = now.Add(time.Second)
	tell()
	own := still(0, now.UnixNano(), true)
	own.Rank = *of
	w.AddState(own, now)
	w.Tick(now)
	assert.Same(t, own, r.states[model.StateRankEvents].state)

	// A process that died is so at once: who starts in its place is no twin.
	other := &model.Rank{JobID: "job", Incarnation: "life", Rank: 1, PID: model.Some(int64(1))}
	dead := openAt(0, now)
	dead.ProcessDied = true
	w.AddOpen(other, dead, now)
	next := still(1, now.UnixNano()+1, false)
	w.AddState(next, now)
	assert.Zero(t, w.Stats().StatesOfTwins)
}

func openAt(seq int64, at time.Time) *model.OpenOp {
	return &model.OpenOp{
		Time: at.UnixNano(), Age: 1, Status: model.StatusOpen,
		Op: model.Op{Kind: model.KindCollective, Name: model.AllReduce, Comm: model.Comm{ID: "c"}, Collective: model.Collective{
			Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeCommFunc,
		}},
	}
}

// BenchmarkAddOpen takes the operations that a rank has in flight, one by one: "each" makes a
// state of them for each event, "look" once, as the watch does.
func BenchmarkAddOpen(b *testing.B) {
	for _, way := range []string{"each", "look"} {
		b.Run(way, func(b *testing.B) {
			w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
			of := &model.Rank{JobID: "job", Incarnation: "life"}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				for seq := range int64(maxOpens) {
					w.AddOpen(of, openAt(seq, now), now)
					if way == "each" {
						w.settleAllOpens(w.jobs[jobKey{"job", "life"}])
					}
				}
				w.settleAllOpens(w.jobs[jobKey{"job", "life"}])
			}
		})
	}
}
