// SPDX-License-Identifier: Apache-2.0

package ks

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// By hand: of four operations, worker 0 ends one in each window and worker 1 all in
// the last. Before it 3/4 of the one and none of the other are over.
func TestDistance(t *testing.T) {
	table := Normalised([]uint32{1, 1, 1, 1, 0, 0, 0, 4, 2, 2, 0, 0}, 4)
	require.Equal(t, 3, table.Workers())
	assert.InDelta(t, 0.75, table.Distance(0, 1), 1.0/Full)
	assert.InDelta(t, 0.5, table.Distance(0, 2), 1.0/Full)
	assert.InDelta(t, 1.0, table.Distance(1, 2), 1.0/Full)
	assert.InDelta(t, 0.75, table.Share(0, 2), 0.5/Full)
	scores := table.Pairwise()
	assert.InDelta(t, (0.75+0.5)/2, scores[0], 1.0/Full)
	assert.InDelta(t, (0.75+1)/2, scores[1], 1.0/Full)
}

// Of three operations the shares are 5461 and 10922 steps; of seven, 2340.4 and 4680.9.
func TestSharesAreRounded(t *testing.T) {
	table := Normalised([]uint32{1, 1, 1, 1, 1, 5}, 3)
	for i, want := range [][]uint16{{5461, 10922, Full}, {2340, 4681, Full}} {
		for w := range want {
			assert.Equal(t, want[w], cell(table.row(i), w), "worker %d, window %d", i, w)
		}
	}
}

// Twice as many operations in the same rhythm: the shares are equal, the counts differ
// by three at the end.
func TestCountsKeepWorkersOfDifferentProgramsApart(t *testing.T) {
	counts := []uint32{1, 1, 1, 2, 2, 2}
	assert.Zero(t, Normalised(counts, 3).Distance(0, 1))
	assert.InDelta(t, 3, Counted(counts, 3).Distance(0, 1), 6.0/Full)
}

// An operation more or less than a word's four cells must not spill into the next.
func TestDistanceEqualsThatOfSingleCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rng.IntN(40)
		table := NewTable(n)
		cells := [2][]int{}
		for i := range cells {
			for range table.words {
				table.cells = append(table.cells, 0)
			}
			for w := range n {
				v := []int{0, Full, rng.IntN(Full + 1)}[rng.IntN(3)]
				cells[i] = append(cells[i], v)
				table.row(i)[w/perWord] |= uint64(v) << (w % perWord * cellBits)
			}
		}
		want := 0
		for w := range n {
			want = max(want, cells[0][w]-cells[1][w], cells[1][w]-cells[0][w])
		}
		require.Equal(t, uint64(want), distance(table.row(0), table.row(1), 0))
		require.Equal(t, uint64(want), distance(table.row(1), table.row(0), uint64(want/2)))
		require.Equal(t, uint64(want), distance(table.row(1), table.row(0), uint64(want)))
	}
}

func TestEveryScoreLiesWithinItsBounds(t *testing.T) {
	for name, counts := range crowds() {
		table := Normalised(counts, 16)
		bounds := table.Bounds()
		for i, s := range table.Pairwise() {
			b := bounds[i]
			require.LessOrEqual(t, b.Lower, s+1e-12, "%s, worker %d", name, i)
			require.GreaterOrEqual(t, b.Upper, s-1e-12, "%s, worker %d", name, i)
			require.InDelta(t, s, b.Mid(), (b.Upper-b.Lower)/2+1e-12)
		}
	}
}

func TestTopKEqualsAllPairs(t *testing.T) {
	for name, counts := range crowds() {
		for _, k := range []int{1, 2, 8, 1000} {
			for _, table := range []*Table{Normalised(counts, 16), Counted(counts, 16)} {
				got, _ := table.TopK(k)
				require.Equal(t, brute(table, k), got, "%s, top %d", name, k)
			}
		}
	}
}

func TestTopKOfNobody(t *testing.T) {
	got, effort := NewTable(8).TopK(3)
	assert.Empty(t, got)
	assert.Zero(t, effort)
	assert.Empty(t, NewTable(0).Bounds())
	got, _ = Normalised([]uint32{1, 2}, 2).TopK(0)
	assert.Empty(t, got)
	got, _ = Normalised([]uint32{1, 2}, 2).TopK(3)
	assert.Equal(t, []Score{{Worker: 0, Score: 0}}, got, "who is alone differs from nobody")
}

// Of a tight crowd with three that stand out, hardly more than these are computed.
func TestFewPairsDecideATightCrowd(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	counts := healthy(rng, 2000, 64, 0.002)
	for i, w := range []int{17, 700, 1999} {
		copy(counts[w*64:], rhythm(rng, 64, 1.3+0.1*float64(i), 0.002))
	}
	got, effort := Normalised(counts, 64).TopK(3)
	assert.Equal(t, []int{1999, 700, 17}, workersOf(got))
	assert.Less(t, effort.Pairs, int64(8*2000), "all pairs are %d", 2000*1999/2)
}

func TestEqualRowsAreComputedOnce(t *testing.T) {
	counts := slices.Repeat([]uint32{1, 2, 3, 4}, 5000)
	copy(counts[4*1234:], []uint32{4, 3, 2, 1})
	got, effort := Normalised(counts, 4).TopK(2)
	assert.Equal(t, []int{1234, 0}, workersOf(got))
	assert.Equal(t, 2, effort.Rows)
	assert.LessOrEqual(t, effort.Pairs, int64(6))
}

