// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// One rank counts its collectives by one differently from the others: it is told, and hides
// neither itself nor another.
func TestARankThatCountsDifferentlyHidesNobody(t *testing.T) {
	for name, of := range map[string]struct {
		layout training.Layout
		off    int64 // rank
		by     int64
	}{
		"the slow one":         {training.Layout{DP: 8}, 3, 1},
		"the slow one, before": {training.Layout{DP: 8}, 3, -1},
		"another":              {training.Layout{DP: 8}, 5, 1},
		"another, before":      {training.Layout{DP: 8}, 5, -1},
		"sharded":              {training.Layout{DP: 8, FSDP: true}, 5, 1},
		"over hosts":           {training.Layout{DP: 8, PerNode: 2}, 5, -2},
	} {
		t.Run(name, func(t *testing.T) {
			spec := training.Spec{
				Name: "x", Layout: of.layout, Noise: training.DefaultNoise(), Steps: 24,
				Faults: []training.Fault{{Family: training.GPUClock, Severity: 1.2, Ranks: []int64{3}}},
			}
			e := bent(t, spec, func(rank int64, ops []model.Op) {
				for i := range ops {
					if rank == of.off && ops[i].Kind == model.KindCollective {
						ops[i].Collective.Seq = model.Some(ops[i].Collective.Seq.V + of.by)
					}
				}
			})
			assert.Equal(t, map[int64]string{3: model.ClassCompute}, accusedOf(e))
			assert.Positive(t, e.Stats().OpsMiscounted)
			assert.Zero(t, e.Stats().UnmatchedOps)
			problems := e.Jobs()[0].Problems
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0], "counts its collectives in communicator 0x")
			assert.Contains(t, problems[0], "in 24 steps their bytes and times say")
		})
	}
}

// countings gives a step of collectives that end at the given times, numbered from the given
// numbers on.
func countings(from []int64, ends ...[]float64) []*rankView {
	forms := commForms{}
	out := make([]*rankView, len(ends))
	for r := range ends {
		out[r] = &rankView{rankStep: &rankStep{rank: model.Rank{Rank: int64(r)}}, index: r}
		for i, end := range ends[r] {
			op := collective(0, from[r]+int64(i), 1024, end-1, end)
			op.Collective.SeqScope = model.ScopeCommFunc
			var c commOp
			forms.of(&op, nil).reduce(&op, &c)
			out[r].comms = append(out[r].comms, c)
		}
	}
	return out
}

func numbersOf(v *rankView) (out []int64) {
	for i := range v.comms {
		if v.comms[i].numbered {
			out = append(out, v.comms[i].number)
		}
	}
	return out
}

func TestRecount(t *testing.T) {
	usual := []float64{10, 21, 35, 42}
	for name, of := range map[string]struct {
		from   int64
		ends   []float64
		want   []int64
		counts int64
	}{
		"as the others":                     {5, usual, []int64{5, 6, 7, 8}, 0},
		"one too many":                      {6, usual, []int64{5, 6, 7, 8}, 4},
		"by another clock":                  {3, []float64{510, 521, 535, 542}, []int64{5, 6, 7, 8}, 4},
		"other collectives":                 {6, []float64{21, 35, 42, 53}, []int64{6, 7, 8, 9}, 0},
		"none of theirs":                    {9, usual, nil, 4},
		"nobody knows":                      {6, []float64{10, 23, 37, 50}, nil, 4},
		"one was lost":                      {6, []float64{21, 35, 42}, []int64{6, 7, 8}, 0},
		"farther than numbers can be apart": {1 << 62, usual, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			views := countings([]int64{5, 5, 5, of.from}, usual, usual, usual, of.ends)
			j := &job{e: New(NewDefaultConfig(), nil), keys: newInterner()}
			j.recount(views)
			assert.Equal(t, of.want, numbersOf(views[3]))
			assert.Equal(t, []int64{5, 6, 7, 8}, numbersOf(views[0]))
			assert.Equal(t, of.counts, j.e.stats.OpsMiscounted)
			assert.Len(t, j.problems(), int(min(1, of.counts)))
		})
	}
	other := []float64{10, 23, 37, 50}
	for name, of := range map[string]struct {
		from []int64
		ends [][]float64
		want [][]int64
		told int
	}{
		"of two the times say which are the same": {[]int64{6, 5}, [][]float64{usual, usual}, [][]int64{{5, 6, 7, 8}, {5, 6, 7, 8}}, 1},
		"of halves, too":                   {[]int64{6, 6, 5, 5}, [][]float64{usual, usual, usual, usual}, [][]int64{{5, 6, 7, 8}, {5, 6, 7, 8}, {5, 6, 7, 8}, {5, 6, 7, 8}}, 2},
		"of thirds":                        {[]int64{7, 6, 5}, [][]float64{usual, usual, usual}, [][]int64{{5, 6, 7, 8}, {5, 6, 7, 8}, {5, 6, 7, 8}}, 2},
		"of two nobody knows who is right": {[]int64{5, 6}, [][]float64{usual, other}, [][]int64{{5, 6, 7, 8}, {6, 7, 8, 9}}, 0},
		"nor of halves":                    {[]int64{5, 5, 6, 6}, [][]float64{usual, usual, other, other}, [][]int64{{5, 6, 7, 8}, {5, 6, 7, 8}, {6, 7, 8, 9}, {6, 7, 8, 9}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			views := countings(of.from, of.ends...)
			j := &job{e: New(NewDefaultConfig(), nil), keys: newInterner()}
			j.recount(views)
			for i, want := range of.want {
				assert.Equal(t, want, numbersOf(views[i]))
			}
			assert.Len(t, j.problems(), of.told)
		})
	}
}

