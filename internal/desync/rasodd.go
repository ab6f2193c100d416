// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// mismatch finds members that called another function in the place of the others': of two counts
// neither has all of the other. Members of a communicator call the same functions in one order, so
// that no moment of a job that runs shows this. Who ran ahead, or is the root of broadcasts, has all
// that the others have, and is not odd.
func (l *lag) mismatch(w *world) (to countRoot, victims []int32, ok bool) {
	odd, open, ok := l.odd()
	if !ok {
		return to, nil, false
	}
	var differ, either []int32
	for i, set := range l.sets {
		for _, m := range set {
			switch {
			case odd[i]:
				differ = append(differ, m.rank)
			case open[i]:
				either = append(either, m.rank)
			default:
				victims = append(victims, m.rank)
			}
		}
	}
	to.class, to.group, to.ranks = model.ClassMismatchOp, l.group, compact(differ)
	switch {
	case len(victims) == 0:
		to.ranks, to.sides = compact(append(differ, either...)), true
	case len(either) > 0:
		to.ranks, to.candidates = nil, compact(append(differ, either...))
	}
	slices.Sort(victims)
	l.name(w, &to, append(to.ranks, to.candidates...))
	to.notes = append(to.notes, "each of them has launched what others have not: members of a communicator launch the same operations in one order")
	return to, victims, true
}

// odd tells the sets apart by which of them fit into one order of operations. Those that no greatest
// number of members fits with are odd; those that only some do are open. ok: any two do not fit.
func (l *lag) odd() (odd, open []bool, ok bool) {
	less, clash := l.relations()
	if clash == nil {
		return nil, nil, false
	}
	n := len(l.sets)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return less[a] - less[b] })
	upTo, from, most, all := make([]int, n), make([]int, n), 0, 0
	heaviest := func(i int, others []int, to []int) {
		for _, k := range others {
			if !clash[i*n+k] {
				to[i] = max(to[i], to[k])
			}
		}
		to[i] += len(l.sets[i])
	}
	for at, i := range order {
		heaviest(i, order[:at], upTo)
		most, all = max(most, upTo[i]), all+len(l.sets[i])
	}
	for at := n - 1; at >= 0; at-- {
		heaviest(order[at], order[at+1:], from)
	}
	odd, open = make([]bool, n), make([]bool, n)
	for i := range odd {
		odd[i] = upTo[i]+from[i]-len(l.sets[i]) < most
	}
	for i := range open {
		for k := range n {
			open[i] = open[i] || !odd[i] && !odd[k] && clash[i*n+k]
		}
		open[i] = open[i] || !odd[i] && 2*most <= all // no more than half of the members fit together
	}
	return odd, open, true
}

// relations compares each two sets: how many have launched less than a set, and whether two of them,
// at i*n+k, have each launched what the other has not; nil where no two have.
func (l *lag) relations() (less []int, clash []bool) {
	n := len(l.sets)
	less = make([]int, n)
	for i := range n {
		for k := range i {
			fewer, more := l.compare(l.sets[i][0].view, l.sets[k][0].view)
			switch {
			case fewer && more:
				if clash == nil {
					clash = make([]bool, n*n)
				}
				clash[i*n+k], clash[k*n+i] = true, true
			case fewer:
				less[k]++
			case more:
				less[i]++
			}
		}
	}
	return less, clash
}
