// SPDX-License-Identifier: Apache-2.0

package desync

import "slices"

// besides are the communicators with ranks that do not answer, by member.
type besides struct {
	of     map[int32][]int32 // communicators, by rank
	silent map[int32][]int32 // ranks that do not answer, by communicator
}

func (w *world) besides(asked []int32) *besides {
	b := &besides{of: map[int32][]int32{}, silent: map[int32][]int32{}}
	if len(asked) == 0 {
		return b
	}
	silent := map[int64]bool{}
	for _, v := range asked {
		silent[w.ranks[v].id] = true
	}
	for i, g := range w.a.groups.all {
		at := int32(i)
		for _, id := range g.members {
			if silent[id] {
				b.silent[at] = append(b.silent[at], w.index[id])
			}
		}
		if len(b.silent[at]) == 0 {
			continue
		}
		for _, id := range g.members {
			if v, ok := w.index[id]; ok {
				b.of[v] = append(b.of[v], at)
			}
		}
	}
	return b
}

// beside are the ranks that do not answer and share a communicator with one that is behind, which none
// of those is in that went on: there the one that is behind may wait.
func (b *besides) beside(w *world, late, victims []int32) (list []int32) {
	seen := map[int32]bool{}
	for _, r := range late {
		for _, at := range b.of[r] {
			if seen[at] {
				continue
			}
			seen[at] = true
			g := w.a.groups.all[at]
			if !slices.ContainsFunc(victims, func(v int32) bool { return g.has(w.ranks[v].id) }) {
				list = append(list, b.silent[at]...)
			}
		}
	}
	return compact(list)
}

// joinBeside makes one root of those that a rank which does not answer may be the reason of: the one
// that most wait for, with the candidates of all. That rank comes first.
func joinBeside(found []countRoot, waiting [][]int32) ([]countRoot, [][]int32) {
	first := -1
	var candidates []int32
	for i := range found {
		if !found[i].beside {
			continue
		}
		if first < 0 || len(waiting[i]) > len(waiting[first]) {
			first = i
		}
		candidates = append(candidates, found[i].candidates...)
	}
	if first < 0 {
		return found, waiting
	}
	silent := found[first].candidates[0]
	candidates = slices.DeleteFunc(compact(candidates), func(v int32) bool { return v == silent })
	found[first].candidates = append([]int32{silent}, candidates...)
	var kept []countRoot
	var waits [][]int32
	for i := range found {
		if i == first || !found[i].beside {
			kept, waits = append(kept, found[i]), append(waits, waiting[i])
		}
	}
	return kept, waits
}
