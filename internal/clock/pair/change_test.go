// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Changes of any size, steps and frequencies at once, on clocks that wander: as long
// as they are as far apart as the package asks for, the bounds hold.
func TestBoundsContainTheTruthThroughAnyChange(t *testing.T) {
	for _, rate := range []float64{1, 10, 100, 1000} {
		for _, d := range delays {
			t.Run(fmt.Sprintf("%s/%v_per_s", d.name, rate), func(t *testing.T) {
				for seed := range runsOf(rate) {
					r := rand.New(rand.NewPCG(seed, 99))
					tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{{t: origin}}}
					apart, until := 1_800_000_000, 40*second
					if rate == 1 {
						apart, until = 14_000_000_000, 160*second
					}
					e, drift, next := New(Config{}), 0.0, origin+int64(apart)
					for at := origin + second/10; at < origin+until; at += second / 10 {
						// Of the 20 and more changes in a window none leads further than 0.1 ppm.
						c := change{t: at, drift: drift + 0.1e-6*r.Float64()}
						if at >= next {
							c.t += r.Int64N(second / 10)
							if r.Float64() < 0.7 {
								drift = 900e-6 * (2*r.Float64() - 1) * math.Pow(10, -4*r.Float64())
								c.drift = drift
							}
							if r.Float64() < 0.5 {
								c.step = int64((2*r.Float64() - 1) * math.Pow(10, 2+7*r.Float64()))
							}
							next = at + int64(apart) + r.Int64N(3*second)
						}
						tr.changes = append(tr.changes, c)
					}
					tr.probes(r, e, rate, origin, origin+until, d.delay, func(_ int64, out []Estimate) {
						for _, o := range out {
							tr.check(t, r, o)
						}
					})
				}
			})
		}
	}
}
