// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Both clocks change every 2 to 6 s, each by itself, and so more often than the
// package asks for: the bounds hold nevertheless, where samples come between.
func TestBoundsContainTheTruthWhereBothClocksChange(t *testing.T) {
	const seeds = 40
	runs, some := 0, tier.N(t, 5, seeds)
	for _, c := range []change{{step: 100_000_000}, {drift: 500e-6}, {drift: 50e-6}} {
		for _, rate := range []float64{10, 100} {
			t.Run(fmt.Sprintf("%v_ppm_%d_ns/%v_per_s", c.drift*1e6, c.step, rate), func(t *testing.T) {
				checked, missed := 0, 0
				for range some {
					seed := uint64(runs % seeds) // the quick tier's differ between cases
					runs++
					r := rand.New(rand.NewPCG(seed, 7))
					tr := &truth{base: r.Int64N(1e15), origin: origin, changes: both(r, c, 60*second)}
					e := New(Config{})
					tr.probes(r, e, rate, origin, origin+60*second, veth, func(_ int64, out []Estimate) {
						for _, o := range out {
							for k := range int64(9) {
								at := o.From + (o.Until-o.From)*k/8
								checked++
								if tr.outside(o, at) > 0 {
									missed++
								}
							}
						}
					})
				}
				assert.Zero(t, missed, "readings that the truth is outside of")
				assert.Greater(t, checked, 250*some, "readings that estimates speak of")
			})
		}
	}
}

// both are the changes of an offset between two clocks: each is stepped either way, or
// changes its frequency and changes it back. Two changes that no sample comes between
// cannot be seen.
func both(r *rand.Rand, by change, length int64) []change {
	var each []change
	for range 2 {
		sign := 1.0
		for at, n := origin, 0; at < origin+length; n++ {
			at += 2*second + r.Int64N(4*second)
			if by.step != 0 || n%2 == 0 {
				sign = float64(1 - 2*r.IntN(2))
			} else {
				sign = -sign
			}
			each = append(each, change{t: at, drift: sign * by.drift, step: int64(sign) * by.step})
		}
	}
	slices.SortFunc(each, func(a, b change) int { return cmp.Compare(a.t, b.t) })
	out := []change{{t: origin, drift: 20e-6}}
	drift := 20e-6
	for _, c := range each {
		drift += c.drift
		out = append(out, change{max(c.t, out[len(out)-1].t+second/4), min(max(drift, -900e-6), 900e-6), c.step})
	}
	return out
}
