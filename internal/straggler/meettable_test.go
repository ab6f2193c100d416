// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table holds what a map does, step after step, with few keys and with many.
func TestMeetTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var table meetTable
	for _, keys := range []int{100, 90, 0, 5000, 4000, 3, 20, 3000} {
		table.reset(keys)
		want := map[meetKey]*gathering{}
		for range keys {
			k := meetKey{meet: uint32(rng.IntN(3)), src: int32(rng.IntN(4)) - 1, dst: int32(rng.IntN(4)) - 1, number: rng.Int64N(int64(keys))}
			at := table.at(k)
			require.Same(t, want[k], *at)
			if *at == nil {
				*at = &gathering{}
				want[k] = *at
			}
		}
		require.Len(t, table.first, len(want))
	}
}

// inverse returns what an odd number times gives 1.
func inverse(of uint64) uint64 {
	x := of
	for range 6 {
		x *= 2 - of*x
	}
	return x
}

// Numbers that were chosen so that all keys are one under a mix that only adds its parts do not
// make a step slow: an operation is found in a few looks.
func TestChosenNumbersMakeNoTableSlow(t *testing.T) {
	const odd, keys = 0x9e3779b97f4a7c15, 20_000
	for name, number := range map[string]func(ranks uint64) int64{
		"counted":  func(ranks uint64) int64 { return int64(ranks) },
		"the same": func(uint64) int64 { return 7 },
		"far":      func(ranks uint64) int64 { return int64(ranks << 40) },
		"chosen": func(ranks uint64) int64 {
			return int64(bits.RotateLeft64(bits.RotateLeft64(ranks*odd, 23), -47) * inverse(odd))
		},
	} {
		var table meetTable
		table.reset(keys)
		for i := range int32(keys) {
			k := meetKey{src: 0, dst: i + 1, number: number(uint64(i + 1))}
			*table.at(k) = &gathering{}
		}
		looks, mask := 0, uint64(len(table.slots)-1)
		for at, slot := range table.slots {
			if slot != 0 {
				looks += 1 + int((uint64(at)-table.hash(table.keys[slot-1]))&mask)
			}
		}
		// At most half of the slots are taken: 1.5 looks each on average (Knuth, TAOCP 6.4).
		require.Less(t, float64(looks)/keys, 2.0, name)
	}
}
