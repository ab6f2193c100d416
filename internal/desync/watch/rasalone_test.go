// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// Where nothing but RAS is asked, two answers in which nothing moves name the rank that lags behind and
// what it has not launched, after the start limit: no gaps are known.
func TestRASAlone(t *testing.T) {
	cfg := NewDefaultConfig()
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	answer := func(seq, lag int64) {
		for rank := range int64(4) {
			s := still(rank, now.UnixNano(), false)
			s.Rank.WorldSize = model.Some(int64(4))
			s.Source, s.Comms[0].Members = model.StateRAS, []int64{0, 1, 2, 3}
			n := seq
			if rank == 2 {
				n -= lag
			}
			s.Comms[0].Frontiers[0] = model.Frontier{Func: model.AllReduce, Enqueued: model.Some(n)}
			w.AddState(s, now)
		}
	}
	var told []model.Finding
	run := func(lag int64, moving bool, of time.Duration) {
		seq := int64(17)
		for end := now.Add(of); now.Before(end); now = now.Add(10 * time.Second) {
			if moving {
				seq++
			}
			answer(seq, lag)
			told = append(told, w.Tick(now)...)
		}
	}
	run(1, true, 20*time.Minute)
	require.Empty(t, told, "counts lag in a job that runs, too")
	run(1, false, cfg.StartLimit-time.Minute)
	require.Empty(t, told)
	run(1, false, 3*time.Minute)
	require.Len(t, told, 1)
	assert.Equal(t, model.ClassNotScheduled, told[0].Class)
	assert.Equal(t, model.Some(int64(2)), told[0].Rank)
	assert.Contains(t, told[0].Op, "AllReduce ")
	assert.Contains(t, evidence.Encode(told[0].Evidence), "AllReduce: 3 ranks launched ")
}

// Without a world communicator the numbers are of processes: the finding names the process, and
// closes when it goes on.
func TestRASAlone_WithoutAWorld_NamesTheProcess(t *testing.T) {
	cfg := NewDefaultConfig()
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	var told []model.Finding
	run := func(of time.Duration, seq func(rank, comm int64) int64) {
		for end := now.Add(of); now.Before(end); now = now.Add(10 * time.Second) {
			for rank := range int64(4) {
				s := still(rank, now.UnixNano(), false)
				s.Source, s.Rank.HostName = model.StateRAS, "10.0.0.1"
				s.Name = fmt.Sprintf("RAS at n1:28028: process %d on 10.0.0.1, GPU %d", 100+rank, rank)
				s.Comms = nil
				for comm, members := range [][]int64{{0, 1}, {2, 3}, {0, 2}, {1, 3}} {
					at := slices.Index(members, rank)
					if at < 0 {
						continue
					}
					s.Comms = append(s.Comms, model.CommState{
						Comm: model.Comm{ID: fmt.Sprint("0x", comm), Rank: model.Some(int64(at))}, Members: members, Scope: model.ScopeCommFunc,
						Frontiers: []model.Frontier{{Func: "all_gather", Enqueued: model.Some(seq(rank, int64(comm)))}},
					})
				}
				w.AddState(s, now)
			}
			told = append(told, w.Tick(now)...)
		}
	}
	n := int64(0)
	run(time.Minute, func(int64, int64) int64 { n++; return n })
	require.Empty(t, told, "it moves")
	n += 100
	run(cfg.StartLimit+time.Minute, func(rank, comm int64) int64 {
		if rank == 3 && comm == 1 {
			return n - 1
		}
		return n
	})
	require.Len(t, told, 1)
	f := told[0]
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, "0x1", f.CommID)
	assert.Equal(t, "10.0.0.1", f.Host)
	assert.Contains(t, evidence.Encode(f.Evidence), "rank 1 of it: process 103 on 10.0.0.1, GPU 3")
	assert.False(t, f.Rank.OK, "no rank of the job is known")
	assert.Empty(t, f.Ranks)
	assert.Empty(t, f.Waiting)
	run(time.Minute, func(int64, int64) int64 { n++; return n + 50 })
	require.Len(t, told, 2)
	assert.Equal(t, model.StatusClosed, told[1].Status)
	assert.Empty(t, told[1].Ranks)
}
