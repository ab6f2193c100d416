// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

// namesOf returns the names of the operations by rank.
func namesOf(trace Trace) (names [][]string) {
	for _, ops := range trace.Ops {
		var of []string
		for i := range ops {
			of = append(of, ops[i].Name)
		}
		names = append(names, of)
	}
	return names
}

func TestHolder_Take_ReturnsWhatExplainsTheStep(t *testing.T) {
	holder := NewHolder(2000, 1000, stragglertest.Now)
	reports, findings := stragglertest.SlowRank2(t, holder.Keep)
	trace := holder.Take(reports[5], findings)
	others := []string{"all_reduce", "step"}
	assert.Equal(t, [][]string{others, others, {"all_reduce", "step", "gemm"}, others}, namesOf(trace), "only the late rank's kernel explains")
	assert.Equal(t, int64(3), trace.Omitted, "the kernels of ranks 0, 1 and 3")
	assert.Equal(t, int64(2000), trace.Limit)
}

func TestHolder_OperationsKeptTwice_AreTakenOnce(t *testing.T) {
	holder := NewHolder(2000, 1000, stragglertest.Now)
	reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) { holder.Keep(r, ops); holder.Keep(r, ops) })
	taken := 0
	for _, of := range namesOf(holder.Take(reports[5], findings)) {
		taken += len(of)
	}
	assert.Equal(t, 9, taken)
}

// An operation that found no room is missing from the trace and counted as left out.
func TestHolder_Full_CountsWhatIsLeftOut(t *testing.T) {
	holder := NewHolder(2000, 2, stragglertest.Now)
	reports, _ := stragglertest.SlowRank2(t, holder.Keep)
	assert.Equal(t, int64(6*4*3-2), holder.Dropped())
	trace := holder.Take(reports[5], nil)
	assert.Equal(t, [][]string{{"step"}, {"step"}, {"step"}, {"step"}}, namesOf(trace), "the steps are known from the report")
	assert.Equal(t, int64(8), trace.Omitted)
}

func TestHolder_Take_Forgets(t *testing.T) {
	holder := NewHolder(2000, 1000, stragglertest.Now)
	reports, _ := stragglertest.SlowRank2(t, holder.Keep)
	require.Equal(t, 6*4*3, holder.Held())
	for _, rep := range reports {
		holder.Take(rep, nil)
	}
	assert.Zero(t, holder.Held())
	assert.Zero(t, holder.steps.Len())
}

func TestHolder_Prune_DropsStepsThatAreNeverReported(t *testing.T) {
	at := stragglertest.Start
	holder := NewHolder(2000, 1000, func() time.Time { return at })
	rank := stragglertest.Rank(0)
	holder.Keep(&rank, stragglertest.Ops(1, 10))
	at = stragglertest.Start.Add(time.Minute)
	holder.Keep(&rank, stragglertest.Ops(2, 10))
	holder.Prune(stragglertest.Start.Add(time.Second))
	assert.Equal(t, 1, holder.steps.Len())
	assert.Equal(t, int64(3), holder.Dropped())
	assert.Equal(t, 3, holder.Held())
}

// A step of which something comes again and again is open for longer than its deadline.
func TestHolder_Prune_KeepsStepsThatLastLong(t *testing.T) {
	at := stragglertest.Start
	holder := NewHolder(2000, 1000, func() time.Time { return at })
	for r := range int64(2) {
		rank := stragglertest.Rank(r)
		holder.Keep(&rank, stragglertest.Ops(1, 10))
		at = at.Add(time.Minute)
	}
	holder.Prune(stragglertest.Start.Add(time.Minute))
	assert.Equal(t, 6, holder.Held())
	holder.Prune(stragglertest.Start.Add(time.Minute + 1))
	assert.Zero(t, holder.Held())
}

// A step whose deadline begins anew is kept as long as a new one.
func TestHolder_Touch_KeepsStepsThatMayStillBeReported(t *testing.T) {
	at := stragglertest.Start
	holder := NewHolder(2000, 1000, func() time.Time { return at })
	rank := stragglertest.Rank(0)
	holder.Keep(&rank, stragglertest.Ops(1, 10))
	at = at.Add(time.Hour)
	holder.Touch()
	holder.Prune(at)
	assert.Equal(t, 3, holder.Held())
	holder.Prune(at.Add(time.Nanosecond))
	assert.Zero(t, holder.Held())
	assert.EqualValues(t, 3, holder.Dropped())
}

func TestHeldRank_KeepsTheLongest(t *testing.T) {
	r := &heldRank{}
	for i, d := range []int64{3, 9, 1, 5, 9, 2, 7} {
		r.keepLongest(&model.Op{Seq: int64(i), End: d})
	}
	require.Len(t, r.longest, longestKept)
	assert.Equal(t, []int64{9, 9, 7}, []int64{r.longest[0].End, r.longest[1].End, r.longest[2].End})
}
