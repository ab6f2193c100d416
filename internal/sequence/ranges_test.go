// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbersOf returns a set as a map.
func numbersOf(s Ranges) map[int64]bool {
	out := map[int64]bool{}
	for _, r := range s {
		for n := r.First; n <= r.Last; n++ {
			out[n] = true
		}
	}
	return out
}

func TestRanges_RandomSets_AsMaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	set := func() Ranges {
		var all []Range
		for range random.IntN(6) {
			first := random.Int64N(30)
			all = append(all, Range{first, first + random.Int64N(5)})
		}
		return Of(all)
	}
	for range 20_000 {
		a, b := set(), set()
		in, other := numbersOf(a), numbersOf(b)
		for name, of := range map[string]struct {
			got  Ranges
			want func(n int64) bool
		}{
			"union":     {a.Union(b), func(n int64) bool { return in[n] || other[n] }},
			"minus":     {a.Minus(b), func(n int64) bool { return in[n] && !other[n] }},
			"intersect": {a.Intersect(b), func(n int64) bool { return in[n] && other[n] }},
		} {
			require.NoError(t, of.got.check(0, 40), "%s of %v and %v", name, a, b)
			got := numbersOf(of.got)
			for n := range int64(40) {
				require.Equal(t, of.want(n), got[n], "%d in the %s of %v and %v", n, name, a, b)
				require.Equal(t, of.want(n), of.got.Has(n))
			}
			require.EqualValues(t, len(got), of.got.Count())
		}
		gaps := numbersOf(a.gaps())
		for n := range int64(40) {
			below := len(a) > 0 && n < a[len(a)-1].Last
			require.Equal(t, below && !in[n], gaps[n], "%d in the gaps of %v", n, a)
		}
	}
}

func TestRanges_Check_NamesTheRange(t *testing.T) {
	for _, s := range []Ranges{{{3, 2}}, {{-1, 2}}, {{0, 41}}, {{0, 2}, {2, 4}}, {{5, 6}, {1, 2}}} {
		assert.ErrorContains(t, s.check(0, 40), "want ranges in order, of numbers from 0 to 40")
	}
}
