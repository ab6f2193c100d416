// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The median of all others is that of the values without one of them, whichever it is.
func TestMedianOfTheOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 2; n <= 12; n++ {
		for range 50 {
			v := make([]float64, n)
			for i := range v {
				v[i] = float64(rng.IntN(2 * n)) // ties, too
			}
			m := middleOf(slices.Clone(v))
			for i := range v {
				rest := slices.Sorted(slices.Values(slices.Delete(slices.Clone(v), i, i+1)))
				k := len(rest) / 2
				want := rest[k]
				if len(rest)%2 == 0 {
					want = (rest[k-1] + rest[k]) / 2
				}
				assert.InDelta(t, want, m.others(v[i]), 1e-12, "%v without %v", v, v[i])
			}
		}
	}
}
