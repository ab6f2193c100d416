// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMedian_OfAnyNumber_LeavesTheValues(t *testing.T) {
	values := []float64{5, 1, 9, 3}
	assert.InDelta(t, 4, Median(values), 0)
	assert.Equal(t, []float64{5, 1, 9, 3}, values)
	assert.InDelta(t, 5, Median(values[:3]), 0)
	assert.InDelta(t, 5, Median(values[:1]), 0)
	assert.Zero(t, Median(nil))
}

func TestInterval_KnownValues_IsStudents(t *testing.T) {
	// Mean 0, standard error 0.1/sqrt 3, times 4.303.
	mean, half := Interval([]float64{-0.1, 0, 0.1})
	assert.InDelta(t, 0, mean, 1e-15)
	assert.InDelta(t, 0.24843, half, 1e-5)

	many := make([]float64, 100) // beyond the table: its last quantile, which is wider
	for i := range many {
		many[i] = float64(i % 2)
	}
	mean, half = Interval(many)
	assert.InDelta(t, 0.5, mean, 1e-12)
	assert.InDelta(t, 2.086*0.0502519, half, 1e-5)
	mean, half = Interval(many[1:2])
	assert.InDelta(t, 1, mean, 0)
	assert.Zero(t, half)
}
