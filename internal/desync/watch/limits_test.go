// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// still is the state of a rank, which is in an operation or has not come to it.
func still(rank, at int64, in bool) *model.RankState {
	s := &model.RankState{
		Rank: model.Rank{JobID: "job", Incarnation: "life", Rank: rank, PID: model.Some(100 + rank)}, Time: at, Source: model.StateRankEvents,
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "c"}, Members: []int64{0, 1}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(6)), Completed: model.Some(int64(6))}},
		}},
	}
	if in {
		s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: 7, Created: at}}
	}
	return s
}

func TestEverythingIsBounded(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxJobs, cfg.MaxRanks, cfg.MaxComms, cfg.MaxWitnesses = 3, 5, 2, 4
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	for i := range int64(100) {
		now = now.Add(time.Second)
		s := still(i%10, now.UnixNano(), true)
		s.Rank.JobID = fmt.Sprint("job", i/10)
		w.AddState(s, now)
		w.AddOps(&model.RankOps{Rank: s.Rank, Ops: []model.Op{{
			Kind: model.KindCollective, Name: "x", End: now.UnixNano(), Comm: model.Comm{ID: fmt.Sprint(i)},
		}}}, now)
		w.AddFact(&model.Fact{Kind: fmt.Sprint(i)}, now)
		for k := range int64(2 * maxOpens) {
			w.AddOpen(&model.Rank{JobID: "opens"}, &model.OpenOp{Op: model.Op{Collective: model.Collective{Seq: model.Some(k)}}}, now)
			if i > 0 {
				break
			}
		}
	}
	assert.Len(t, w.jobs, 3)
	assert.Len(t, w.latest, 3)
	for _, j := range w.jobs {
		assert.LessOrEqual(t, len(j.ranks), 5)
	}
	st := w.Stats()
	assert.Equal(t, int64(8), st.JobsEvicted, "ten and one came")
	assert.Equal(t, int64(100), st.RanksRefused, "five of ten, with states and spans")
	assert.Equal(t, int64(96), st.WitnessesDropped)
	assert.Equal(t, int64(maxOpens), st.OpensDropped)
	w.Tick(now.Add(time.Hour))
	assert.Zero(t, w.witnesses.Len())
	w.Tick(now.Add(2 * time.Hour))
	assert.Empty(t, w.jobs)
}

func TestCommsAreBounded(t *testing.T) {
	cfg := NewDefaultConfig()
	cfg.MaxComms = 2
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	for i := range 5 {
		w.AddOps(&model.RankOps{Rank: model.Rank{JobID: "job"}, Ops: []model.Op{{
			Kind: model.KindCollective, Name: "x", End: 1, Comm: model.Comm{ID: fmt.Sprint(i)},
		}}}, now)
	}
	assert.Equal(t, int64(3), w.Stats().CommsRefused)
}

func TestOldStatesAndTwinsAreLeftOut(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	w.AddState(still(0, 1000, true), now)
	w.AddState(still(0, 999, false), now)
	assert.Equal(t, int64(1), w.Stats().StatesLate)
	twin := still(0, 2000, false)
	twin.Rank.PID = model.Some(int64(7))
	w.AddState(twin, now)
	assert.Equal(t, int64(1), w.Stats().StatesOfTwins)
	assert.Len(t, w.jobs[jobKey{"job", "life"}].ranks[0].states[model.StateRankEvents].state.Ops, 1)

	// Once nothing is heard of the first, the second is its successor.
	w.AddState(twin, now.Add(time.Minute))
	assert.Empty(t, w.jobs[jobKey{"job", "life"}].ranks[0].states[model.StateRankEvents].state.Ops)
	negative := still(-1, 0, true)
	w.AddState(negative, now)
	assert.Equal(t, int64(1), w.Stats().RanksRefused)
}

