// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Where nothing but RAS is asked, two answers in which nothing moves name the rank that lags behind and
// what it has not launched, after the start limit: no gaps are known.
func TestRASAlone(t *testing.T) {
	cfg := NewDefaultConfig()
	w, now := New(cfg), time.Unix(1_760_000_000, 0)
	answer := func(seq, lag int64) {
		for rank := range int64(4) {
			s := still(rank, now.UnixNano(), false)
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
	assert.Contains(t, told[0].Evidence, "AllReduce: 3 ranks launched ")
}
