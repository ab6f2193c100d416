// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Noise may have memory: a warm device is slow for many steps, and steps that follow each
// other say less than as many draws.
const (
	// MemoryBlock is in how many steps memory is looked for, each block about its own
	// median, so that a rank that becomes slow for good has none.
	MemoryBlock = 16
	// leastMemory is what correlation of neighbouring steps chance and single pauses reach.
	leastMemory = 0.25
	mostMemory  = 0.95
	// sureMemory is how many standard errors it must be above zero.
	sureMemory = 2
	// rankMemory is expected of ranks, and priorMemory is by how much noise of any sort differs
	// from what is expected of it: before there is a block, steps say little of it.
	rankMemory  = 0.2
	priorMemory = 0.5
)

// memories are correlations of an excess with that of the step before, typical of all
// series: measured, 0 where it may be chance or there is no block of steps, and likely, by
// which significance goes. Where there is no block, that is the mean of what is expected and
// of what the steps show by more than a standard error, weighted by how well these are known:
// of noise that forgets five in six show less.
type memories struct{ measured, likely float64 }

// memory returns those of the ranks.
func (t *trial) memory() memories {
	return t.memoryOf(len(t.ranks), rankMemory, func(i, from, to int) {
		t.over(t.ranks[i].n, from, to, func(e *entry) { t.buf = append(t.buf, e.share(e.net())) })
	})
}

// memoryOf does so for so many series, of which so much is expected and of which fill
// appends what they have in frames from to.
func (t *trial) memoryOf(series int, expected float64, fill func(i, from, to int)) memories {
	block := min(MemoryBlock, len(t.frames))
	all := t.correlations(series, block, fill)
	// Over few steps about their own middle it comes out too small (Kendall 1954).
	n := float64(block)
	left := 1 - 4/n
	known := len(all) >= minCohort && left > 0
	r, err := 0.0, math.Inf(1)
	if known {
		r = (stats.SelectMedian(all) + 1/n) / left
		err = stats.MedianError / math.Sqrt(n*float64(len(all))) / left
	}
	switch {
	case block < MemoryBlock:
		worth := sq(priorMemory / err)
		return memories{likely: max(0, min(mostMemory, (expected+worth*max(0, r-err))/(1+worth)))}
	case !known || r < max(leastMemory, sureMemory*err):
		return memories{}
	}
	r = min(r, mostMemory)
	return memories{r, r}
}

// correlations returns that of each series in each block of so many steps.
func (t *trial) correlations(series, block int, fill func(i, from, to int)) (all []float64) {
	for i := range series {
		for from := 0; from+block <= len(t.frames); from += block {
			t.buf = t.buf[:0]
			fill(i, from, from+block)
			if 2*len(t.buf) < block || len(t.buf) < leastSteps {
				continue
			}
			t.buf2 = append(t.buf2[:0], t.buf...)
			if mid, sigma := stats.Spread(t.buf2); sigma > 0 {
				all = append(all, correlation(t.buf, mid, sigma))
			}
		}
	}
	return all
}

// correlation returns that of values with those before. Single wild ones count no more
// than three deviations.
func correlation(v []float64, mid, sigma float64) float64 {
	var before, products, squares float64
	for _, x := range v {
		x = max(-3, min(3, (x-mid)/sigma))
		products += x * before
		squares += x * x
		before = x
	}
	return products / squares
}

// Worth returns as how many independent steps so many count that have memory.
func Worth(steps int, memory float64) float64 {
	return float64(steps) / inflation(steps, memory)
}

// inflation is by how much the variance of a mean over so many steps exceeds that of as
// many independent ones, where noise forgets in each step what is not its memory.
func inflation(steps int, memory float64) float64 {
	if memory <= 0 || steps < 2 {
		return 1
	}
	n := float64(steps)
	// 1 + 2 sum over k of (1 - k/n) memory^k
	sum := (1+memory)/(1-memory) - 2*memory*(1-math.Pow(memory, n))/(n*sq(1-memory))
	return max(1, sum)
}

// Batches of a series, and how long each is at least.
const (
	batches    = 8
	leastBatch = 4
)

// batched is what inflation is, by the means of batches of steps (Schmeiser 1982): a slow
// change beneath noise that forgets shows there, and hardly in neighbouring steps.
func batched(v []float64, mid, sigma float64) float64 {
	size := max(leastBatch, len(v)/batches)
	sum, n := 0.0, 0
	for ; len(v) >= size && sigma > 0; v = v[size:] {
		mean := 0.0
		for _, x := range v[:size] {
			mean += max(-3, min(3, (x-mid)/sigma)) / float64(size)
		}
		sum, n = sum+sq(mean), n+1
	}
	return max(1, float64(size)*sum/float64(max(1, n)))
}
