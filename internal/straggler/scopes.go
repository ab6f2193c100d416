// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
)

// scopeMap tells at each instant in which scope the host was: the one that began
// last of those that were open. They need not be nested: ranges that a program
// begins in one place and ends in another overlap as they like.
type scopeMap []piece

// scopeMap builds the map from the rank's scopes: those of the thread that keeps the
// host, since what another is in does not. Where none was open, the key is otherKey.
func (v *rankView) scopeMap() scopeMap {
	out := v.scope[:0]
	if !v.scopes {
		if v.end > v.start {
			out = append(out, piece{start: v.start, end: v.end})
		}
		return out
	}
	var open []activity
	at, keeps := v.start, v.hostThread()
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
		if a.kind != actScope || a.end <= v.start || a.start >= v.end || (keeps != anyThread && a.lane != keeps && a.lane != 0) {
			continue
		}
		advance(a.start)
		a.cause = a.cause.within(open, a.end)
		open = append(open, a)
	}
	advance(v.end)
	return out
}

// What hostThread returns instead of a thread; one that is not known is 0.
const (
	anyThread int64 = -1 - iota
	noThread
)

// hostThread returns the thread that keeps the host: the one that bears the process's
// number, if it has scopes in this step, else the only one in the program's own work, as where a
// framework trains in a thread of its own. A thread that only loads or collects may do
// so in the background: in a process whose number is known, nothing is told by it.
func (v *rankView) hostThread() int64 {
	pid := v.rank.PID.Or(0)
	if pid == 0 {
		return anyThread
	}
	trains := noThread
	several := false
	for i := range v.acts {
		a := &v.acts[i]
		switch {
		case a.kind != actScope || a.lane == 0:
		case a.lane == pid:
			return pid
		case a.cause == byProgram:
			several = several || (trains != noThread && trains != a.lane)
			trains = a.lane
		}
	}
	if several {
		return noThread
	}
	return trains
}

// scoped reports whether any scope of the rank was recorded.
func (v *rankView) scoped() bool { return v.scopes }

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