func TestManyThatCountDifferentlyAreBounded(t *testing.T) {
	var f faults
	for r := range int64(100) {
		v := countings([]int64{5}, []float64{1})[0]
		v.rank.Rank = r
		f.miscount(&counted{at: v, ops: []*commOp{&v.comms[0]}}, 1, true)
	}
	assert.Len(t, f.miscounts, maxTwins)
	assert.Equal(t, int64(100-maxTwins), f.unlistedCounts)
}

// A rank that counts differently in three communicators does so in one step, and what is said
// of it is the same whenever the same comes.
func TestWhatIsSaidOfCountingIsTheSame(t *testing.T) {
	said := map[string]int{}
	for range 20 {
		w := newWorld(t, 5)
		for rank := range int64(5) {
			var ops []model.Op
			for c, comm := range []string{"a", "b", "c"} {
				for i := range int64(4) {
					off := int64(0)
					if rank == 3 {
						off = int64(c + 1)
					}
					op := collective(1, 5+i+off, 1024, 0, float64(c*200+int(i*i)+10))
					op.Comm = model.Comm{ID: comm, Size: model.Some(int64(5))}
					op.Collective.SeqScope = model.ScopeComm
					op.Start, op.Seq = op.End-1_000_000, int64(c)*4+i
					ops = append(ops, op)
				}
			}
			w.e.Add(w.rank(rank), append(ops, model.Op{Kind: model.KindStep, Name: "step", Start: nanos(0), End: nanos(900), Step: model.Some(int64(1))}))
		}
		w.e.Flush()
		for _, p := range w.e.Jobs()[0].Problems {
			said[p]++
		}
	}
	require.Len(t, said, 1)
	for p := range said {
		assert.Contains(t, p, "rank 3 counts its collectives in communicator a by +1 ")
		assert.Contains(t, p, "in 1 step")
		assert.NotContains(t, p, "in 2 step")
		assert.NotContains(t, p, "in 3 step")
	}
}

// Times that tell nothing by how they scatter tell by what can have been on one clock, and
// what was told of the rank once is so in later steps.
func TestRecountByWhatCanHaveBeen(t *testing.T) {
	usual := []float64{10, 20, 30, 40}
	late := []float64{10, 20, 30, 40.1}
	number := func(clock string, ends ...[]float64) ([]int64, int64) {
		j := &job{e: New(NewDefaultConfig(), nil), keys: newInterner()}
		var views []*rankView
		for _, e := range ends {
			views = countings([]int64{5, 6}, usual, e)
			for _, v := range views {
				v.rank.ClockID = clock
			}
			j.recount(views)
		}
		return numbersOf(views[1]), j.e.stats.OpsMiscounted
	}
	numbers, n := number("", late)
	assert.Equal(t, []int64{6, 7, 8, 9}, numbers, "nobody knows")
	assert.Zero(t, n)
	numbers, n = number("c", late)
	assert.Equal(t, []int64{5, 6, 7, 8}, numbers)
	assert.Equal(t, int64(4), n)
	numbers, n = number("c", []float64{20, 30, 40, 50.1})
	assert.Equal(t, []int64{6, 7, 8, 9}, numbers, "it counts as the others do")
	assert.Zero(t, n)
	numbers, n = number("", []float64{1010, 1020, 1030, 1040}, late)
	assert.Equal(t, []int64{6, 7, 8, 9}, numbers, "all is regular")
	assert.Zero(t, n)
}

// A rank of which times do not tell keeps its numbers where they can be right on its clock.
func TestRecountKeepsWhatCanBe(t *testing.T) {
	usual := []float64{10, 20, 30, 40}
	views := countings([]int64{5, 5, 5, 6}, usual, usual, usual, []float64{20, 30, 40.1, 50})
	for _, v := range views {
		v.rank.ClockID = "c"
	}
	(&job{e: New(NewDefaultConfig(), nil)}).recount(views)
	assert.Equal(t, []int64{6, 7, 8, 9}, numbersOf(views[3]))
}

func TestRecountAsBefore(t *testing.T) {
	j := &job{e: New(NewDefaultConfig(), nil), keys: newInterner()}
	usual := []float64{10, 21, 35, 42}
	for _, ends := range [][]float64{usual, {10, 23, 37, 50}} {
		views := countings([]int64{5, 6}, usual, ends)
		j.recount(views)
		assert.Equal(t, []int64{5, 6, 7, 8}, numbersOf(views[1]))
	}
}
