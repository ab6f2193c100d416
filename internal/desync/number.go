// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"slices"
)

// renumber gives communicators and functions numbers by what they are, not by which rank came
// first: where two operations tell equally well, the lower number does.
func (a *Analyzer) renumber(ranks []*rank) {
	groups := order(a.groups.all, func(x, y *group) int {
		return cmp.Or(cmp.Compare(x.comm.ID, y.comm.ID), cmp.Compare(x.scope, y.scope), slices.Compare(x.members, y.members))
	})
	fns := order(a.names.texts, cmp.Compare[string])
	a.groups.all, a.names.texts = moved(a.groups.all, groups), moved(a.names.texts, fns)
	a.groups.byKey, a.groups.pending, a.groups.last, a.names.byText = nil, groupsByID{}, nil, nil // nothing is added any more
	for _, r := range ranks {
		for _, v := range append(r.votes, r.view) {
			if v != nil {
				v.renumber(groups, fns)
			}
		}
	}
}

func (v *view) renumber(groups, fns []int32) {
	for i := range v.comms {
		c := &v.comms[i]
		c.group = groups[c.group]
		for j := range c.fronts {
			c.fronts[j].fn = fns[c.fronts[j].fn]
		}
	}
	slices.SortFunc(v.comms, func(x, y comm) int { return cmp.Compare(x.group, y.group) })
	for _, list := range [][]op{v.open, v.done} {
		for i := range list {
			list[i].group, list[i].fn = groups[list[i].group], fns[list[i].fn]
		}
	}
}

// order returns the place of each element among all, sorted.
func order[T any](all []T, compare func(x, y T) int) []int32 {
	by := make([]int32, len(all))
	for i := range by {
		by[i] = int32(i)
	}
	slices.SortStableFunc(by, func(x, y int32) int { return compare(all[x], all[y]) })
	places := make([]int32, len(all))
	for place, i := range by {
		places[i] = int32(place)
	}
	return places
}

func moved[T any](all []T, places []int32) []T {
	out := make([]T, len(all))
	for i, place := range places {
		out[place] = all[i]
	}
	return out
}
