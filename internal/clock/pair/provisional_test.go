// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// Once something is settled, only a change brings up a provisional estimate: neither
// chance nor a wrong stamp does, in whichever window; a change of frequency does in its
// own. (Of a step nothing is said before there is enough after it.)
func TestOnlyAChangeIsProvisional(t *testing.T) {
	seeds := tier.N(t, 3, 6)
	for _, rate := range []float64{1, 5, 10, 100} {
		for _, wrong := range []float64{0, 0.01} {
			for _, by := range []change{{}, {drift: 500e-6}, {drift: -500e-6}} {
				if by != (change{}) && (wrong > 0 || rate < 5) {
					continue // at one exchange a second the last one may have been before it
				}
				t.Run(fmt.Sprintf("%v_per_s/%v_wrong/%+v", rate, wrong, by), func(t *testing.T) {
					settled, told, quiet := 0, 0, 0
					for seed := range uint64(seeds) {
						r := rand.New(rand.NewPCG(seed, 5))
						begin := change{t: origin, drift: 20e-6}
						tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{begin}}
						if by != (change{}) {
							tr.changes = append(tr.changes, change{t: origin + 42*second - 3*second/10, drift: begin.drift + by.drift})
						}
						delay := func(r *rand.Rand) int64 {
							d := veth(r)
							if r.Float64() < wrong {
								d -= int64(20_000 * r.ExpFloat64())
							}
							return d
						}
						known := false
						tr.probes(r, New(Config{}), rate, origin, origin+80*second, delay, func(closed int64, out []Estimate) {
							for _, o := range out {
								switch {
								case !o.Provisional:
									settled, known = settled+1, true
								case closed == origin+42*second && by != (change{}):
									told++
								case known:
									quiet++
								}
							}
						})
					}
					assert.Positive(t, settled)
					if by == (change{}) {
						assert.Zero(t, quiet)
					} else {
						assert.Equal(t, seeds, told)
					}
				})
			}
		}
	}
}
