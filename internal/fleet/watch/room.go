// SPDX-License-Identifier: Apache-2.0

package watch

// need is what a job asks for of a count that is bounded for all jobs together.
type need struct {
	of                func(*job) int // what one job holds
	held, more, limit int
}

func rankCount(j *job) int   { return len(j.ranks) }
func commCount(j *job) int   { return len(j.comms) }
func memberCount(j *job) int { return j.members }

func (w *Watch) needRanks(more int) need { return need{rankCount, w.ranks, more, w.cfg.MaxRanks} }

func (w *Watch) needComms(more int) need { return need{commCount, w.comms, more, w.cfg.MaxComms} }

func (w *Watch) needMembers(more int) need {
	return need{memberCount, w.members, more, w.cfg.MaxMembers}
}

// makeRoom gives up jobs for one that needs more. It is false, and gives up none, where the job that
// needs more would have to leave itself.
func (w *Watch) makeRoom(beside *job, needs ...need) bool {
	var leavers []*job
	gone := map[*job]bool{}
	for _, n := range needs {
		held := n.held
		for _, j := range leavers {
			held -= n.of(j)
		}
		for held+n.more > n.limit {
			j := w.leaver(beside, &n, gone)
			if j == beside || gone[j] || n.of(j) == 0 { // no job that is left holds any
				return false
			}
			leavers, gone[j] = append(leavers, j), true
			held -= n.of(j)
		}
	}
	for _, j := range leavers {
		w.evict(j)
	}
	return true
}

// leaver returns the job that leaves first for what another one needs, but for those that are gone.
func (w *Watch) leaver(beside *job, n *need, gone map[*job]bool) *job {
	return w.room.LargestBy(func(j *job) int {
		switch {
		case gone[j]:
			return 0
		case j == beside:
			return n.of(j) + n.more
		}
		return n.of(j)
	})
}
