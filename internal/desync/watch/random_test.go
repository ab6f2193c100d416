// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Whatever comes, nothing crashes or grows without bound, and each finding is new once, is
// numbered upwards, and closes only where it is open.
func TestRandomInput(t *testing.T) {
	for seed := range uint64(tier.N(t, 8, 40)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		cfg := NewDefaultConfig()
		cfg.MinGaps, cfg.MaxJobs, cfg.MaxRanks, cfg.Forget = 1, 2, 6, 30*time.Second
		w, now := New(cfg), time.Unix(1_760_000_000, 0)
		revisions, closed := map[string]int64{}, map[string]bool{}
		told := 0
		for range 3000 {
			now = now.Add(time.Duration(rng.IntN(900)) * time.Millisecond)
			feedRandom(rng, w, now)
			for _, f := range w.Tick(now) {
				told++
				require.False(t, closed[f.ID] && f.Status == model.StatusClosed, "seed %d: %s", seed, f.ID)
				require.Equal(t, revisions[f.ID]+1, f.Revision, "seed %d", seed)
				require.Equal(t, f.Revision == 1, f.Status == model.StatusOpen, "seed %d", seed)
				require.LessOrEqual(t, f.Start, f.Time)
				revisions[f.ID], closed[f.ID] = f.Revision, f.Status == model.StatusClosed
			}
		}
		w.Flush(now)
		open := 0
		for id := range revisions {
			if !closed[id] {
				open++
			}
		}
		assert.GreaterOrEqual(t, len(w.Standing()), open-cfg.MaxJobs*maxEpisodes)
		assert.Positive(t, told, "seed %d is no test: nothing was told", seed)
	}
}

func feedRandom(rng *rand.Rand, w *Watch, now time.Time) {
	of := model.Rank{JobID: []string{"a", "b", "c", ""}[min(rng.IntN(40), 3)%4], Incarnation: []string{"", "1", "1", "1", "2"}[rng.IntN(5)], Rank: int64(rng.IntN(8)) - 1}
	if rng.IntN(10) > 0 {
		of = model.Rank{JobID: "a", Incarnation: "1", Rank: int64(rng.IntN(4))}
	}
	at := now.UnixNano() - int64(rng.IntN(3))*int64(time.Second)
	if rng.IntN(100) == 0 {
		at = []int64{0, -1, math.MaxInt64, math.MinInt64}[rng.IntN(4)]
	}
	switch rng.IntN(20) {
	case 0:
		w.AddAbsence(&of, model.Absence{Rank: of.Rank, Reason: model.AbsentDead}, now)
	case 1, 2:
		w.AddOpen(&of, &model.OpenOp{Time: at, Age: rng.Float64() * 50, Status: model.StatusOpen, ProcessDied: rng.IntN(9) == 0, Op: model.Op{
			Kind: model.KindCollective, Comm: model.Comm{ID: "c"}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(rng.IntN(5))), SeqScope: model.ScopeCommFunc},
		}}, now)
	case 3:
		w.AddOps(&model.RankOps{Rank: of, Ops: []model.Op{{
			Kind: model.KindCollective, End: at, Comm: model.Comm{ID: "c"}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(int64(rng.IntN(5)))},
		}, {Kind: model.KindScope, Name: "compile", Start: at - 5e9, End: at}}}, now)
	default:
		w.AddState(randomState(rng, of, at), now)
	}
}

func randomState(rng *rand.Rand, of model.Rank, at int64) *model.RankState {
	s := &model.RankState{
		Rank: of, Time: at, LastEnqueue: at - int64(rng.IntN(20))*int64(time.Second),
		Source:  []model.StateSource{model.StateRankEvents, model.StateRankEvents, model.StateRankEvents, model.StateFlightRecorder, model.StateRAS}[rng.IntN(5)],
		Process: []model.ProcessState{"", "", "", "", "", "", model.ProcessRunning, model.ProcessStopped, model.ProcessDead, model.ProcessEnded}[rng.IntN(10)],
		Stacks:  []string{"a"},
	}
	for range rng.IntN(3) {
		s.Comms = append(s.Comms, model.CommState{
			Comm: model.Comm{ID: []string{"c", "d"}[rng.IntN(2)]}, Members: []int64{0, 1, 2, 3}, Scope: model.ScopeCommFunc,
			Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(int64(2)), Completed: model.Some(int64(2))}},
		})
	}
	for range rng.IntN(3) {
		s.Ops = append(s.Ops, model.StateOp{
			Kind: model.KindCollective, Name: model.AllReduce, Comm: rng.IntN(4) - 1, Seq: 3, Stack: rng.IntN(4) - 1, Created: s.LastEnqueue,
		})
	}
	return s
}
