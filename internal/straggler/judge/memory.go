package judge

import "math"

// Noise may have memory: a warm device is slow for many steps, and steps that follow each
// other say less than as many draws.
const (
	// memoryBlock is in how many steps memory is looked for, each block about its own
	// median, so that a rank that becomes slow for good has none.
	memoryBlock = 16
	// leastMemory is what correlation of neighbouring steps chance and single pauses reach.
	leastMemory = 0.25
	mostMemory  = 0.95
)

// memory returns the correlation of an excess with that of the step before, typical of
// all ranks; 0 where it may be chance.
func (t *trial) memory() float64 {
	const block = memoryBlock
	var all []float64
	for i := range t.ranks {
		for from := 0; from+block <= len(t.frames); from += block {
			if r, ok := t.correlation(&t.ranks[i], from, from+block); ok {
				all = append(all, r)
			}
		}
	}
	if len(all) < minCohort {
		return 0
	}
	// Over few steps about their own middle it comes out too small (Kendall 1954).
	const n, lost = memoryBlock, 4.0 / memoryBlock
	r := (medianOf(all) + 1.0/n) / (1 - lost)
	if chance := 2 * medianError / math.Sqrt(n*float64(len(all))) / (1 - lost); r < max(leastMemory, chance) {
		return 0
	}
	return min(r, mostMemory)
}

// correlation returns that of a rank's shares with those of the steps before. Single wild
// steps count no more than three deviations.
func (t *trial) correlation(s *standing, from, to int) (float64, bool) {
	share := func(e *entry) float64 { return e.share(e.net()) }
	t.buf = t.buf[:0]
	t.over(s.n, from, to, func(e *entry) { t.buf = append(t.buf, share(e)) })
	if len(t.buf) < memoryBlock/2 {
		return 0, false
	}
	mid, sigma := spreadOf(t.buf)
	if sigma <= 0 {
		return 0, false
	}
	var before, products, squares float64
	t.over(s.n, from, to, func(e *entry) {
		x := max(-3, min(3, (share(e)-mid)/sigma))
		products += x * before
		squares += x * x
		before = x
	})
	return products / squares, squares > 0
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
