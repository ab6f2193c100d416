// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// Of two ranks one leads in every second step, so that an episode of ten steps is soon a
// chance. What its own other steps were says more: were it chance, all orders of a rank's
// steps would be alike, and its largest ones would not lie in one stretch.

// pastPart is the share of the level that the order of own steps has where it is asked;
// the order among ranks has the rest.
const pastPart = 0.2

// byOrders returns the probability that chance alone orders ranks, or the rank's own
// steps, as they are.
func (j *job) byOrders(c *candidate, among int) float64 {
	order := j.byOrder(c, among)
	past, asked := j.byPast(c)
	if !asked {
		return order
	}
	return min(1, order/(1-pastPart), past/pastPart)
}

// byPast returns the probability that chance puts as many of the rank's largest steps into
// one stretch of some length as the candidate's has; false where there are fewer steps
// outside of it than in it.
func (j *job) byPast(c *candidate) (float64, bool) {
	if c.place.sort != placeRank || c.in.dark(c.Rank) {
		return 1, false
	}
	steps := stretch(j.window).past(c)
	all, inside := len(steps), 0
	for i := range steps {
		if steps[i].inside {
			inside++
		}
	}
	if inside < minTrials || all < 2*inside {
		return 1, false
	}
	top := 0
	for i := range steps[:inside] {
		if steps[i].inside {
			top++
		}
	}
	worth := judge.Worth(all, c.Memory) / float64(all)
	count := func(n int) int { return int(worth * float64(n)) }
	stretches := float64(all*(all+1)) / 2
	ranks := float64(len(c.in[0].ranks) * max(1, j.looks))
	return min(1, ranks*stretches*hypergeometricTail(count(top), count(all), count(inside))), true
}

// ownStep is by how much a rank took longer than its peers in a step.
type ownStep struct {
	excess int64
	inside bool // of the candidate's stretch
}

// past returns the steps of the candidate's rank that could be compared, the largest first;
// of equal ones those outside of its stretch.
func (in stretch) past(c *candidate) (out []ownStep) {
	first, last := c.in[0].step, c.in[len(c.in)-1].step
	for _, rec := range in {
		if i, ok := rec.index[c.Rank]; ok && rec.ranks[i].weighed {
			out = append(out, ownStep{beyondPeers(&rec.ranks[i]), rec.step >= first && rec.step <= last})
		}
	}
	slices.SortStableFunc(out, func(a, b ownStep) int {
		if a.excess == b.excess && a.inside != b.inside {
			if b.inside {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.excess, a.excess)
	})
	return out
}

// hypergeometricTail returns the probability that at least k of m things drawn from n are
// among the m largest.
func hypergeometricTail(k, n, m int) float64 {
	if k <= 0 || m <= 0 || n < m {
		return 1
	}
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	sum := 0.0
	for i := max(k, 2*m-n); i <= m; i++ {
		sum += math.Exp(choose(m, i) + choose(n-m, m-i) - choose(n, m))
	}
	return min(1, sum)
}
