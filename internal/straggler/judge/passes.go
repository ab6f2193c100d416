// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// What tells that a rank had more to do, where nobody counts it: attention costs the
// square of a sequence's length and all else costs its length at most, so that long
// sequences change how a rank's kernels compare with one another, and change it forward
// and backward alike. A slow device slows them together, and noise does not know in the
// backward pass what it did in the forward one (Lin et al., OSDI 2025).

// passes is by how much a rank's kernels took longer in a step than its device explains:
// s, or a share of the peers' own time. It is NaN where that is not known.
type passes struct{ forward, backward float32 }

var unknownPasses = passes{float32(math.NaN()), float32(math.NaN())}

func (p passes) known() bool { return !math.IsNaN(p.both()) }

func (p passes) over(s float64) passes {
	return passes{float32(float64(p.forward) / s), float32(float64(p.backward) / s)}
}

func (p passes) both() float64 { return float64(p.forward) + float64(p.backward) }

// slowed is how much longer than its peers' a unit took, as a ratio to theirs.
type slowed struct {
	by, theirs float64
	backward   bool
}

// beyond returns what a unit took longer than a device explains that was slower by so much.
func (s *slowed) beyond(device float64) float64 { return s.theirs * (s.by - device) }

// weighted returns the ratio with the time that it is of.
func (s *slowed) weighted() stats.Weighted { return stats.Weighted{Value: s.by, Weight: s.theirs} }

// withUnit adds a unit where it tells something of the device: its work is the peers'.
func withUnit(of []slowed, w *work) []slowed {
	if theirs := w.total() - float64(w.slow); w.compared && !w.unknown && !w.counted && theirs > 0 {
		return append(of, slowed{float64(w.slow) / theirs, theirs, w.backward})
	}
	return of
}

// uneven fills for each judged row of the cohort by how much its passes took longer than
// its device explains.
func (c *comparer) uneven(co *cohort) {
	for from := 0; from < len(c.works); {
		row, to := c.works[from].row, from
		for to < len(c.works) && c.works[to].row == row {
			to++
		}
		if o := &c.out[co.members[row]]; o.cohort == co.key && !o.lonely {
			o.passes = c.unevenRow(c.works[from:to])
		}
		from = to
	}
}

// unevenRow takes for each pass the unit that differs most from the device as a whole: the
// others add noise.
func (c *comparer) unevenRow(works []work) passes {
	c.slowed = c.slowed[:0]
	for i := range works {
		c.slowed = withUnit(c.slowed, &works[i])
	}
	f, b := leadingUnits(c.slowed, c.typicalSlowed())
	if f < 0 || b < 0 {
		return unknownPasses
	}
	// What the device was slower by is told by neither of both, and by other units for one
	// pass than for the other: else its noise would make them alike.
	var device [2]float64
	for half := range device {
		c.ratios = c.ratios[:0]
		n := 0
		for i := range c.slowed {
			if i == f || i == b {
				continue
			}
			if n++; n%2 == half {
				c.ratios = append(c.ratios, c.slowed[i].weighted())
			}
		}
		if len(c.ratios) == 0 {
			return unknownPasses
		}
		device[half] = stats.WeightedMedianLow(c.ratios)
	}
	return passes{float32(c.slowed[f].beyond(device[0])), float32(c.slowed[b].beyond(device[1]))}
}

// leadingUnits returns the unit of each pass that differs most from the device; -1 for none.
func leadingUnits(of []slowed, device float64) (forward, backward int) {
	at := [2]int{-1, -1}
	var most [2]float64
	for i := range of {
		pass := 0
		if of[i].backward {
			pass = 1
		}
		if x := math.Abs(of[i].beyond(device)); at[pass] < 0 || x > most[pass] {
			at[pass], most[pass] = i, x
		}
	}
	return at[0], at[1]
}

// typicalSlowed returns the ratio in the middle of the units' time, 0 of no unit.
func (c *comparer) typicalSlowed() float64 {
	c.ratios = c.ratios[:0]
	for i := range c.slowed {
		c.ratios = append(c.ratios, c.slowed[i].weighted())
	}
	return stats.WeightedMedianLow(c.ratios)
}
