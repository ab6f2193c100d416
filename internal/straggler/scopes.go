package straggler

import (
	"cmp"
	"slices"
)

// scopeMap tells at each instant in which scope the host was: the one that began
// last of those that were open. They need not be nested: ranges that a program
// begins in one place and ends in another overlap as they like.
type scopeMap []piece

// scopes builds the map from the rank's scopes: those of its main thread, where that
// has any, since what another thread is in does not keep it. Where none was open, the
// key is otherKey.
func (v *rankView) scopes() scopeMap {
	var open []activity
	var out scopeMap
	at, main := v.start, v.mainThread()
	advance := func(to int64) {
		for len(open) > 0 && at < to {
			top := open[len(open)-1]
			if end := min(top.end, to); end > at {
				out = append(out, piece{start: at, end: end, key: top.key, cause: top.cause})
				at = end
			}
			if top.end > to {
				return
			}
			open = open[:len(open)-1]
		}
		if to > at {
			out = append(out, piece{start: at, end: to})
			at = to
		}
	}
	for _, a := range v.acts { // sorted by start, the longer first
		if a.kind != actScope || a.end <= v.start || a.start >= v.end || (main != 0 && a.lane != main) {
			continue
		}
		advance(a.start)
		a.cause = a.cause.within(open, a.end)
		open = append(open, a)
	}
	advance(v.end)
	return out
}

// mainThread returns the thread that bears the process's number, if it has scopes in
// this step, else 0.
func (v *rankView) mainThread() int64 {
	pid := v.rank.PID.Or(0)
	for i := range v.acts {
		if a := &v.acts[i]; a.kind == actScope && a.lane == pid {
			return pid
		}
	}
	return 0
}

// scoped reports whether any scope of the rank was recorded.
func (v *rankView) scoped() bool {
	return slices.ContainsFunc(v.acts, func(a activity) bool { return a.kind == actScope })
}

// share calls f with each scope and its share of the time from start to end.
func (m scopeMap) share(start, end int64, f func(in *piece, d int64)) {
	i, found := slices.BinarySearchFunc(m, start, func(p piece, t int64) int { return cmp.Compare(p.start, t) })
	if !found {
		i--
	}
	for i = max(i, 0); i < len(m) && m[i].start < end; i++ {
		if d := min(m[i].end, end) - max(m[i].start, start); d > 0 {
			f(&m[i], d)
		}
	}
}
