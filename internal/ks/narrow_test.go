package ks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shaped makes counts of workers of a job that the benchmarks have, and of others.
func shaped(workers, windows int) map[string][]uint32 {
	out := map[string][]uint32{}
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range workers {
		for _, job := range jobs {
			out[job.name] = append(out[job.name], job.make(rng, i).counts(rng, windows)...)
		}
		out["stages"] = append(out["stages"], pace{slow: 1 + 0.2*float64(i%7), drift: 0.01}.counts(rng, windows)...)
		out["three to one"] = append(out["three to one"], pace{slow: 1 + 0.3*float64(i%4/3), drift: 0.002}.counts(rng, windows)...)
		few := make([]uint32, windows)
		for range 2 {
			few[rng.IntN(windows)]++
		}
		out["few operations"] = append(out["few operations"], few...)
	}
	return out
}

func countsOf(name string, workers, windows int) (out []uint32) {
	rng := rand.New(rand.NewPCG(11, 12))
	job := jobs[slices.IndexFunc(jobs, func(j job) bool { return j.name == name })]
	for i := range workers {
		out = append(out, job.make(rng, i).counts(rng, windows)...)
	}
	return out
}

// What no bound can tell apart at once, all of them are tried on: the top k stay those
// of all pairs, of equals the first.
func TestTopKEqualsAllPairsWhereNobodyStandsOut(t *testing.T) {
	for _, windows := range []int{1, 3, 16, 61} {
		for name, counts := range shaped(500, windows) {
			for _, k := range []int{1, 8, 100} {
				table := Normalised(counts, windows)
				got, _ := table.TopK(k)
				require.Equal(t, brute(table, k), got, "%s, %d windows, top %d", name, windows, k)
			}
		}
	}
}

// With whatever is asked for, none of the bounds lies below the sum that it bounds.
func TestNoBoundIsBelowTheSum(t *testing.T) {
	for _, windows := range []int{1, 7, 40} {
		for name, counts := range shaped(150, windows) {
			table := Normalised(counts, windows)
			sums := table.pairwise()
			c := table.gather()
			c.outline()
			rows := make([]int, c.rows())
			for i := range rows {
				rows[i] = i
			}
			for _, least := range []uint64{1, slices.Min(sums) + 1, slices.Max(sums) / 2, slices.Max(sums), 4 * slices.Max(sums)} {
				upper := c.tighten(rows, max(1, least), 0)
				for i := range rows {
					said := fmt.Sprintf("%s, %d windows, row %d, least %d", name, windows, i, least)
					sum := sums[c.workers[i][0]]
					require.GreaterOrEqual(t, upper[i], sum, said)
					require.GreaterOrEqual(t, c.upper(i, 0), sum, said)
					require.LessOrEqual(t, c.lower()[i], sum, said)
					rest, open := c.beyond(i, least, nil)
					require.True(t, open || sum < least, said)
					for s := range rest {
						if open {
							require.GreaterOrEqual(t, rest[s], c.pairsFrom(i, s*stretch), said)
						}
					}
				}
			}
		}
	}
}

// pairsFrom sums the distances of a row from the workers of the rows first and after.
func (c *crowd) pairsFrom(i, first int) (sum uint64) {
	for k := first; k < c.rows(); k++ {
		sum += c.weighs[k] * distance(c.at(i), c.at(k), 0)
	}
	return sum
}

// Where nobody stands out, a small part of all pairs is computed all the same.
func TestFewPairsDecideWhereNobodyStandsOut(t *testing.T) {
	const workers, windows = 3000, 128
	for _, c := range []struct {
		job  string
		most float64 // of all pairs
	}{{"nobody", 0.05}, {"barrier", 0.05}, {"clusters", 0.07}, {"ties", 0.15}} {
		t.Run(c.job, func(t *testing.T) {
			_, effort := Normalised(countsOf(c.job, workers, windows), windows).TopK(8)
			t.Logf("%+v, %.3f of all", effort, float64(effort.Pairs)/(workers*(workers-1)/2))
			assert.Less(t, float64(effort.Pairs), c.most*workers*(workers-1)/2)
		})
	}
}

// Where many are left, outlines are made, and spare part of the distances of those that
// are given up.
func TestOutlinesSpareDistances(t *testing.T) {
	const workers, windows = 4000, 128
	table := Normalised(countsOf("ties", workers, windows), windows)
	c := table.gather()
	got, _ := c.top(8, math.MaxInt64)
	require.Equal(t, brute(table, 8), got)
	require.NotEmpty(t, c.outlines)
	var best leaders
	for best.k = 8; !best.full(); {
		s := got[len(best.list)]
		best.add(leader{uint64(math.Round(s.Score * Full * (workers - 1))), int32(s.Worker)})
	}
	given := func() (pairs int64) {
		for i := range 200 {
			_, _, n := c.score(i, &best)
			pairs += n
		}
		return pairs
	}
	with := given()
	c.outlines = nil
	assert.Less(t, with, given())
}

// By hand: nine workers at the pivot, one 4 above it, two 5 below. The sums of all three
// are 54, which the bounds say exactly, and the lowest number is first.
func TestBoundsThatAreSumsTie(t *testing.T) {
	table := NewTable(1)
	table.cells = slices.Repeat([]uint64{100}, 12)
	table.cells[0], table.cells[1], table.cells[5] = 95, 95, 104
	sums, c := table.pairwise(), table.gather()
	for i := range c.rows() {
		for _, w := range c.workers[i] {
			if sums[w] == 54 {
				assert.Equal(t, uint64(54), c.upper(i, 0), "worker %d", w)
			}
		}
	}
	for k := 1; k <= 3; k++ {
		got, _ := table.TopK(k)
		assert.Equal(t, []int{0, 1, 5}[:k], workersOf(got))
	}
}

// Two clusters have two pivots, and few that stand out from one have none.
func TestPivotsAreOfClusters(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	counts := healthy(rng, 1000, 64, 0.002)
	table := Normalised(counts, 64)
	require.Len(t, table.pivots(), 1)
	for w := range 50 {
		copy(counts[w*20*64:], rhythm(rng, 64, 1.5, 0.002))
	}
	require.Len(t, Normalised(counts, 64).pivots(), 1, "one in twenty is slow")
	for w := range 400 {
		copy(counts[w*64:], rhythm(rng, 64, 1.5, 0.002))
	}
	table = Normalised(counts, 64)
	pivots := table.pivots()
	require.Len(t, pivots, 2)
	of, _ := share([][]uint64{table.row(100), table.row(905)}, pivots)
	assert.NotEqual(t, of[0].pivot, of[1].pivot)
}

// By hand: 5 exceeds 1 by 4, 4 twice by 1 each, and 7 not at all.
func TestRamp(t *testing.T) {
	var r ramp
	for range 2 { // it is used again
		r.add(1, 1)
		r.add(4, 2)
		r.add(7, 1)
		r.sum()
		for v, want := range map[int]uint64{-Full: 0, 1: 0, 2: 1, 5: 6, 7: 12, 8: 16, 10: 24} {
			assert.Equal(t, want, r.at(v), "at %d", v)
		}
		r.clear()
	}
	r.add(-Full, 1)
	r.add(Full, 1)
	r.sum()
	assert.Equal(t, uint64(2*Full), r.at(Full))
	assert.Zero(t, r.at(-2*Full))
}
