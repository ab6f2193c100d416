// SPDX-License-Identifier: Apache-2.0

package judge

import "testing"

// The nearer to any of its gates, the less certain; and nothing is ever certain.
func TestConfidenceGrowsWithTheDistanceFromGates(t *testing.T) {
	of := func(change func(*Conclusion, *features)) float64 {
		c, f := Conclusion{Rung: RungRole, Share: 1, Steps: 64, Chance: 1e-12}, features{gate: 0.04, limit: 1e-3}
		change(&c, &f)
		return confidence(&c, &f)
	}
	for name, change := range map[string]func(c *Conclusion, f *features, x float64){
		"excess": func(c *Conclusion, f *features, x float64) { c.Share = f.gate * x },
		"steps":  func(c *Conclusion, _ *features, x float64) { c.Steps = int(4 * x) },
		"pauses": func(_ *Conclusion, f *features, x float64) { f.events = int(4 * x) },
		"chance": func(c *Conclusion, f *features, x float64) { c.Chance = f.limit / x },
		"few each": func(c *Conclusion, f *features, x float64) {
			c.Share, c.Steps, c.Chance = f.gate*x, int(4*x), f.limit/x
		},
	} {
		last := 0.0
		for _, x := range []float64{1, 1.5, 4, 12} {
			got := of(func(c *Conclusion, f *features) { change(c, f, x) })
			if got < last || got >= 1 {
				t.Errorf("%s, %g times the gate: got %g after %g", name, x, got, last)
			}
			last = got
		}
		if first := of(func(c *Conclusion, f *features) { change(c, f, 1) }); first >= last {
			t.Errorf("%s: got %g just past the gate, and %g far from it", name, first, last)
		}
	}
	if got := of(func(c *Conclusion, f *features) { f.pair = true }); got != pairConfidence {
		t.Errorf("got %g of a pair, want %g", got, pairConfidence)
	}
}
