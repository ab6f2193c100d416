// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/blame"
)

// PathSegment is a stretch of a step's critical path: what one rank did while everyone
// waited for it, or one transfer.
type PathSegment struct {
	Rank int64
	Peer int64 // of a link, the receiver; else -1
	// Class is the finding class of what took most of the excess, else of the time; ""
	// where that is none: work that waited for what nobody recorded.
	Class      string
	Op         string // operation or scope
	Start, End int64  // Unix ns on the timeline
	Excess     time.Duration
	Span       model.SpanRef // of the operation; of the host's time, of what it launched late
}

// walks is what the walks of a job's steps found.
type walks struct {
	graph  stepGraph
	stale  bool // the graph's room is to be let go
	credit int  // operations that may be walked
	steps  []walkedStep
	last   *blame.Graph // of the last step, for as long as candidates are judged, or its room is kept
	// path and met are those of the last step; met are places in its meetings.
	path []PathSegment
	met  []int
}

// walkedStep is what was to blame in a step.
type walkedStep struct {
	step     int64
	seconds  float64
	replayed bool // all operations are in the graph
	holed    bool // communication may have been lost
	causes   []walkedCause
	without  map[string]answer
}

// holed reports whether communication of the last step may have been lost.
func (w *walks) holed() bool { return len(w.steps) > 0 && w.steps[len(w.steps)-1].holed }

// walkedCause is what one rank spent on one operation on the path, s.
type walkedCause struct {
	rank    int64
	class   string
	op      uint32
	seconds float64
	excess  float64 // over peers
	saved   float64 // of the step by replay without all of the rank's excess; with its largest cause only
}

const (
	// The first walkFirst steps are walked each, since of few steps each counts. Later
	// one of walkShare operations may be, as it takes as long as all else that is done
	// with them; but small steps, of up to walkFloor operations, are walked each.
	walkFirst = 8
	walkShare = 8
	walkFloor = 256
	// walkBudget is how many operations are walked in walkSteps steps at most. Of larger
	// steps a part is (onPath): all would take over 40 MB.
	walkBudget = 200_000
	walkSteps  = 16
	// maxWalked bounds the steps that are remembered, and maxWalkedCauses what is of each.
	maxWalked       = 64
	maxWalkedCauses = 32
	// maxPath bounds the segments that are reported of a step, the latest first.
	maxPath = 1024
	// maxReplays is for how many ranks of a step it is found out what it would be
	// without them.
	maxReplays = 3
	// replayShare is the least share of the step that a rank's excess must have for that.
	replayShare = 0.01
)

// beforeStep is the operation of the last segment of a path, where the rank that it leads
// to was late when the recording began.
const beforeStep = "before the recording"

// walkBack finds the step's critical path.
func (j *job) walkBack(rec *record, views []*rankView, meetings []*meeting) {
	w := &j.walks
	var keep []bool
	size := sizeOf(views, nil)
	w.credit += min(max(size/walkShare, walkFloor), walkBudget/walkSteps)
	if j.steps < walkFirst {
		w.credit = max(w.credit, size)
	}
	w.credit = min(w.credit, walkBudget)
	if size > walkBudget {
		j.e.stats.StepsTooLargeToWalk++
		if w.credit < walkBudget {
			return
		}
		keep = onPath(rec, views, meetings, walkBudget)
		size = walkBudget
	}
	if size > w.credit {
		return
	}
	w.credit -= size
	if w.stale {
		w.graph, w.stale = stepGraph{}, false // not before: the last step is asked about until here
	}
	w.graph.read(rec, views, meetings, keep)
	if w.last == nil {
		w.last = &blame.Graph{}
	}
	g := w.last.Rebuild(&w.graph.Step, blame.Options{MaxOps: 2 * walkBudget, Scope: w.graph.scopeIn, Alike: j.keys.alike})
	found := g.Walk()
	w.report(&found, rec.step, j)
	w.remember(rec.step, g, &found, keep == nil)
	g.NoScopes() // the views that they are in are used again
	w.release()
}

// release lets a graph go that is too large to be kept from step to step.
func (w *walks) release() {
	if w.last != nil && w.last.Size() > maxKept {
		w.last = nil
	}
}

// maxKept is how many operations a graph has at most that is kept: it takes some 200 bytes
// for each.
const maxKept = 1 << 14

// classes are the finding classes of what the path's time was spent on.
var classes = map[blame.Kind]string{
	blame.Compute: model.ClassCompute, blame.Copy: model.ClassCompute, blame.Host: model.ClassHost,
	blame.Link: model.ClassLink, blame.Stage: model.ClassStageImbalance,
}

// report renders the path: what a rank did until the path goes on with another is one
// segment, and so is a transfer.
func (w *walks) report(found *blame.Walk, step int64, j *job) {
	path := found.Path
	for len(path) > 0 && len(w.path) < maxPath {
		n := 1
		for n < len(path) && path[n].Rank == path[0].Rank && (path[n].Kind == blame.Link) == (path[0].Kind == blame.Link) {
			n++
		}
		w.path = append(w.path, w.stretch(path[:n], step, j))
		path = path[n:]
	}
	if j.steps == 0 && found.Late > 0 && len(found.Path) > 0 {
		// It was late before anything was recorded of it.
		began := found.Path[len(found.Path)-1].From
		w.path = append(w.path, PathSegment{
			Rank: found.First, Peer: -1, Op: beforeStep, Start: began, End: began, Excess: time.Duration(found.Late),
		})
	}
	for _, m := range found.Meetings[:min(len(found.Meetings), maxPath)] {
		w.met = append(w.met, int(m))
	}
}

