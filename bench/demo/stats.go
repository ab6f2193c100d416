// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// quantile returns the q-th quantile of values, which it sorts; 0 of none.
func quantile(values []float64, q float64) float64 {
	slices.Sort(values)
	return stats.QuantileNearest(values, q)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// resamples of a bootstrap: its 2.5 % tails then stand on 250 values each.
const resamples = 10_000

// interval returns the percentile bootstrap interval of the mean, 95 %.
func interval(values []float64, rng *rand.Rand) (low, high float64) {
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[rng.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	return quantile(means, 0.025), quantile(means, 0.975)
}
