// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// steadiness returns the median of the samples over its standard error, taken
// from the median absolute deviation so that one wild step does not hide a
// steady excess, and so many independent samples as these are worth. The spread is floored at 1 % of the median: equal samples say
// that the timer is coarse, not that the certainty is endless.
func steadiness(samples []float64, worth float64) float64 {
	if len(samples) < 2 {
		return 0
	}
	const floor = 0.01
	mid, mad := stats.MAD(samples)
	spread := max(stats.MADToSigma*mad, floor*math.Abs(mid))
	if spread == 0 {
		return 0
	}
	return mid / (stats.MedianError * spread / math.Sqrt(worth))
}
