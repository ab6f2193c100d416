// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// evidence is what one window says of one peer's clock, of all paths and end points
// together: who has the least delay of them all decides.
type evidence struct {
	out, back []leg
	least     uint8 // kind of stamps that settle left
	answered  int64
	crossed   contradictions
}

// add takes what a path shows: every message, or with a tolerance only coded pairs
// that are pure to it. A message that was held up costs the envelope nothing, and
// one of a pair that is not pure may be the fastest there is. Paths are filtered
// apart: each has a noise of its own.
func (e *evidence) add(trips []trip, tolerance int64) (out, back purity) {
	all := tolerance == 0
	if all {
		tolerance = int64(PureWithin)
	}
	var legs []leg
	if legs, out = keepPure(trips, outLeg, tolerance); all || len(legs) == 0 {
		legs = single(trips, outLeg)
	}
	e.out = append(e.out, legs...)
	if legs, back = keepPure(trips, backLeg, tolerance); all || len(legs) == 0 {
		legs = single(trips, backLeg)
	}
	e.back = append(e.back, legs...)
	return out, back
}

// settle leaves the legs with the best stamps, in order of time, and returns the
// worst kind among those that stay. A stamp of user space bounds as well as
// one of the kernel, but so much worse that it would only give the edge its name.
func (e *evidence) settle() (worst uint8) {
	e.least = commonKind(e.out, e.back)
	worst = stamp.KindHardware
	for _, legs := range []*[]leg{&e.out, &e.back} {
		*legs = slices.DeleteFunc(*legs, func(l leg) bool { return l.kind < e.least })
		for i := range *legs {
			worst = min(worst, (*legs)[i].kind)
		}
		slices.SortFunc(*legs, func(a, b leg) int { return cmp.Compare(a.ours, b.ours) })
	}
	return worst
}

// commonKind is the best kind that at least one in leastShare of each direction's
// legs reaches.
func commonKind(directions ...[]leg) uint8 {
	least := uint8(stamp.KindHardware)
	for _, legs := range directions {
		var n [stamp.KindHardware + 1]int
		for i := range legs {
			n[legs[i].kind]++
		}
		kind, reach := uint8(stamp.KindHardware), n[stamp.KindHardware]
		for kind > 0 && reach*leastShare < len(legs) {
			kind--
			reach += n[kind]
		}
		least = min(least, kind)
	}
	return least
}
