// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slow are delays of a machine with other work: the soonest packets are far apart, so that
// a bent line passes between both envelopes.
func slow(r *rand.Rand) int64 { return 600 + int64(4000*math.Exp(1.2*r.NormFloat64())) }

// A change of frequency in the first second, as of clocks that begin to be disciplined, must
// not be felt any more once a window of evidence came after it: neither in the estimate,
// nor as a sigma that says nothing for half a minute.
func TestEstimatesForgetAChange(t *testing.T) {
	for _, rate := range []float64{100, 1000} {
		for _, ppm := range []float64{5, 14, 50, 500} {
			t.Run(fmt.Sprintf("%v_ppm/%v_per_s", ppm, rate), func(t *testing.T) {
				var with, without measured
				for seed := range uint64(8) {
					for m, at := range map[*measured]int64{&with: origin + 1_300_000_000, &without: origin} {
						r := rand.New(rand.NewPCG(seed, 3))
						tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}, {at, (20 + ppm) * 1e-6, 0}}}
						tr.probes(r, New(Config{}), rate, origin, origin+12*second, slow, func(_ int64, out []Estimate) {
							for _, o := range out {
								if o.From > origin+3*second {
									m.add(tr, o)
								}
							}
						})
					}
				}
				require.Greater(t, len(with.errors), 20)
				t.Logf("error with the change p50 %.0f max %.0f sigma %.0f; without p50 %.0f max %.0f sigma %.0f",
					quantile(with.errors, 0.5), quantile(with.errors, 1), quantile(with.sigmas, 0.5),
					quantile(without.errors, 0.5), quantile(without.errors, 1), quantile(without.sigmas, 0.5))
				assert.Zero(t, with.outside)
				assert.LessOrEqual(t, quantile(with.errors, 1), 2*quantile(without.errors, 1))
				assert.LessOrEqual(t, quantile(with.sigmas, 0.5), 3*quantile(without.sigmas, 0.5))
			})
		}
	}
}

// Where a direction or a while is without samples nothing is known, which is no change.
func TestGapsAreNoChanges(t *testing.T) {
	for seed := range uint64(20) {
		e := New(Config{})
		tr := &truth{base: -12_345_678, origin: origin, changes: []change{{origin, -35e-6, 0}}}
		few := traffic{name: "few calls", calls: 0.5, twoSided: true}
		few.feed(rand.New(rand.NewPCG(seed, 1)), tr, e, func([]Estimate) {})
		assert.Zero(t, e.Stats().Changes, "seed %d", seed)
	}
}
