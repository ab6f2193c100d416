// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

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

// beside is in how many communicators a rank is ahead of members that no answer lists, and behind them.
type beside struct{ ahead, behind int }

// AddBeside takes that a rank has launched more, or else less, of one communicator than members of which
// the newest answer does not say which ranks they are.
func (a *Analyzer) AddBeside(rank int64, ahead bool) {
	b, known := a.beside[rank]
	switch {
	case !known && len(a.beside) >= a.cfg.MaxRanks:
		return
	case ahead:
		b.ahead++
	default:
		b.behind++
	}
	a.beside[rank] = b
}

// beforeUnlisted notes the ranks that are ahead of members that an answer does not list, and may wait for them.
func (w *world) beforeUnlisted(ahead map[int32]bool) {
	for id, b := range w.a.beside {
		if r, ok := w.index[id]; ok && b.ahead > 0 {
			ahead[r] = true
		}
	}
}

// manyBehind is how many ranks do not fail at once, but wait for one another.
const manyBehind = 3

// foremostBehind decides where many ranks are behind in some communicator: most of them wait for one of
// the others, in messages, which are not counted, or in communicators of which an answer does not list all
// members. A rank that is behind in more communicators than the others is the one where each of them shares
// one with it in which it is behind them. Else, where they are not behind together, nothing is decided:
// ranks of one stage have more communicators than those of another.
func (w *world) foremostBehind(lags []lag, found []countRoot, waiting [][]int32) ([]countRoot, [][]int32) {
	in, apart := w.lagsOf(lags), false
	var first *countRoot
	all := map[int32]int{}
	for i := range found {
		r := &found[i]
		if r.class != model.ClassNotScheduled {
			continue
		}
		apart = apart || first != nil && !slices.Equal(first.ranks, r.ranks)
		first = cmp.Or(first, r)
		for _, v := range r.ranks {
			all[v] = in[v]
		}
	}
	if len(all) < manyBehind {
		return found, waiting
	}
	most := slices.Max(slices.Collect(maps.Values(all)))
	top := map[int32]bool{}
	for v, n := range all {
		top[v] = n == most
	}
	n := count(top)
	switch fewer := n < manyBehind && n < len(all); {
	case fewer && w.behindEach(lags, top):
		return onlyOf(found, waiting, top)
	case fewer, apart:
		return undecidedOf(found, waiting, slices.Sorted(maps.Keys(all)))
	}
	return found, waiting
}

// behindEach reports whether each rank of a set that is not among the foremost shares a communicator with
// one of these that is behind it there, or may share one of which the answer does not list all members.
func (w *world) behindEach(lags []lag, foremost map[int32]bool) bool {
	left := map[int32]bool{}
	for v, is := range foremost {
		if is && w.a.beside[w.ranks[v].id].behind > 0 {
			return true
		}
		if !is {
			left[v] = true
		}
	}
	for i := range lags {
		l := &lags[i]
		for _, m := range l.members {
			if foremost[m.rank] {
				maps.DeleteFunc(left, func(v int32, _ bool) bool { return l.ahead(v, m) })
			}
		}
	}
	return len(left) == 0
}

// ahead reports whether a rank has launched more of the communicator than a member.
func (l *lag) ahead(rank int32, than voter) bool {
	return slices.ContainsFunc(l.members, func(m voter) bool {
		less, _ := l.compare(than.view, m.view)
		return m.rank == rank && less
	})
}

// lagsOf is in how many communicators each rank is behind others, listed or not.
func (w *world) lagsOf(lags []lag) map[int32]int {
	in := map[int32]int{}
	for i := range lags {
		l := &lags[i]
		top := l.top()
		for _, m := range l.members {
			if less, _ := l.compare(m.view, top); less {
				in[m.rank]++
			}
		}
	}
	for id, b := range w.a.beside {
		if r, ok := w.index[id]; ok {
			in[r] += b.behind
		}
	}
	return in
}

func count(set map[int32]bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// onlyOf keeps of ranks that are behind those that the others may wait for.
func onlyOf(found []countRoot, waiting [][]int32, top map[int32]bool) (kept []countRoot, waits [][]int32) {
	for i := range found {
		r := &found[i]
		if r.class == model.ClassNotScheduled {
			left := slices.DeleteFunc(slices.Clone(r.ranks), func(v int32) bool { return !top[v] })
			if len(left) == 0 {
				continue
			}
			r.ranks = left
			r.notes = append(r.notes, "it is behind in more communicators than others that are behind: these may wait for it")
		}
		kept, waits = append(kept, *r), append(waits, waiting[i])
	}
	return kept, waits
}

// undecidedOf makes one root of ranks that are behind, where nothing shows which rank waits for which.
func undecidedOf(found []countRoot, waiting [][]int32, candidates []int32) (kept []countRoot, waits [][]int32) {
	first := -1
	for i := range found {
		if found[i].class == model.ClassNotScheduled && (first < 0 || len(waiting[i]) > len(waiting[first])) {
			first = i
		}
	}
	for i := range found {
		r := &found[i]
		switch {
		case i == first:
			r.class, r.candidates, r.ranks = model.ClassIncompleteEvidence, candidates, nil
			r.notes = append(r.notes, "ranks are behind in several communicators, and may wait for one another in messages, which RAS does not count")
		case r.class == model.ClassNotScheduled:
			continue
		}
		kept, waits = append(kept, *r), append(waits, waiting[i])
	}
	return kept, waits
}
