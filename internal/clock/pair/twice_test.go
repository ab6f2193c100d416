// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Both clocks change their frequency, the one 2.5 rounds of coded pairs after the other
// or a little more, by as little as bends the offset inside the zone of the delays: no
// envelope crosses, and neither what is before an interval nor what is after it is free
// of a change.
func TestBoundsContainTheTruthWhereBothFrequenciesChange(t *testing.T) {
	const seeds = 40
	runs, some := 0, tier.N(t, 5, seeds)
	for _, d := range []struct {
		name  string
		delay func(*rand.Rand) int64
	}{{"idle", veth}, {"slow", slow}} {
		for _, rate := range []float64{1, 10, 100, 1000} {
			for _, by := range []float64{5e-6, 20e-6, 50e-6} {
				t.Run(fmt.Sprintf("%s/%v_per_s/%v_ppm", d.name, rate, by*1e6), func(t *testing.T) {
					apart := max(second/4, int64(5*float64(second)/rate))
					length := 40 * max(apart, second)
					checked, missed, worst := 0, 0, int64(0)
					for range some {
						seed := uint64(runs % seeds) // the quick tier's differ between cases
						runs++
						r := rand.New(rand.NewPCG(seed, 7))
						tr := &truth{base: r.Int64N(1e15), origin: origin, changes: together(r, by, apart, length)}
						tr.rounds(r, New(Config{}), rate, origin, origin+length, d.delay, func(out []Estimate) {
							for _, o := range out {
								for k := range int64(9) {
									checked++
									if off := tr.outside(o, o.From+(o.Until-o.From)*k/8); off > 0 {
										missed++
										worst = max(worst, off)
									}
								}
							}
						})
					}
					assert.Zero(t, missed, "of %d readings, by up to %d ns", checked, worst)
					assert.Greater(t, checked, 25*some)
				})
			}
		}
	}
}

// together are the changes of two clocks, so far apart or a fifth more: of the one, of the
// other, and a while later back again.
func together(r *rand.Rand, by float64, apart, length int64) []change {
	out := []change{{t: origin, drift: 20e-6}}
	var rates [2]float64
	for at := origin; at < origin+length; {
		at += 6*apart + r.Int64N(4*apart)
		first := r.IntN(2)
		for _, clock := range [2]int{first, 1 - first} {
			if rates[clock] == 0 {
				rates[clock] = by * float64(1-2*r.IntN(2))
			} else {
				rates[clock] = 0
			}
			out = append(out, change{t: at, drift: 20e-6 + rates[0] - rates[1]})
			at += apart + r.Int64N(apart/5)
		}
	}
	return out
}

// rounds feeds coded pairs as probers send them: each round in another order of the
// neighbours.
func (tr *truth) rounds(r *rand.Rand, e *Estimator, rate float64, from, until int64, delay func(*rand.Rand) int64, window func(out []Estimate)) {
	const neighbours, twin = 7, 15_000
	interval := int64(2 * float64(second) / rate)
	closing := from + int64(e.cfg.Window)
	for round := from; round < until; round += interval {
		t := round + r.Int64N(neighbours)*interval/neighbours
		for ; t >= closing; closing += int64(e.cfg.Window) {
			window(e.Close(closing))
		}
		for range 2 {
			e.Upper(t, tr.dst(t+delay(r)), 0)
			back := t + 20_000
			e.Lower(back+delay(r), tr.dst(back), 0)
			t += twin
		}
	}
}
