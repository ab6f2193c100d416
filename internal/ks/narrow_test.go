// SPDX-License-Identifier: Apache-2.0

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
			want := brute(Normalised(counts, windows), 100)
			for _, k := range []int{1, 8, 100} {
				got, _ := Normalised(counts, windows).TopK(k)
				require.Equal(t, want[:k], got, "%s, %d windows, top %d", name, windows, k)
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
			rows := upTo(c.rows())
			within := func(upper func(i int) uint64, said string) {
				for i := range rows {
					if got, want := upper(i), sums[c.workers[i][0]]; got < want {
						require.GreaterOrEqual(t, got, want, "%s, %d windows, row %d, %s", name, windows, i, said)
					}
				}
			}
			for i, lower := range c.lower() {
				require.LessOrEqual(t, lower, sums[c.workers[i][0]], "%s, %d windows, row %d", name, windows, i)
			}
			for range 2 { // by few pivots, and by more
				within(func(i int) uint64 { return c.upper(i, 0) }, fmt.Sprintf("%d pivots", len(c.pivots)))
				for i := range rows {
					sum := uint64(0) // of the distances from the rows first and after
					for _, first := range slices.Backward(rows) {
						sum += c.weighs[first] * distance(c.at(i), c.at(first), 0)
						if got := c.upper(i, first); got < sum {
							require.GreaterOrEqual(t, got, sum)
						}
					}
				}
				for _, least := range []uint64{1, slices.Min(sums) + 1, slices.Max(sums) / 2, slices.Max(sums), 4 * slices.Max(sums)} {
					for _, words := range c.lengths() {
						for _, spare := range spares {
							b := c.bracket(rows, 1, max(1, least))
							for k := range b.spare {
								b.spare[k] = spare
							}
							b.open(rows)
							b.cut(rows, words)
							within(func(i int) uint64 { return b.upper[i] }, fmt.Sprintf("least %d, %d words, spare %v", least, words, spare))
						}
					}
				}
				c.refine(rows)
			}
		}
	}
}

// Where nobody stands out, a small part of all pairs is computed all the same.
func TestFewPairsDecideWhereNobodyStandsOut(t *testing.T) {
	const workers, windows = 3000, 128
	for _, c := range []struct {
		job  string
		most float64 // of all pairs
	}{{"nobody", 0.05}, {"barrier", 0.05}, {"clusters", 0.07}, {"ties", 0.07}} {
		t.Run(c.job, func(t *testing.T) {
			_, effort := Normalised(countsOf(c.job, workers, windows), windows).TopK(8)
			t.Logf("%+v, %.3f of all", effort, float64(effort.Pairs)/(workers*(workers-1)/2))
			assert.Less(t, float64(effort.Pairs), c.most*workers*(workers-1)/2)
		})
	}
}

// With finer pivots each row has the nearest, and what is asked for knows how far all are.
// Rhythms that have nothing in common keep the pivots that they had.
func TestFinerPivots(t *testing.T) {
	const workers, windows = 2000, 64
	for _, job := range []string{"nobody", "clusters", "ties"} {
		c := Normalised(countsOf(job, workers, windows), windows).gather()
		few := len(c.pivots)
		before := c.rest[0]
		asked := []int{0, 7, c.rows() - 1}
		more, pairs := c.refine(asked)
		require.True(t, more, job)
		require.Less(t, few, len(c.pivots), job)
		require.Less(t, float64(c.rest[0]), 0.9*float64(before), job)
		assert.GreaterOrEqual(t, pairs, int64(c.rows()), job)
		for i := range c.rows() {
			far := make([]uint64, len(c.pivots))
			for p, pivot := range c.pivots {
				far[p] = distance(c.at(i), pivot, 0)
			}
			require.Equal(t, slices.Min(far), c.own[i], "%s, row %d", job, i)
			require.Equal(t, c.own[i], far[c.of[i]], "%s, row %d", job, i)
			if slices.Contains(asked, i) {
				require.Equal(t, far, c.from(i), "%s, row %d", job, i)
			}
		}
	}
	c := Normalised(countsOf("barrier", workers, windows), windows).gather()
	more, _ := c.refine([]int{0})
	assert.False(t, more)
	assert.Len(t, c.pivots, 1)
}

// A trial says about how many rows a cut leaves, for windows that have nothing to do with
// each other and for rhythms that drift.
func TestTrialsTellWhichCutIsWorthIt(t *testing.T) {
	const workers, windows = 3000, 128
	for _, job := range []string{"nobody", "barrier", "ties"} {
		c := Normalised(countsOf(job, workers, windows), windows).gather()
		rows := upTo(c.rows())
		c.refine(rows)
		top, _ := c.TopK(8)
		least := uint64(math.Round(top[7].Score * Full * (workers - 1)))
		rows = slices.DeleteFunc(rows, func(i int) bool { return c.upper(i, 0) < least })
		for _, words := range c.lengths() {
			b := c.bracket(rows, 1, least)
			open := b.open(upTo(len(rows)))
			spare, part := b.try(open, words)
			for k := range b.spare {
				b.spare[k] = spare
			}
			got := 1 - float64(len(b.cut(open, words)))/float64(len(open))
			assert.InDelta(t, got, part, 0.35, "%s, %d rows, %d words, spare %v", job, len(open), words, spare)
		}
	}
}

// By the definition: the allowance, and by what the numbers of each window exceed it.
// Allowances that are alike take another way than those that are not.
func TestWindowsSumWhatExceedsTheAllowance(t *testing.T) {
	const workers, windows = 60, 7
	for _, alike := range []bool{true, false} {
		c := Normalised(countsOf("barrier", workers, windows), windows).gather()
		require.Len(t, c.pivots, 1)
		rows := upTo(c.rows())
		b := c.bracket(rows, 1, c.upper(0, 0)/2)
		if !alike {
			b.spare[3] = 1
		}
		b.open(rows)
		b.lower(0, rows, 0)
		require.Equal(t, alike, slices.Min(b.allowed) == slices.Max(b.allowed))
		for i := range rows {
			want := workers * b.allowed[i]
			for k := range c.rows() {
				for w := range windows {
					apart := int(cell(c.at(i), w)) - int(cell(c.at(k), w))
					want += int(c.weighs[k]) * max(0, apart-b.allowed[i], -apart-b.allowed[i])
				}
			}
			require.Equal(t, uint64(want), b.sums[i], "row %d", i)
		}
	}
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
		for v := -2; v < 12; v++ {
			for _, allowed := range []int{0, 1, 2, 5} {
				want := 0
				for _, u := range []int{1, 4, 4, 7} {
					want += max(0, u-v-allowed, v-u-allowed)
				}
				assert.Equal(t, uint64(want), r.beyond(v, allowed), "at %d, beyond %d", v, allowed)
			}
		}
		r.clear()
	}
	r.add(-Full, 1)
	r.add(Full, 1)
	r.sum()
	assert.Equal(t, uint64(2*Full), r.at(Full))
	assert.Zero(t, r.at(-2*Full))
}
