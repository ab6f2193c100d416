// SPDX-License-Identifier: Apache-2.0

package sim

import "math"

// Clock is an oscillator. True time is ns from 0, as float64: exact to 1e-4 ns
// over the hours that simulations last.
type Clock struct {
	Start int64   // reading at true time 0
	Drift float64 // mean rate less that of true time
	// The rate swings by Swing to either side within Period ns, as temperature does.
	Swing, Period, Phase float64
}

// elapsed is what the clock advances by until a true time.
func (c *Clock) elapsed(t float64) float64 {
	e := t + c.Drift*t
	if c.Swing != 0 {
		turn := 2 * math.Pi / c.Period
		e += c.Swing / turn * (math.Cos(c.Phase) - math.Cos(turn*t+c.Phase))
	}
	return e
}

// Read returns what the clock shows at a true time.
func (c *Clock) Read(t float64) int64 { return c.Start + int64(math.Floor(c.elapsed(t))) }

// Rate returns the clock's rate over that of true time, less 1.
func (c *Clock) Rate(t float64) float64 {
	if c.Swing == 0 {
		return c.Drift
	}
	return c.Drift + c.Swing*math.Sin(2*math.Pi/c.Period*t+c.Phase)
}

// When returns the true time of a reading.
func (c *Clock) When(reading int64) float64 {
	want := float64(reading - c.Start)
	t := want
	// Rates are within 1e-3 of 1, so that each step gains three digits.
	for range 8 {
		t += want - c.elapsed(t)
	}
	return t
}
