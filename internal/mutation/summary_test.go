// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCount_EachVerdict_IsCounted(t *testing.T) {
	records := []Record{
		{Mutant: Mutant{Kind: Drop}, Quick: Killed},
		{Mutant: Mutant{Kind: Drop}, Quick: TimedOut},
		{Mutant: Mutant{Kind: Drop}, Quick: Alive, Full: Killed},
		{Mutant: Mutant{Kind: Logic}, Quick: Alive, Full: TimedOut},
		{Mutant: Mutant{Kind: Logic}, Quick: Alive, Full: Alive},
	}

	all, by := Count(records, func(r Record) string { return string(r.Kind) })

	assert.Equal(t, Counts{Quick: 2, QuickTimedOut: 1, FullOnly: 2, FullTimedOut: 1, Alive: 1}, all)
	assert.Equal(t, Counts{Quick: 2, QuickTimedOut: 1, FullOnly: 1}, by["drop"])
	assert.Equal(t, Counts{FullOnly: 1, FullTimedOut: 1, Alive: 1}, by["logic"])
	assert.Equal(t, 4, all.Dead())
	assert.InDelta(t, 0.5, all.Share(), 1e-12)
}

// Bounds of 81 in 263 are those of Newcombe (Statistics in Medicine 17, 1998), table I; all
// of n and none of n are n/(n+z²) and z²/(n+z²).
func TestWilson_PublishedShares_ReturnsTheirBounds(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, 0.2553, 0.3662},
		{5, 5, 0.5655, 1},
		{0, 5, 0, 0.4345},
		{0, 0, 0, 1},
	} {
		low, high := Wilson(c.k, c.n)
		assert.InDelta(t, c.low, low, 5e-5, "%d of %d", c.k, c.n)
		assert.InDelta(t, c.high, high, 5e-5, "%d of %d", c.k, c.n)
	}
}
