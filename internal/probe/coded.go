// SPDX-License-Identifier: Apache-2.0

package probe

import "slices"

// leastShare: where fewer than one in leastShare pairs stay pure, the path is too
// noisy for the tolerance, which is then raised to what as many meet.
const leastShare = 8

// purity is what the filter of coded pairs found in one direction of a window.
type purity struct {
	pairs, pure int64
	// widened: the tolerance was raised, since too few pairs met it.
	widened bool
}

// keepPure returns the legs of coded pairs that arrived with the spacing with
// which they were sent, to a tolerance in ns: a queue met by one of both, or a stamp
// that lies about one, changes it. Trips are ordered by number. Both packets of a
// pair can be delayed alike, so what is kept is no proof; the envelope stands behind
// it.
func keepPure(trips []trip, of direction, tolerance int64) ([]leg, purity) {
	type pair struct{ first, second *leg }
	var pairs []pair
	var spacings []int64
	for i := 1; i < len(trips); i++ {
		a, b := &trips[i-1], &trips[i]
		if a.pair == 0 || a.pair != b.pair || b.seq != a.seq+1 {
			continue
		}
		first, second := of(a), of(b)
		if !first.ok || !second.ok {
			continue
		}
		pairs = append(pairs, pair{first, second})
		spacings = append(spacings, spacing(first, second))
	}
	p := purity{pairs: int64(len(pairs))}
	if len(pairs) == 0 {
		return nil, p
	}
	sorted := slices.Sorted(slices.Values(spacings))
	if enough := sorted[(len(sorted)-1)/leastShare]; enough > tolerance {
		tolerance, p.widened = enough, true
	}
	legs := make([]leg, 0, 2*len(pairs))
	for i, s := range spacings {
		if s <= tolerance {
			legs = append(legs, *pairs[i].first, *pairs[i].second)
			p.pure++
		}
	}
	return legs, p
}

// single returns the legs of a direction that have both stamps, pure or not.
func single(trips []trip, of direction) []leg {
	var legs []leg
	for i := range trips {
		if l := of(&trips[i]); l.ok {
			legs = append(legs, *l)
		}
	}
	return legs
}
