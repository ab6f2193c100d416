// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
)

// blockSize is how many samples are averaged before a line is fitted: neighbouring samples of
// memory are alike, since garbage is collected every few seconds.
const blockSize = 5

// trend is how a value changes, and how well that is known.
type trend struct {
	slope, stderr float64 // per sample
	ok            bool    // enough samples
}

// trendOf fits a line to the means of blocks. Means of neighbouring blocks may still be alike:
// the standard error is widened by their autocorrelation.
func trendOf(samples []float64) trend {
	var means []float64
	for i := 0; i+blockSize <= len(samples); i += blockSize {
		sum := 0.0
		for _, v := range samples[i : i+blockSize] {
			sum += v
		}
		means = append(means, sum/blockSize)
	}
	if len(means) < 4 {
		return trend{}
	}
	slope, stderr := fit(means)
	return trend{slope / blockSize, stderr / blockSize, true}
}

// fit is ordinary least squares of y over 0, 1, 2, ...
func fit(y []float64) (slope, stderr float64) {
	n := float64(len(y))
	meanX, meanY := (n-1)/2, 0.0
	for _, v := range y {
		meanY += v / n
	}
	var sxx, sxy float64
	for i, v := range y {
		dx := float64(i) - meanX
		sxx += dx * dx
		sxy += dx * (v - meanY)
	}
	slope = sxy / sxx
	rest := make([]float64, len(y))
	var squares, neighbours float64
	for i, v := range y {
		rest[i] = v - meanY - slope*(float64(i)-meanX)
		squares += rest[i] * rest[i]
		if i > 0 {
			neighbours += rest[i] * rest[i-1]
		}
	}
	if squares == 0 {
		return slope, 0
	}
	alike := min(max(neighbours/squares, 0), 0.9)
	return slope, math.Sqrt(squares/(n-2)/sxx) * math.Sqrt((1+alike)/(1-alike))
}

// errShort is the error of a run that is too short for a trend.
var errShort = errors.New("got too few samples for a slope; want a run of at least 40 s")

// rises reports whether the slope is above floor and above twice its standard error.
func (t trend) rises(floor float64) bool { return t.ok && t.slope > floor && t.slope > 2*t.stderr }

// per returns the trend for a number of samples, divided by a unit.
func (t trend) per(samples, unit float64) trend {
	return trend{t.slope * samples / unit, t.stderr * samples / unit, t.ok}
}

func (t trend) String() string {
	if !t.ok {
		return "-"
	}
	return fmt.Sprintf("%+.2f ± %.2f", t.slope, t.stderr)
}