// A job that is started anew ends what hung in its life before; dumps, which do not know
// whose life they are of, are of the latest.
func TestLivesOfAJob(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	require.Len(t, p.w.Standing(), 1)
	for _, r := range p.ranks {
		*r = worker{bytes: 1, process: model.ProcessRunning, rank: r.rank}
		r.rank.Incarnation, r.rank.PID = "next", model.Some(r.rank.PID.V+5000)
	}
	p.run(10 * time.Second)
	assert.Empty(t, p.w.Standing())
	assert.Equal(t, model.StatusClosed, p.only().Status)
	p.w.AddState(p.dump(0, ""), p.now)
	assert.NotNil(t, p.w.jobs[jobKey{"job", "next"}].ranks[0].states[model.StateFlightRecorder])
	assert.Len(t, p.w.jobs, 2)
}

// Dumps that come first are of the life that is seen then.
func TestDumpsBeforeTheLifeIsKnown(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.w.AddState(p.dump(0, ""), p.now)
	p.run(5 * time.Second)
	require.Len(t, p.w.jobs, 1)
	j := p.w.jobs[jobKey{"job", "life"}]
	require.NotNil(t, j)
	assert.False(t, j.replaced)
}

// A rank of which nobody has ever heard may be in any phase: it has the start limit.
func TestUnheardRankHasTheStartLimit(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.ranks[3].mute = true
	p.run(30 * time.Second)
	since := p.now
	p.ranks[3].stuck = true
	p.run(9 * time.Minute)
	require.Empty(t, p.findings)
	p.run(2 * time.Minute)
	f := p.only()
	assert.Equal(t, []int64{3}, blamed(&f))
	assert.Greater(t, p.told(since), 10*time.Minute)
}

// A fact of the network makes what all have entered one of the network.
func TestFactOfTheNetwork(t *testing.T) {
	for name, tell := range map[string]func(p *plant){
		"a finding": func(p *plant) {
			p.w.AddFinding(&model.Finding{ID: "f", Kind: "fabric", Host: "nodea", Link: "mlx5_0", Start: p.now.UnixNano()}, "port mlx5_0 is down", p.now)
		},
		"a fact": func(p *plant) {
			p.w.AddFact(&model.Fact{Rank: p.ranks[1].rank, Kind: "nccl_async_error", Source: "nccl_ras", What: "remote error", Network: true, Time: p.now.UnixNano()}, p.now)
		},
		"nothing": func(*plant) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlant(t, 4, 100*time.Millisecond)
			p.run(30 * time.Second)
			p.cut = true
			tell(p)
			p.run(20 * time.Second)
			want := model.ClassNetwork
			if name == "nothing" {
				want = model.ClassStalledOp
			}
			f := p.only()
			assert.Equal(t, want, f.Class)
			assert.False(t, f.Rank.OK, "no rank is at fault")
		})
	}
}

// Dumps are judged when all have come, or the deadline has passed; a late one updates what
// was told.
func TestDumpsAreWaitedFor(t *testing.T) {
	cfg := NewDefaultConfig()
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	dump := func(rank int64, in bool) {
		s := still(rank, 0, in)
		s.Source, s.Rank.Incarnation, s.Rank.PID = model.StateFlightRecorder, "", model.Optional[int64]{}
		s.Comms[0].Members, s.Comms[0].Scope, s.Comms[0].Frontiers[0].Func = []int64{0, 1, 2, 3}, model.ScopeComm, ""
		w.AddState(s, now)
	}
	for rank := range int64(3) {
		dump(rank, true)
	}
	now = now.Add(cfg.DumpWait - time.Second)
	require.Empty(t, w.Tick(now))
	now = now.Add(time.Second)
	first := w.Tick(now)
	require.Len(t, first, 1)
	assert.Equal(t, []int64{3}, blamed(&first[0]))
	assert.Empty(t, w.Tick(now.Add(time.Second)), "said once")

	now = now.Add(updateEvery)
	dump(3, false)
	second := w.Tick(now)
	require.Len(t, second, 1, "now all have come")
	assert.Equal(t, first[0].ID, second[0].ID)
	assert.Equal(t, model.ClassNotScheduled, second[0].Class)
	assert.Equal(t, model.Some(int64(3)), second[0].Rank)
	assert.Equal(t, model.StatusUpdated, second[0].Status)

	closed := w.Tick(now.Add(cfg.Forget))
	require.Len(t, closed, 1)
	assert.Equal(t, model.StatusClosed, closed[0].Status)
}
