// SPDX-License-Identifier: Apache-2.0

package statetest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRead(t *testing.T) {
	c := statetest.Read(t, `
		world 4
		group W 0-2
		group P 0,2 shared
		# a remark
		rank 0-1 {t=10 host=a}: W ar 41 done; W ag 42 n=8 at=7; W ar 43
		rank 2 {dead}: P send>0 batch=3; W=40/39/12
		absent 3 late the deadline passed
	`)
	assert.Equal(t, model.Some(int64(4)), c.WorldSize)
	assert.Equal(t, []model.Absence{{Rank: 3, Reason: model.AbsentLate, Detail: "the deadline passed"}}, c.Absent)
	require.Len(t, c.States, 3)

	s := c.States[1]
	assert.Equal(t, int64(1), s.Rank.Rank)
	assert.Equal(t, "a", s.Rank.HostName)
	assert.Equal(t, statetest.Epoch+10e9, s.Time)
	assert.Equal(t, statetest.Epoch+7e9, s.LastEnqueue)
	require.Len(t, s.Comms, 1, "rank 1 is not in P")
	assert.Equal(t, []int64{0, 1, 2}, s.Comms[0].Members)
	assert.Equal(t, []model.Frontier{{Enqueued: model.Some(int64(43)), Completed: model.Some(int64(41))}}, s.Comms[0].Frontiers)
	require.Len(t, s.Ops, 3)
	assert.Equal(t, model.AllGather, s.Ops[1].Name)
	assert.Equal(t, model.Some(int64(24)), s.Ops[1].OutElems)
	assert.False(t, s.Ops[1].Done)

	s = c.States[2]
	assert.Equal(t, model.ProcessDead, s.Process)
	require.Len(t, s.Comms, 2)
	assert.Equal(t, "W", s.Comms[1].Comm.ID)
	assert.Equal(t, model.Some(int64(12)), s.Comms[1].Frontiers[0].FirstKept)
	assert.True(t, s.Comms[0].P2PShared)
	assert.Equal(t, model.KindSend, s.Ops[0].Kind)
	assert.Equal(t, model.Some(int64(0)), s.Ops[0].Peer)
}
