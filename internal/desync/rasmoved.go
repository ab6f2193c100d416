// SPDX-License-Identifier: Apache-2.0

package desync

// before is the newest saved answer about a rank that is far enough from its last one; nil without one.
func (r *rank) before(last *view) (before *view) {
	for _, v := range r.votes {
		if last.time-v.time >= int64(SavedApart) && (before == nil || v.time > before.time) {
			before = v
		}
	}
	return before
}

// countsWentOn reports whether all ranks launched more between two saved answers, and those that are behind
// by more than they are behind: ranks of a job that runs differ so in any moment.
func (w *world) countsWentOn() bool {
	for _, r := range w.ranks {
		last := r.lastVote()
		if last == nil {
			continue
		}
		if before := r.before(last); before == nil || before.countsAs(last) {
			return false
		}
	}
	for _, l := range w.lags() {
		for _, fn := range l.fns {
			if !w.keptUp(&l, countKey{l.group, fn}) {
				return false
			}
		}
	}
	return true
}

// keptUp reports whether each member that is behind in a function has launched more of it since its
// answer before than it is behind.
func (w *world) keptUp(l *lag, k countKey) bool {
	top := int64(0)
	for _, m := range l.members {
		if n, known := m.view.launched(k); known {
			top = max(top, n)
		}
	}
	for _, m := range l.members {
		n, known := m.view.launched(k)
		if !known || n == top {
			continue
		}
		former, also := w.ranks[m.rank].before(m.view).launched(k)
		if !also || n-former <= top-n {
			return false
		}
	}
	return true
}

// ofARunningJob keeps what is decided for a person who knows that the job hung, and what no moment of
// a job that runs shows.
func (w *world) ofARunningJob(found []countRoot, waiting [][]int32) (kept []countRoot, waits [][]int32) {
	for i := range found {
		if r := &found[i]; certain(r) || w.a.saved.hung && !open(r.class) {
			kept, waits = append(kept, *r), append(waits, waiting[i])
		}
	}
	return kept, waits
}
