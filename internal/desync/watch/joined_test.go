// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// dump is what the Flight Recorder of a rank says of the plant's communicator: by another
// name, numbered over all functions, of a life that nothing but the job's id says.
func (p *plant) dump(rank int, stack string) *model.RankState {
	r := p.ranks[rank]
	s := &model.RankState{
		Rank:   model.Rank{JobID: "job", Incarnation: model.Incarnation(model.World{Launcher: []string{"job"}}), Rank: int64(rank)},
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

// Dumps of Gloo do not say who is in a group. lockstep_scope names groups as PyTorch does.
func TestDumpsOfGlooJoinByName(t *testing.T) {
	op := func(comm int, at int64) model.StateOp {
		return model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Comm: comm, Created: at}
	}
	live := model.RankState{
		Comms: []model.CommState{
			{Comm: model.Comm{ID: "0xa", Name: "0 default_pg gloo"}},
			{Comm: model.Comm{ID: "0xb", Name: "5 gradients gloo"}, Members: []int64{0, 1}},
			{Comm: model.Comm{ID: "0xc", Name: "6 twice gloo"}},
			{Comm: model.Comm{ID: "0xd", Name: "6 twice gloo"}},
		},
		Ops: []model.StateOp{op(1, 1000), op(2, 2000)},
	}
	dump := model.RankState{
		Comms: []model.CommState{
			{Comm: model.Comm{ID: "0", Name: "default_pg"}, Backend: "gloo"},
			{Comm: model.Comm{ID: "5", Name: "gradients"}, Backend: "gloo"},
			{Comm: model.Comm{ID: "6", Name: "twice"}, Backend: "gloo"},
		},
		Ops:    []model.StateOp{op(0, 1000), op(1, 1300), op(2, 2000)},
		Stacks: []string{"of another group", "of this", "of which of two?"},
	}
	for i := range dump.Ops {
		dump.Ops[i].Stack = i + 1
	}
	j := newJoiner()
	j.learn(&live, &dump)
	s := j.join(&live, &dump)
	assert.Equal(t, "gradients", s.Comms[1].Comm.Name)
	assert.Equal(t, []string{"of this"}, s.Stacks)
	assert.Equal(t, 1, s.Ops[0].Stack)
	assert.Zero(t, s.Ops[1].Stack)
	assert.Equal(t, "6 twice gloo", s.Comms[2].Comm.Name)
}
