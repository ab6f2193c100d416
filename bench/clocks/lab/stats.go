// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// errors are absolute errors in ns.
type errors []float64

func (e *errors) add(v float64) { *e = append(*e, math.Abs(v)) }

// quantile is the smallest value that a share q of all does not exceed; NaN of none.
func (e errors) quantile(q float64) float64 {
	if len(e) == 0 {
		return math.NaN()
	}
	return stats.QuantileLow(slices.Sorted(slices.Values(e)), q)
}

// rms is the root of the mean square; NaN of none.
func (e errors) rms() float64 {
	sum := 0.0
	for _, v := range e {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(e)))
}

func (e errors) String() string {
	return fmt.Sprintf("%9.0f %9.0f %9.0f  (n=%d)", e.quantile(0.5), e.quantile(0.99), e.quantile(1), len(e))
}

// share prints how many of all.
func share(part, all int) string {
	if all == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f %% (%d/%d)", 100*float64(part)/float64(all), part, all)
}
