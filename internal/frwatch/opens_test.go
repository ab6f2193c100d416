// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// opened is a state of three operations on one communicator, enqueued at 1, 2 and 3 s.
func opened() *model.RankState {
	s := stateOf(0, 1)
	s.Rank.JobID = "j"
	s.Comms[0].Frontiers = []model.Frontier{{Enqueued: model.Some(int64(9)), Completed: model.Some(int64(6))}}
	s.Ops = nil
	for i := range int64(3) {
		s.Ops = append(s.Ops, model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Seq: 7 + i, Created: (i + 1) * 1e9, Stack: int(i)})
	}
	s.Ops = append(s.Ops, model.StateOp{Kind: model.KindCollective, Name: model.AllReduce, Seq: 6, Created: 5e8, Done: true}, model.StateOp{Seq: 10})
	s.Stacks = []string{"in step"}
	return s
}

func TestOpenOperations(t *testing.T) {
	open, omitted := Open(opened(), 5e9, 3*time.Second, 10)
	require.Len(t, open, 2, "the third is 2 s old, and of the last nobody knows")
	assert.Zero(t, omitted)
	first := open[0]
	assert.InDelta(t, 4, first.Age, 1e-9)
	assert.Equal(t, int64(7), first.Op.Collective.Seq.V)
	assert.Equal(t, []int64{3, 4}, []int64{first.Behind, first.InFlight})
	assert.Equal(t, []int64{9, 6}, []int64{first.Enqueued.V, first.Completed.V})
	assert.Equal(t, "scheduled", first.Op.Collective.State)
	assert.Equal(t, "in step", open[1].Op.Stack)

	open, omitted = Open(opened(), 5e9, 0, 1)
	assert.Equal(t, int64(7), open[0].Op.Collective.Seq.V, "the oldest")
	assert.EqualValues(t, 2, omitted)
}

func TestOpenOperationsAreToldOfNowAndThen(t *testing.T) {
	var o Opens
	tell := func(now float64, s *model.RankState) (out []string) {
		open, _ := Open(s, int64(100e9), time.Second, 10)
		for _, op := range o.Tell(at(now), s, open) {
			out = append(out, op.Status)
		}
		return out
	}
	s := opened()
	assert.Equal(t, []string{"open", "open", "open"}, tell(0, s))
	assert.Empty(t, tell(1, s))
	other := opened()
	other.Rank.Rank = 1
	assert.Len(t, tell(1, other), 3, "of another rank")
	assert.Equal(t, []string{"updated", "updated", "updated"}, tell(30, s))
	s.Ops[0].Done = true
	assert.Equal(t, []string{"closed"}, tell(31, s))
	assert.Empty(t, tell(32, s), "told once")
	s.Ops[1].Done, s.Ops[1].Created = true, 77
	assert.Empty(t, tell(33, s), "another process's of the same number")
}

func TestToldOperationsAreBounded(t *testing.T) {
	var o Opens
	for i := range int64(maxTold + 10) {
		o.Tell(at(0), &model.RankState{}, []model.OpenOp{{Op: model.Op{Collective: model.Collective{Seq: model.Some(i)}}}})
	}
	assert.Equal(t, maxTold, o.told.Len())
	assert.EqualValues(t, 10, o.Forgotten)
}

func TestOpens_TooManyOperations_ThoseToldOfLongestAgoAreForgotten(t *testing.T) {
	var o Opens
	tell := func(now float64, seq int64) []model.OpenOp {
		return o.Tell(at(now), &model.RankState{}, []model.OpenOp{{Op: model.Op{Collective: model.Collective{Seq: model.Some(seq)}}, Status: model.StatusOpen}})
	}
	for i := range int64(maxTold) {
		tell(0, i)
	}
	tell(30, 0)
	tell(31, maxTold)
	assert.Empty(t, tell(32, 0), "it was told of a moment ago")
	assert.Empty(t, tell(29, 2))
	again := tell(29, 1)
	require.Len(t, again, 1)
	assert.Equal(t, model.StatusOpen, again[0].Status, "it was forgotten")
}

func TestWhatWasRefusedIsToldOfAgain(t *testing.T) {
	var o Opens
	tell := func(now float64, s *model.RankState, refused bool) (out []string) {
		open, _ := Open(s, int64(100e9), time.Second, 10)
		told := o.Tell(at(now), s, open)
		for _, op := range told {
			out = append(out, op.Status)
		}
		if refused {
			o.Refused(s, told)
		}
		return out
	}
	s := opened()
	assert.Equal(t, []string{"open", "open", "open"}, tell(0, s, true))
	assert.Equal(t, []string{"open", "open", "open"}, tell(1, s, false))
	assert.Equal(t, []string{"updated", "updated", "updated"}, tell(31, s, true))
	assert.Equal(t, []string{"updated", "updated", "updated"}, tell(32, s, false))
	s.Ops[0].Done = true
	assert.Equal(t, []string{"closed"}, tell(33, s, true))
	assert.Equal(t, []string{"closed"}, tell(34, s, false))
	assert.Empty(t, tell(35, s, false))
}
