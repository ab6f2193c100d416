// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// tiny is two steps of data parallelism: per step, gradients, their norm, the norm of all,
// and the loss.
var tiny = Layout{Name: "tiny", TP: 1, DP: 2, PP: 1, EP: 1, Layers: 1, Micro: 1, Steps: 2, RunAhead: 8}

func whole(t *testing.T, l Layout, family string, rank int) *frwrite.Dump {
	t.Helper()
	j, err := Run(l, family, 1)
	require.NoError(t, err)
	return j.Dump(rank, View{At: j.Last() + int64(time.Minute), Timeout: 10 * time.Minute})
}

func TestDumpOfAHealthyJob(t *testing.T) {
	d := whole(t, tiny, Healthy, 1)
	var names []string
	var seqs, ids []int64
	for i, e := range d.Entries {
		names = append(names, e.Name)
		seqs = append(seqs, e.CollectiveSeq)
		ids = append(ids, e.PGID)
		assert.Equal(t, int64(i), e.RecordID)
		assert.Equal(t, frwrite.Completed, e.State)
		assert.True(t, e.Retired)
	}
	step := []string{"nccl:allreduce_coalesced", "nccl:all_reduce", "nccl:all_reduce", "nccl:reduce"}
	assert.Equal(t, append(step, step...), names)
	assert.Equal(t, []int64{1, 2, 1, 3, 4, 5, 2, 6}, seqs)
	// Rank 1 is in the world, its own tensor group and the data group, made in that order.
	assert.Equal(t, []int64{2, 2, 0, 2, 2, 2, 0, 2}, ids)
	assert.Equal(t, []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1}}, {Name: "3", Desc: "DATA_PARALLEL_GROUP", Ranks: []int64{0, 1}}}, d.Groups)
	assert.Equal(t, []frwrite.Status{{PGID: 0, Enqueued: 2, Started: -1, Completed: 2}, {PGID: 2, Enqueued: 6, Started: -1, Completed: 6}}, d.Status)
}

// Members of a coalesced group have no events, so that they stay scheduled for ever; the entry
// behind them carries their state, and is no message itself.
func TestCoalescedMessages(t *testing.T) {
	d := whole(t, Layouts[6], Healthy, 4) // of the second stage of batch4
	require.Equal(t, "batch4", Layouts[6].Name)
	ends, members := 0, 0
	for i, e := range d.Entries {
		if e.Desc != descs[pipeline] {
			continue
		}
		switch {
		case e.P2P:
			members++
			assert.Equal(t, frwrite.Scheduled, e.State)
			assert.False(t, e.Retired)
			assert.Contains(t, []string{"nccl:send 1->0", "nccl:send 1->2", "nccl:recv 1<-0", "nccl:recv 1<-2"}, e.Name)
		case e.Name == "nccl:coalesced":
			ends++
			assert.Equal(t, frwrite.Completed, e.State)
			assert.Equal(t, int64(ends), e.P2PSeq)
			assert.Equal(t, int64(0), e.CollectiveSeq)
			assert.Equal(t, e.P2PSeq, d.Entries[i-1].P2PSeq)
			assert.Equal(t, e.OpID, d.Entries[i-1].OpID)
		}
	}
	assert.Positive(t, ends)
	assert.Greater(t, members, ends)
}

// Gloo never leaves scheduled: retired is over. Messages are not recorded, and of its groups
// only the last one is left, without a name.
func TestGloo(t *testing.T) {
	d := whole(t, Layouts[10], Healthy, 0)
	require.Equal(t, "gloo8", Layouts[10].Name)
	for _, e := range d.Entries {
		assert.Equal(t, frwrite.Scheduled, e.State)
		assert.True(t, e.Retired)
		assert.Contains(t, e.Name, "gloo:")
	}
	require.Len(t, d.Groups, 1)
	assert.Empty(t, d.Groups[0].Name)
}

// A stopped device takes part in what its peers complete, and is never seen to complete it.
func TestStoppedDevice(t *testing.T) {
	j, err := Run(Layouts[1], DeviceStopped, 3)
	require.NoError(t, err)
	bad := j.Truth().Faults[0]
	at := j.Last() + int64(time.Minute)
	highest := func(rank int) (done, enqueued int64) {
		for _, e := range j.Dump(rank, View{At: at}).Entries {
			if e.Group == bad.Op.Group {
				enqueued = max(enqueued, e.CollectiveSeq)
				if e.State == frwrite.Completed {
					done = max(done, e.CollectiveSeq)
				}
			}
		}
		return done, enqueued
	}
	done, enqueued := highest(int(bad.Ranks[0]))
	assert.Equal(t, bad.Op.Seq-1, done)
	assert.GreaterOrEqual(t, enqueued, bad.Op.Seq)
	for r := range j.World() {
		if int64(r) != bad.Ranks[0] {
			theirs, _ := highest(r)
			assert.Greater(t, theirs, done, "rank %d", r)
		}
	}
}

func TestUnevenExchangesSumUp(t *testing.T) {
	sums := func(family string) (in, out int64) {
		j, err := Run(Layouts[7], family, 2)
		require.NoError(t, err)
		group, seq := "13", int64(1)
		if family == UnevenSplit {
			group, seq = j.Truth().Faults[0].Op.Group, j.Truth().Faults[0].Op.Seq
		}
		for r := range j.World() {
			for _, e := range j.Dump(r, View{At: math.MaxInt64 - 1}).Entries {
				if e.Group == group && e.CollectiveSeq == seq {
					in += e.In[0][0]
					out += e.Out[0][0]
				}
			}
		}
		return in, out
	}
	in, out := sums(Healthy)
	assert.Positive(t, in)
	assert.Equal(t, in, out)
	in, out = sums(UnevenSplit)
	assert.Equal(t, out+64, in)
}

func TestCollect(t *testing.T) {
	j, err := Run(Layouts[1], ProcessDead, 1)
	require.NoError(t, err)
	dead := j.Truth().Dead
	require.Len(t, dead, 1)
	e := Evidences["wrapped"]
	e.Missing = 0.5
	dumps, absent := j.Collect(e, 1)
	assert.Len(t, dumps, j.World()-len(absent))
	assert.Contains(t, absent, Absence{dead[0], "dead"})
	assert.GreaterOrEqual(t, len(absent), 4)
	again, _ := j.Collect(e, 1)
	assert.Equal(t, dumps, again)
	_, others := j.Collect(e, 2)
	assert.NotEqual(t, absent, others)
}

func TestLayoutsAreChecked(t *testing.T) {
	for _, l := range []Layout{{}, {TP: 1, DP: 3, PP: 1, EP: 2, Layers: 1, Micro: 1, Steps: 2, RunAhead: 1}, {TP: 1, DP: 2, PP: 1, EP: 1}} {
		_, err := Run(l, Healthy, 1)
		assert.ErrorContains(t, err, "check layout")
	}
	_, err := Run(tiny, "no such thing", 1)
	assert.ErrorContains(t, err, "want one of Families")
}
