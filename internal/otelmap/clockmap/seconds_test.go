// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exactly returns s seconds in ns without any rounding.
func exactly(s float64) *big.Float {
	return new(big.Float).SetPrec(200).Mul(new(big.Float).SetPrec(200).SetFloat64(s), big.NewFloat(1e9))
}

func TestSecondsAreRoundedOutwards(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		ns := int64(rng.Uint64()) >> rng.IntN(64)
		want := new(big.Float).SetPrec(200).SetInt64(ns)
		require.LessOrEqual(t, exactly(secondsDown(ns)).Cmp(want), 0, "%d", ns)
		require.GreaterOrEqual(t, exactly(secondsUp(ns)).Cmp(want), 0, "%d", ns)
		if ns > -exactFloat && ns < exactFloat {
			require.LessOrEqual(t, secondsUp(ns)-secondsDown(ns), 2*math.Abs(math.Nextafter(float64(ns)/1e9, math.Inf(1))-float64(ns)/1e9))
		}
	}
	assert.InDelta(t, 0.5, secondsDown(500_000_000), 0, "what is exact stays")
}

func TestNanosAreRoundedOutwards(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		s := rng.NormFloat64() * math.Pow(10, float64(rng.IntN(18)-9))
		down, ok := nanosDown(s)
		require.True(t, ok)
		up, ok := nanosUp(s)
		require.True(t, ok)
		require.LessOrEqual(t, new(big.Float).SetPrec(200).SetInt64(down).Cmp(exactly(s)), 0)
		require.GreaterOrEqual(t, new(big.Float).SetPrec(200).SetInt64(up).Cmp(exactly(s)), 0)
	}
	for _, s := range []float64{1e10, -1e10, math.NaN(), math.Inf(1)} {
		_, ok := nanosUp(s)
		assert.False(t, ok, "%v", s)
	}
}
