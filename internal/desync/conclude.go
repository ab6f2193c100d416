// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Conclude judges what was added, as of at, Unix ns; 0: as of the states. It is called once.
func (a *Analyzer) Conclude(at int64) *Report {
	a.job.ID, a.job.Name = cmp.Or(a.job.ID, a.told.ID), cmp.Or(a.job.Name, a.told.Name)
	a.job.Incarnation = cmp.Or(a.job.Incarnation, a.told.Incarnation)
	w := a.world()
	w.stood = w.standing(at)
	w.settleMoved()
	rep := &Report{Job: a.job, Hung: a.doubt.Hung, Stats: a.stats}
	for _, r := range w.ranks {
		if r.view != nil {
			rep.Ranks++
		}
	}
	rep.Absent, rep.Unlisted = w.absences(), slices.ContainsFunc(a.groups.all, w.unlisted)
	rep.Groups, rep.GroupsOmitted = w.groupTable()
	switch {
	case rep.Ranks == 0:
		w.byCounts(rep, at)
	case w.mixed != "" && len(w.nodes) > 0:
		a.problem("%s", w.mixed)
		rep.Verdict, rep.MayRun = Undecided, w.mixed
	case w.moved != "" && len(w.nodes) > 0:
		a.problem("%s", w.moved)
		if w.seenToMove() {
			w.quiet(rep, w.moved)
		} else {
			rep.Verdict, rep.MayRun = Undecided, w.moved+", or they are not of one run"
		}
	case w.movedOrFailed != "" && len(w.nodes) > 0:
		a.doubt = Doubt{Why: w.movedOrFailed, Until: math.MaxInt64, Hung: a.doubt.Hung}
		if w.tell(rep, at); rep.Verdict == Undecided {
			rep.MayRun = w.movedOrFailed
		}
	case !w.old():
		w.quiet(rep, "nothing that was seen stands still", w.overwritten()...)
	default:
		w.tell(rep, at)
	}
	if rep.Hung {
		w.hungAllTheSame(rep, at)
	}
	slices.Sort(a.problems)
	rep.Problems = slices.Compact(a.problems)
	rep.Stats = a.stats
	return rep
}

// seenToMove reports whether that states contradict one another is because the job went on: of dumps
// nothing but their times tells that they are not of several runs.
func (w *world) seenToMove() bool {
	return w.a.doubt.InRhythm || !w.old() || slices.ContainsFunc(w.ranks, func(r *rank) bool {
		return r.view != nil && r.view.source != model.StateFlightRecorder
	})
}

// standing is for how long what is open has been so, by the states that say it.
type standing struct {
	longest time.Duration
	// atLeast is for how long by what its rank enqueued afterwards, which every state says.
	atLeast time.Duration
	timed   bool // some state says it
	untimed bool // some does not
}

func (w *world) standing(at int64) (s standing) {
	for _, r := range w.ranks {
		if r.view == nil {
			continue
		}
		now := max(at, r.view.time)
		for i := range r.view.open {
			created := r.view.open[i].created
			if created > 0 {
				s.atLeast = max(s.atLeast, time.Duration(r.view.lastEnqueue-created))
			}
			if now > 0 && r.view.open[i].guessed() {
				continue // its age is not known, but that of all else is
			}
			if now == 0 || created == 0 {
				s.untimed = true
				continue
			}
			s.timed = true
			s.longest = max(s.longest, time.Duration(now-created))
		}
	}
	return s
}

// old reports whether anything is open for long enough to be called a hang. What nobody says
// the age of counts.
func (w *world) old() bool {
	if len(w.nodes) == 0 {
		// Of what is active nothing is left out: counts that say more are older than the operations.
		return slices.ContainsFunc(w.ranks, func(r *rank) bool { return r.view != nil && !r.view.onlyActive && r.view.hides() })
	}
	return w.stood.longest >= w.a.cfg.StallAfter || w.stood.untimed || !w.stood.timed
}

// timed reports whether it is known of something that it is open for long.
func (w *world) timed() bool { return w.stood.longest >= w.a.cfg.StallAfter }

// absences lists the ranks of which there is no state.
func (w *world) absences() []model.Absence {
	var out []model.Absence
	for _, r := range w.ranks {
		if r.view != nil {
			continue
		}
		b, ok := w.a.absent[r.id]
		if !ok {
			b = model.Absence{Rank: r.id, Reason: model.AbsentMissing}
		}
		out = append(out, b)
	}
	return out
}

// tell fills in the roots.
func (w *world) tell(rep *Report, at int64) {
	found := w.foremost(w.roots())
	victims := make([]*reach, len(found))
	for i := range found {
		victims[i] = w.reach(&found[i])
	}
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(place(!open(found[x].class))-place(!open(found[y].class)), victims[y].total()-victims[x].total(), compareRoots(&found[x], &found[y]))
	})
	waiting := map[int32]bool{}
	rep.Verdict = Undecided
	for _, i := range order {
		for _, r := range victims[i].all {
			waiting[r] = true
		}
		if !open(found[i].class) {
			rep.Verdict = Hang
		}
		rep.Untimed = rep.Untimed || !rep.Hung && !w.timed() && (open(found[i].class) || w.passes(found[i].class))
		rep.Roots = append(rep.Roots, w.say(&found[i], victims[i], at))
	}
	if rep.Verdict == Undecided {
		rep.MayRun = w.ran
	}
	rep.Victims = len(waiting)
	for i := range rep.Roots {
		if s := rep.Roots[i].Finding.Start; s != 0 && (rep.Since == 0 || s < rep.Since) {
			rep.Since = s
		}
	}
}

