package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// dump is what the Flight Recorder of a rank says of the plant's communicator: by another
// name, numbered over all functions, of no job's life.
func (p *plant) dump(rank int, stack string) *model.RankState {
	r := p.ranks[rank]
	s := &model.RankState{
		Rank:   model.Rank{JobID: "job", Rank: int64(rank)},
		Source: model.StateFlightRecorder, Name: "trace", OnlyActive: true, LastEnqueue: r.enqueued.UnixNano(), Stacks: []string{stack},
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "0", Name: "default_pg"}, Backend: "nccl", Scope: model.ScopeComm,
			Frontiers: []model.Frontier{{Enqueued: model.Some(r.seq + 5000), Completed: model.Some(r.seq + 4999)}},
		}},
		Ops: []model.StateOp{{
			Kind: model.KindCollective, Name: model.AllReduce, Recorded: "nccl:all_reduce", Seq: r.seq + 5000,
			Created: r.enqueued.UnixNano(), Stack: 1, In: "[[512]]", Out: "[[512]]",
		}},
	}
	for i := range p.ranks {
		s.Comms[0].Members = append(s.Comms[0].Members, int64(i))
	}
	return s
}

// The rank that hangs has left no dump, as one that holds Python's lock. Its ring says how
// far it is, the dumps of the others in which line of the program they wait: the communicator
// is one, by its members, whatever each source calls it.
func TestDumpsJoinLiveEvents(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(20 * time.Second)
	live := p.only()
	require.Equal(t, model.ClassNotScheduled, live.Class)
	require.Empty(t, live.Stack, "a ring has no stacks")

	for _, rank := range []int{0, 1, 3} {
		p.w.AddState(p.dump(rank, "train.py:117 backward"), p.now)
	}
	p.run(20 * time.Second)
	f := p.only()
	assert.Equal(t, live.ID, f.ID, "it is the same hang")
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, model.Some(int64(3)), f.WaitingCount)
	assert.Equal(t, "train.py:117 backward", f.Stack)
	assert.Greater(t, f.Revision, live.Revision)
	assert.Equal(t, "life", f.Incarnation)
}