// stretch merges segments of one rank.
func (w *walks) stretch(of []blame.Segment, step int64, j *job) PathSegment {
	type sum struct{ excess, time int64 }
	type key struct {
		class string
		place blame.Place
	}
	sums := map[key]sum{}
	out := PathSegment{Rank: of[0].Rank, Peer: of[0].Peer, Start: of[len(of)-1].From, End: of[0].To}
	for i := range of {
		s := &of[i]
		k := key{classes[s.Kind], s.Place}
		e := sums[k]
		sums[k] = sum{e.excess + s.Excess, e.time + s.To - s.From}
		out.Excess += time.Duration(s.Excess)
	}
	var best int
	better := func(a, b sum) int {
		return cmp.Or(cmp.Compare(max(0, a.excess), max(0, b.excess)), cmp.Compare(a.time, b.time))
	}
	for i := range of {
		if better(sums[key{classes[of[i].Kind], of[i].Place}], sums[key{classes[of[best].Kind], of[best].Place}]) > 0 {
			best = i
		}
	}
	out.Class = classes[of[best].Kind]
	out.Op = j.keys.placeName(of[best].Place)
	if op := of[best].Op; op >= 0 && w.graph.Ranks[of[best].Index].Ops[op].Place != 0 {
		out.Span = w.graph.spanOf(of[best].Index, op, step, j.incarnation)
	}
	return out
}

// placeName returns the key of a place on the path; the end of a step has none.
func (in *interner) placeName(p blame.Place) string {
	if int(p) >= len(in.ops) {
		return otherKey
	}
	return in.name(uint32(p))
}

// syncs reports whether a call of the host waits for the device, as CUDA's and HIP's
// synchronisations and the reading of a value do.
func (in *interner) syncs(key uint32) bool {
	name := in.name(key)
	return strings.Contains(name, "Synchronize") || strings.Contains(name, "synchronize") || name == "aten::item"
}

// remember keeps the step's causes, the largest excess first, and what the step would be
// without those ranks whose excess is most.
func (w *walks) remember(n int64, g *blame.Graph, found *blame.Walk, whole bool) {
	step := walkedStep{step: n, seconds: time.Duration(found.End - found.Start).Seconds(), replayed: whole, holed: g.Holed()}
	var saved map[int64]float64
	if whole {
		saved = savedBy(g, found.Causes, replayShare*step.seconds)
	}
	for i := range found.Causes[:min(len(found.Causes), maxWalkedCauses)] {
		c := &found.Causes[i]
		if !c.Compared || c.Rank < 0 || classes[c.Kind] == "" {
			continue
		}
		kept := walkedCause{rank: c.Rank, class: classes[c.Kind], op: uint32(c.Place), seconds: c.Seconds, excess: c.Excess}
		if kept.class != model.ClassLink {
			kept.saved = saved[c.Rank]
			delete(saved, c.Rank)
		}
		step.causes = append(step.causes, kept)
	}
	w.steps = append(w.steps, step)
	if len(w.steps) > maxWalked {
		w.steps = slices.Delete(w.steps, 0, len(w.steps)-maxWalked)
	}
}

// savedBy returns what the step would be shorter by, s, were a rank as its peers in all
// that it does by itself: for the ranks of the largest excess, if it is that much.
func savedBy(g *blame.Graph, causes []blame.Cause, least float64) map[int64]float64 {
	sums := map[int64]float64{}
	for i := range causes {
		if c := &causes[i]; c.Rank >= 0 && c.Kind != blame.Link {
			sums[c.Rank] += c.Excess
		}
	}
	ranks := slices.SortedFunc(maps.Keys(sums), func(a, b int64) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	out := map[int64]float64{}
	for _, r := range ranks[:min(len(ranks), maxReplays)] {
		if sums[r] > least {
			out[r] = g.Saved(blame.Own(r)...)
		}
	}
	return out
}

// blamed returns, over the steps that were walked of late, which share of their time a
// rank's excess over its peers took on the critical path, and in which operation or scope
// most of it. It is 0 where the rank was not on the path, or not slower than its peers.
func (j *job) blamed(rank int64) (share float64, op string) {
	var total, excess float64
	byOp := map[uint32]float64{}
	for i := range j.walks.steps {
		s := &j.walks.steps[i]
		total += s.seconds
		for k := range s.causes {
			if c := &s.causes[k]; c.rank == rank {
				excess += c.excess
				byOp[j.keys.plainPlace(c.op)] += c.excess
			}
		}
	}
	if total <= 0 || excess <= 0 {
		return 0, ""
	}
	var best uint32
	for op, x := range byOp {
		if b := byOp[best]; x > b || x == b && op < best {
			best = op
		}
	}
	return excess / total, j.keys.placeName(blame.Place(best))
}

// alike returns the place that stands for all that do the same by whatever kernel.
func (in *interner) alike(p blame.Place) blame.Place { return blame.Place(in.plainPlace(uint32(p))) }

// plainPlace returns the number of a place's key alone.
func (in *interner) plainPlace(p uint32) uint32 {
	if int(p) >= len(in.ops) {
		return 0
	}
	return in.plain(p)
}
