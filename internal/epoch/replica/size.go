// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/bounded"
)

// holder has the groups of one job.
type holder struct {
	job    string
	groups *bounded.Map[inJob, *group] // the one that was heard longest ago first
	ranks  int                         // of all groups
	share  *bounded.Share[*holder]
}

// inJob names a group among those of its job.
type inJob struct{ incarnation, group string }

func (k Key) inJob() inJob { return inJob{k.Incarnation, k.Group} }

func newHolder(job string) *holder {
	return &holder{job: job, groups: bounded.NewMap(bounded.MapConfig[inJob, *group]{Order: bounded.ByUse})}
}

// oldest returns the group that was heard longest ago; nil where there is none.
func (h *holder) oldest() *group {
	_, g, _ := h.groups.Oldest()
	return g
}

// group returns a group; nil where it is not held.
func (w *Watch) group(k Key) *group {
	h := w.jobs[k.Job]
	if h == nil {
		return nil
	}
	g, _ := h.groups.Peek(k.inJob())
	return g
}

// groups yields the groups of all jobs.
func (w *Watch) groups(yield func(*group) bool) {
	for _, h := range w.jobs {
		for _, g := range h.groups.All() {
			if !yield(g) {
				return
			}
		}
	}
}

// What single entries take beside their texts, with what maps need for them.
const (
	mapBytes  = 48
	rankBytes = int(unsafe.Sizeof(rank{})) + mapBytes
	saidBytes = int(unsafe.Sizeof(said{})) + mapBytes
)

var (
	holderBytes = int(unsafe.Sizeof(holder{})) + mapBytes + bounded.MapBytes[inJob, *group]()
	groupBytes  = int(unsafe.Sizeof(group{})) + bounded.EntryBytes[inJob, *group]() + maxSteps*(int(unsafe.Sizeof(step{}))+mapBytes) + 4*mapBytes
)

func (r *rank) texts() int { return len(r.host) + len(r.hwid) }

// size estimates what a judgement takes; nil takes nothing. Its texts are those of ranks.
func (j *Judgement) size() int {
	if j == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*j)) + mapBytes + (cap(j.Hosts)+cap(j.HWIDs))*int(unsafe.Sizeof("")) + cap(j.Minority)*int(unsafe.Sizeof(int64(0)))
	for i := range j.Held {
		n += int(unsafe.Sizeof(j.Held[i])) + cap(j.Held[i].Ranks)*int(unsafe.Sizeof(int64(0)))
	}
	return n
}

// size estimates what a group takes.
func (g *group) size() int {
	n := groupBytes + len(g.key.Job) + len(g.key.Incarnation) + len(g.key.Group) + len(g.jobName) + len(g.ranks)*rankBytes + g.texts + g.doubts
	for _, s := range g.steps {
		n += len(s.told) * saidBytes
	}
	return n
}

// measure counts the bytes of a group again.
func (g *group) measure() {
	bytes := g.size()
	g.of.share.Add(bytes - g.bytes)
	g.bytes = bytes
}

// enter adds a group to those of its job.
func (w *Watch) enter(g *group) {
	h := w.jobs[g.key.Job]
	if h == nil {
		h = newHolder(g.key.Job)
		h.share = w.room.Enter(h)
		h.share.Add(holderBytes + len(h.job))
		w.jobs[h.job] = h
	}
	g.of = h
	h.groups.Set(g.key.inJob(), g)
	w.held++
}

// rankFits makes room for a rank of a group, and reports whether there is some: none where the group alone
// would have to leave.
func (w *Watch) rankFits(g *group) bool {
	for w.stats.Ranks >= w.cfg.Ranks {
		most := w.room.LargestBy(func(h *holder) int {
			if h == g.of {
				return h.ranks + 1
			}
			return h.ranks
		})
		if !w.leave(most, g) {
			return false
		}
	}
	return true
}

// groupFits makes room for a group, one by one of the job that makes room.
func (w *Watch) groupFits() {
	for w.held >= w.cfg.Groups {
		if !w.leave(w.room.Fullest(w.cfg.Groups, groupCount), nil) {
			return
		}
	}
}

func groupCount(h *holder) int { return h.groups.Len() }

// keep keeps to Bytes after a group was heard of.
func (w *Watch) keep(g *group) {
	g.measure()
	for w.room.Bytes() > w.cfg.Bytes {
		if !w.leave(w.room.Largest(), g) { // it alone takes too much
			w.giveUp(g)
			return
		}
	}
}

// leave has the group of a job leave that was not heard of for longest, but for one; false where there is
// none.
func (w *Watch) leave(h *holder, but *group) bool {
	if h == nil {
		return false
	}
	_, g, ok := h.groups.OldestWhere(func(_ inJob, g *group) bool { return g != but })
	if ok {
		w.giveUp(g)
	}
	return ok
}

// giveUp forgets a group to make room. Its replicas may still differ.
func (w *Watch) giveUp(g *group) {
	w.stats.Left++
	w.forget(g)
	if e := w.book.At(g.key.place()); e != nil {
		w.book.Drop(e)
	}
}
