// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"
	"strings"
)

// lacked is the first operation of a function that a rank has not launched; seq counts from 1, as RAS does.
type lacked struct {
	fn  int32
	seq int64
}

// name fills in the first operation that the ranks behind lack, which are in order: the one that most members have
// launched. An operation that follows it some members may have launched as well, and not all.
func (l *lag) name(w *world, to *countRoot, behind []int32) {
	most := 0
	for _, fn := range l.fns {
		least, ahead, differs := l.least(fn, behind)
		if differs {
			to.launched = append(to.launched, w.spread(l, fn))
		}
		switch {
		case ahead == 0 || ahead < most:
		case ahead > most:
			to.lacks, most = []lacked{{fn, least + 1}}, ahead
		default:
			to.lacks = append(to.lacks, lacked{fn, least + 1})
		}
	}
	if len(to.lacks) > 1 {
		to.notes = append(to.notes, "operations of several functions are lacking, and counts do not give the order of these")
	}
}

// least returns how much of a function the ranks behind have launched at least, how many members have
// launched more, and whether any two members differ.
func (l *lag) least(fn int32, behind []int32) (least int64, ahead int, differs bool) {
	k, known := countKey{l.group, fn}, false
	for _, m := range l.members {
		if _, is := slices.BinarySearch(behind, m.rank); !is {
			continue
		}
		if n, is := m.view.launched(k); is && (!known || n < least) {
			least, known = n, true
		}
	}
	first := none
	for _, m := range l.members {
		n, is := m.view.launched(k)
		if !is {
			continue
		}
		if known && n > least {
			ahead++
		}
		differs = differs || first != none && n != first
		first = n
	}
	return least, ahead, differs
}

// lackedText names the operation of a root; several where counts do not decide.
func (w *world) lackedText(r *countRoot) string {
	var all []string
	for _, o := range r.lacks {
		all = append(all, ncclName(w.a.names.texts[o.fn])+" "+number(o.seq))
	}
	return strings.Join(all, " or ")
}

// launchedText is how much of what a root is about a rank has launched.
func (w *world) launchedText(v *view, r *countRoot) string {
	var all []string
	for _, o := range r.lacks {
		n, known := v.launched(countKey{r.group, o.fn})
		switch {
		case !known:
		case len(r.lacks) == 1:
			all = append(all, number(n))
		default:
			all = append(all, ncclName(w.a.names.texts[o.fn])+" "+number(n))
		}
	}
	if len(all) == 0 {
		return "answers"
	}
	return "launched " + strings.Join(all, ", ")
}