// foremost keeps as many roots as are told, those in whose operations most ranks are: who
// waits for each is looked for only then.
func (w *world) foremost(found []root) []root {
	most := w.a.cfg.MaxRoots
	if len(found) <= most {
		return found
	}
	held := func(r *root) int {
		if r.node == nil {
			return 0
		}
		return len(r.node.holders)
	}
	slices.SortStableFunc(found, func(x, y root) int {
		return cmp.Or(place(!open(x.class))-place(!open(y.class)), held(&y)-held(&x), compareRoots(&x, &y))
	})
	w.a.stats.RootsOmitted += int64(len(found) - most)
	return found[:most]
}

// open reports whether a class says that nothing is decided.
func open(class string) bool {
	return class == model.ClassIncompleteEvidence || class == model.ClassDumpMissing
}

func compareRoots(x, y *root) int {
	if c := cmp.Compare(x.class, y.class); c != 0 {
		return c
	}
	if c := slices.Compare(x.ranks, y.ranks); c != 0 {
		return c
	}
	if x.node != nil && y.node != nil {
		return compareKeys(x.node.key, y.node.key)
	}
	return 0
}

// reach is who waits for a root: directly, in all, and by which way.
type reach struct {
	direct, all []int32
	next        map[int32]int32 // of each vertex: the next on its way to the root
}

func (r *reach) total() int { return len(r.all) }

// reach walks the edges back from a root, once for each root that is told: first from the
// operation that is named, so that ways lead by it.
func (w *world) reach(to *root) *reach {
	if w.back == nil {
		w.back = w.reverse()
	}
	s := search{
		w: w, out: &reach{next: map[int32]int32{}}, accused: map[int32]bool{}, near: map[int32]bool{},
		seen: make(map[int32]bool, len(to.vertices)),
	}
	accused := to.candidates
	if len(to.ranks) > 0 {
		accused = to.ranks
	}
	for _, r := range accused {
		s.accused[r] = true
	}
	for _, v := range to.vertices {
		s.seen[v] = true
	}
	named, byName := w.named(to)
	if byName {
		s.from(to.vertices, named)
	}
	s.from(to.vertices, -1)
	out := s.out
	slices.Sort(out.all)
	for _, r := range out.all {
		if h := holdsNamed(to, r); byName && h || !byName && s.near[r] {
			out.direct = append(out.direct, r)
		}
	}
	return out
}

// named returns the vertex of the operation by whose name a root is told, -1 where nobody waits in
// it, and whether who waits for the root is told by that: of a rank, and of a disagreement.
func (w *world) named(to *root) (int32, bool) {
	if to.node == nil || len(to.cycle) > 0 {
		return -1, false
	}
	if to.mismatch != nil {
		return -1, slices.ContainsFunc(holdersOf(to.node, true), func(r int32) bool { return !slices.Contains(to.ranks, r) })
	}
	if slices.ContainsFunc(to.vertices, func(v int32) bool { return !w.isRank(v) }) {
		return -1, false
	}
	i, ok := w.byKey[to.node.key]
	if !ok {
		return -1, true
	}
	return w.vertex(i), true
}

func holdsNamed(to *root, r int32) bool {
	if to.node == nil {
		return false
	}
	h := to.node.holds(r)
	return h != nil && h.head
}

// search finds who waits for a root, breadth first.
type search struct {
	w       *world
	out     *reach
	accused map[int32]bool
	seen    map[int32]bool
	near    map[int32]bool // ranks in an operation that waits for the root itself
}

// from goes on from vertices; where only is a vertex, from these to that alone.
func (s *search) from(vertices []int32, only int32) {
	level, next := slices.Clone(vertices), []int32(nil)
	start := len(level)
	for d := 0; len(level) > 0; d++ {
		for i := 0; i < len(level); i++ {
			v := level[i]
			for _, from := range s.w.back[v] {
				if s.seen[from] || only >= 0 && d == 0 && i < start && from != only {
					continue
				}
				s.seen[from] = true
				s.out.next[from] = v
				switch {
				case s.w.isRank(from):
					next = append(next, from)
					if s.accused[from] {
						continue
					}
					s.out.all = append(s.out.all, from)
					s.near[from] = d == 0
				case s.w.follows(from, v): // one level with what it waits for
					level = append(level, from)
				default: // by way of a rank that stands behind v
					next = append(next, from)
				}
			}
		}
		level, next = next, level[:0:0]
	}
}

// follows reports whether an operation waits for v itself: a rank, or an earlier operation of
// the same communicator.
func (w *world) follows(from, v int32) bool {
	if w.isRank(v) {
		return true
	}
	x, y := w.nodeAt(from).key, w.nodeAt(v).key
	return x.group == y.group && x.fn == y.fn
}

func (w *world) reverse() [][]int32 {
	back := make([][]int32, len(w.edges))
	for v := range w.edges {
		for _, list := range [][]int32{w.edges[v], w.maybe[v]} {
			for _, to := range list {
				back[to] = append(back[to], int32(v))
			}
		}
	}
	return back
}

// opText names an operation as everywhere else: all_reduce 812, send 3 -> 4.
func (n *node) opText(seq int64) string {
	switch {
	case n.message && n.key.src != none && n.key.dst != none:
		return fmt.Sprintf("%s %d -> %d", n.messageName(), n.key.src, n.key.dst)
	case n.message:
		return n.messageName()
	}
	return fmt.Sprintf("%s %d", cmp.Or(n.name, "collective"), seq)
}

func (n *node) messageName() string {
	if len(n.holders) == 1 {
		if n.holders[0].op.receives {
			return "recv"
		}
		return "send"
	}
	return "message"
}
