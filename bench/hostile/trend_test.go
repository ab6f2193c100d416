// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTrendOf_Line_HasItsSlope(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	within := 0
	for range 200 {
		var samples []float64
		for i := range 150 {
			samples = append(samples, 2*float64(i)+50*rng.NormFloat64())
		}
		got := trendOf(samples)
		if got.slope-2*got.stderr < 2 && 2 < got.slope+2*got.stderr {
			within++
		}
	}
	assert.GreaterOrEqual(t, within, 170, "of 200 lines, within two standard errors")
}

func TestTrendOf_Sawtooth_IsNoise(t *testing.T) {
	var samples []float64
	for i := range 150 {
		samples = append(samples, 1000+10*float64(i%40))
	}
	assert.False(t, trendOf(samples).rises(0))
	for i := range samples {
		samples[i] += 5 * float64(i)
	}
	assert.True(t, trendOf(samples).rises(0))
	assert.False(t, trendOf(samples).rises(6))
	assert.False(t, trendOf(samples[:19]).rises(0), "three blocks say nothing")
}
