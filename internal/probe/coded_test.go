// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// coded makes the trips of pairs by how much later the second arrived than with the
// spacing of its sending.
func coded(stretch ...int64) []trip {
	var out []trip
	for i, s := range stretch {
		n, pair, at := uint32(2*i), uint32(i+1), int64(i)*1_000_000
		out = append(out,
			trip{seq: n, pair: pair, sent: at, out: leg{ok: true, ours: at, peer: at + 5000}},
			trip{seq: n + 1, pair: pair, sent: at + 700, out: leg{ok: true, ours: at + 700, peer: at + 5700 + s}})
	}
	return out
}

func TestPairsThatKeptTheirSpacingArePure(t *testing.T) {
	legs, p := keepPure(coded(0, 999, -999, 1001, -20_000, 1000), outLeg, 1000)
	assert.Equal(t, purity{pairs: 6, pure: 4}, p)
	assert.Len(t, legs, 8, "both packets of each")
	assert.Equal(t, int64(0), legs[0].ours)
	assert.Equal(t, int64(700), legs[1].ours)
	assert.Equal(t, int64(5_000_000), legs[6].ours)
}

func TestToleranceIsRaisedUntilOneInEightIsPure(t *testing.T) {
	stretch := make([]int64, 16)
	for i := range stretch {
		stretch[i] = int64(i+2) * 1000 // 2 µs to 17 µs
	}
	_, p := keepPure(coded(stretch...), outLeg, 1000)
	assert.Equal(t, purity{pairs: 16, pure: 2, widened: true}, p, "two of sixteen, the least disturbed")
	_, p = keepPure(coded(50_000), outLeg, 1000)
	assert.Equal(t, purity{pairs: 1, pure: 1, widened: true}, p, "a window of one pair has an estimate, too")
}

func TestHalfAPairIsNotPure(t *testing.T) {
	trips := coded(0, 0, 0)
	trips[1].out.ok = false                 // a stamp is missing
	trips = append(trips[:2], trips[3:]...) // the first of the second pair was lost
	legs, p := keepPure(trips, outLeg, 1000)
	assert.Equal(t, purity{pairs: 1, pure: 1}, p)
	assert.Len(t, legs, 2)
	assert.Len(t, single(trips, outLeg), 4)
	_, p = keepPure(nil, outLeg, 1000)
	assert.Zero(t, p)
}