func TestLeadersWithinABudget(t *testing.T) {
	table := Normalised(crowds()["wide"], 16)
	n := int64(table.Workers())
	all, within, effort := table.Leaders(4, math.MaxInt64)
	assert.Equal(t, brute(table, 4), all)
	assert.Equal(t, table.Bounds(), within)
	assert.False(t, effort.CutShort)
	some, _, effort := table.Leaders(4, 2*n)
	assert.True(t, effort.CutShort)
	assert.LessOrEqual(t, effort.Pairs, 3*n)
	exact := table.Pairwise()
	for _, s := range some {
		assert.InDelta(t, exact[s.Worker], s.Score, 1e-12)
	}
}

func TestMatrixIsBounded(t *testing.T) {
	table := Normalised([]uint32{1, 1, 0, 2, 2, 0}, 2)
	m, err := table.Matrix(3)
	require.NoError(t, err)
	assert.InDeltaSlice(t, []float32{0, 0.5, 0.5, 0.5, 0, 1, 0.5, 1, 0}, m, 1e-4)
	_, err = table.Matrix(2)
	require.ErrorContains(t, err, "got 3 workers; want at most 2")
}

func FuzzTopK(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(2), uint8(1))
	f.Add([]byte{0, 0, 9, 9, 9, 9, 0, 0}, uint8(4), uint8(9))
	// Enough workers, of whom nobody stands out, for all bounds to be tried: off by chance
	// in each window.
	rng, many, off := rand.New(rand.NewPCG(15, 16)), make([]byte, 1<<12), 0
	for i := range many {
		now := rng.IntN(30)
		many[i], off = byte(100+now-off), now
	}
	f.Add(many, uint8(15), uint8(8))
	f.Fuzz(func(t *testing.T, data []byte, windows, k uint8) {
		w := 1 + int(windows%33)
		data = data[:min(len(data), 1<<12, 300*w)]
		counts := make([]uint32, len(data)/w*w)
		for i := range counts {
			counts[i] = uint32(data[i])
		}
		for _, table := range []*Table{Normalised(counts, w), Counted(counts, w)} {
			got, _ := table.TopK(int(k))
			want := brute(table, int(k))
			if !slices.Equal(got, want) {
				t.Fatalf("top %d of %d workers: got %v; want %v", k, table.Workers(), got, want)
			}
			bounds := table.Bounds()
			for i, s := range table.Pairwise() {
				if b := bounds[i]; s < b.Lower-1e-9*(1+s) || s > b.Upper+1e-9*(1+s) {
					t.Fatalf("worker %d: score %v outside of %v", i, s, b)
				}
			}
		}
	})
}

// brute ranks the workers by all pairs.
func brute(t *Table, k int) []Score {
	sums := t.pairwise()
	order := make([]int, len(sums))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	var out []Score
	for _, i := range order[:min(k, len(order))] {
		out = append(out, Score{Worker: i, Score: t.mean(sums[i])})
	}
	return out
}

func workersOf(scores []Score) (out []int) {
	for _, s := range scores {
		out = append(out, s.Worker)
	}
	return out
}

// crowds are counts of 16 windows each: alike, tied, and adversarial ones.
func crowds() map[string][]uint32 {
	rng := rand.New(rand.NewPCG(7, 8))
	random := func(workers, most int) []uint32 {
		out := make([]uint32, workers*16)
		for i := range out {
			out[i] = uint32(rng.IntN(most))
		}
		return out
	}
	same := slices.Repeat(random(1, 9), 50)
	clusters := append(slices.Repeat(random(1, 5), 40), slices.Repeat(random(1, 5), 40)...)
	ends := make([]uint32, 0, 60*16) // all at once, each in some window: every distance is 1
	for i := range 60 {
		row := make([]uint32, 16)
		row[i%16] = 7
		ends = append(ends, row...)
	}
	out := map[string][]uint32{
		"one": random(1, 9), "two": random(2, 9), "three": random(3, 9), "coarse": random(300, 2),
		"random": random(200, 1000), "same": same, "clusters": clusters, "ends": ends,
		"idle":  make([]uint32, 20*16),
		"tight": healthy(rng, 300, 16, 0.002), "wide": healthy(rng, 300, 16, 0.3),
	}
	out["beside clusters"] = append(slices.Clone(clusters), random(20, 5)...)
	return out
}

func healthy(rng *rand.Rand, workers, windows int, jitter float64) (out []uint32) {
	for range workers {
		out = append(out, rhythm(rng, windows, 1, jitter)...)
	}
	return out
}

// rhythm counts the ends of a worker that is slower by a factor and drifts.
func rhythm(rng *rand.Rand, windows int, slow, drift float64) []uint32 {
	return pace{slow: slow, drift: drift}.counts(rng, windows)
}

// pace is how a worker proceeds through a step.
type pace struct {
	slow   float64 // by what factor
	drift  float64 // what its progress wanders by, as a random walk, by the end of the step
	jitter float64 // what it is off by in each window, whatever it was before
	ops    int     // 8,192 unless said
}

// counts returns how many of its equal operations end in each window: all that is left
// in the last.
func (p pace) counts(rng *rand.Rand, windows int) []uint32 {
	ops := cmp.Or(p.ops, 8192)
	out := make([]uint32, windows)
	done, walk := 0, 0.0
	for w := range windows {
		walk += rng.NormFloat64() * p.drift / math.Sqrt(float64(windows))
		off := 0.0
		if p.jitter > 0 {
			off = p.jitter * rng.NormFloat64()
		}
		now := ops
		if w < windows-1 {
			now = int(float64(ops) * min(1, max(0, float64(w+1)/float64(windows)/p.slow+walk+off)))
		}
		if now > done {
			out[w], done = uint32(now-done), now
		}
	}
	return out
}
