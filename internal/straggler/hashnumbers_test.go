// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDistinctHashesAreNumberedInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var d hashNumbers
	for _, n := range []int{0, 1, 3000, 100, 17, 3000} {
		d.reset()
		want := map[uint64]int32{}
		for range n {
			h := rng.Uint64N(uint64(n)) << 40
			if _, ok := want[h]; !ok {
				want[h] = int32(len(want))
			}
			require.Equal(t, want[h], d.number(h))
		}
		require.Len(t, d.of, len(want))
	}
	for range 2 {
		d.reset()
		d.number(1)
	}
	assert.LessOrEqual(t, len(d.slots), 16*roomy, "room of a larger step is let go")
}
