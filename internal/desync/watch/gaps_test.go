// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

func TestLimit(t *testing.T) {
	cfg := NewDefaultConfig()
	var few, quick, slow stats.LogLinear
	for i := range 1000 {
		if i < cfg.MinGaps-1 {
			few.Add(uint64(time.Second))
		}
		quick.Add(uint64(10 * time.Millisecond))
		slow.Add(uint64(time.Second))
	}
	assert.Equal(t, 10*time.Minute, cfg.limit(nil), "a phase never seen")
	assert.Equal(t, 10*time.Minute, cfg.limit(&few))
	assert.Equal(t, 2*time.Second, cfg.limit(&quick), "ten times 10 ms are less than the floor")
	assert.InEpsilon(t, 10, cfg.limit(&slow).Seconds(), 0.07)
}

// A checkpoint of rank 0, in which the others wait, is told by a scope that may come after
// their gaps.
func TestLongGapsWaitForTheirPhase(t *testing.T) {
	var r rhythm
	now := time.Unix(1000, 0)
	s := int64(time.Second)
	r.gap(0, s/10, time.Second/2, now)
	assert.Equal(t, 1, r.phases[model.PhaseTrain].Len(), "a short one is of training at once")
	r.gap(s, 21*s, time.Second/2, now)
	r.gap(30*s, 33*s, time.Second/2, now)
	r.stretch(stretch{2 * s, 20 * s, model.PhaseCheckpoint})
	r.settle(now.Add(fileAfter - 1))
	assert.Len(t, r.pending, 2)
	r.settle(now.Add(fileAfter))
	assert.Empty(t, r.pending)
	assert.Equal(t, 1, r.phases[model.PhaseCheckpoint].Len())
	assert.Equal(t, 2, r.phases[model.PhaseTrain].Len(), "nothing tells of the other")
}

func TestHalfOfAGapMustBeOfThePhase(t *testing.T) {
	var r rhythm
	r.stretch(stretch{0, 9, model.PhaseEval})
	assert.Equal(t, model.PhaseTrain, r.phaseOf(0, 20))
	assert.Equal(t, model.PhaseEval, r.phaseOf(0, 18))
}

func TestRhythmIsBounded(t *testing.T) {
	var r rhythm
	for i := range int64(2 * maxPending) {
		r.gap(i*10, i*10+9, 1, time.Unix(0, 0))
		r.stretch(stretch{i * 10, i*10 + 5, model.PhaseEval})
	}
	assert.Len(t, r.pending, maxPending)
	assert.Equal(t, int64(maxPending), r.hurried)
	assert.Len(t, r.stretches, maxStretches)
}

// Of two operations at once the later may end first: both ends count, whichever was told first.
func TestGapsOfOperationsAtOnce(t *testing.T) {
	const ms = int64(time.Millisecond)
	now := time.Unix(1_760_000_000, 0)
	w := New(NewDefaultConfig())
	of := model.Rank{JobID: "job"}
	for step := range int64(100) {
		at := now.UnixNano() + step*10*ms
		op := func(start, end int64) model.Op {
			return model.Op{Kind: model.KindCollective, Name: model.AllReduce, Start: at + start*ms, End: at + end*ms, Comm: model.Comm{ID: "c"}}
		}
		w.AddOps(&model.RankOps{Rank: of, Ops: []model.Op{op(0, 5), op(1, 3)}}, now)
	}
	require.Len(t, w.jobs, 1)
	for _, j := range w.jobs {
		assert.Equal(t, 199, j.rhythm.phases[model.PhaseTrain].Len())
	}
}
