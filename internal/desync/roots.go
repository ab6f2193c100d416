// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// root is one fault, before it is said.
type root struct {
	class      string
	ranks      []int32 // at fault; where sides is set, one of them is
	sides      bool
	candidates []int32 // where it is not decided who is
	node       *node
	waited     *node   // where node is another: the one in which most ranks wait for the rank
	cycle      []int32 // vertices of a cycle
	vertices   []int32 // from which victims are looked for
	confidence float64
	mismatch   *mismatch
	cause      string
	notes      []string
	witness    *Witness
	in, out    int64 // of an all_to_all
	lag        int64
	unstarted  bool // the devices of ranks have not started what the others have
	weighed    bool // the history of the job was asked, and does not speak against it
}

// Confidences. They say how much had to agree for a claim, and are no frequencies: what was
// measured is in bench/hang.
const (
	sureDead     = 0.97 // somebody saw the process gone
	sureTwo      = 0.95 // numbers and what is open agree
	sureMismatch = 0.95 // most members called something else
	sureCycle    = 0.9
	sureOne      = 0.75 // one piece of evidence
	sureMaybe    = 0.6  // an order of devices that is not recorded must be assumed
	sureAbsent   = 0.3  // that there is nothing of it is all that is known
	sureUntold   = 0.6  // something that is never recorded could explain it, too
)

// roots tells what is at fault.
func (w *world) roots() []root {
	must := sinksOf(len(w.edges), func(v int32) []int32 { return w.edges[v] }, everything, w.concerns())
	found := w.disagreements()
	var open []root // what is not decided
	suspects := map[int32]bool{}
	for _, sink := range must {
		switch {
		case len(sink) > 1:
			w.addCycle(w.cycle(sink, true), &found, &open)
		case w.isRank(sink[0]):
			w.rankRoot(sink[0], &found, &open)
		case w.suspect(sink[0]):
			suspects[sink[0]] = true
		default:
			found, open = w.opRoot(sink[0], sureTwo, found, open)
		}
	}
	w.suspected(suspects, must, &found, &open)
	open = w.unstick(found, open)
	if len(found) == 0 {
		found = w.cyclesOfSeen(found)
	}
	found, open = w.skewed(w.once(found), open)
	found = w.explained(found, open)
	found, open = w.fleeting(found, open)
	open = w.stillOpen(open, found)
	if len(found)+len(open) == 0 {
		open = w.unseen()
	}
	if len(open) > 0 {
		found = append(found, w.undecided(open, found)...)
	}
	return w.together(found)
}

func everything(int32) bool { return true }

// cyclesOfSeen adds cycles that only ranks of which nothing is known could be behind: no end of
// theirs could loosen one, since whoever is in it waits for the others of it alone.
func (w *world) cyclesOfSeen(found []root) []root {
	seen := func(v int32) bool { return !w.isRank(v) || len(w.heads[v]) > 0 || !w.ranks[v].blind() }
	sinks := sinksOf(len(w.edges), func(v int32) []int32 { return w.edges[v] }, seen, w.concerns())
	for _, sink := range sinks {
		ranks := 0 // one alone: a batch of which the other end was not seen
		for _, v := range sink {
			if w.isRank(v) {
				ranks++
			}
		}
		if ranks > 1 {
			if c := w.cycle(sink, true); c.class != model.ClassIncompleteEvidence {
				c.confidence = min(c.confidence, sureOne)
				found = append(found, c)
			}
		}
	}
	return found
}

// suspect reports whether a vertex is an operation that all have joined and nobody gets out
// of, but that some may only have behind another one.
func (w *world) suspect(v int32) bool {
	return len(w.maybe[v]) > 0 && !w.nodeAt(v).passed()
}

// suspected decides of operations that all have joined: one that stands behind something
// that is at fault anyway is a victim; those that stand behind one another were
// entered in different orders.
func (w *world) suspected(suspects map[int32]bool, must [][]int32, found, open *[]root) {
	definite := map[int32]bool{}
	for _, sink := range must {
		for _, v := range sink {
			definite[v] = !suspects[v]
		}
	}
	for _, sink := range w.sinks() {
		explained, suspected := false, false
		for _, v := range sink {
			explained = explained || definite[v]
			suspected = suspected || suspects[v]
		}
		rounds := slices.DeleteFunc(w.rounds(sink), func(set []int32) bool { return len(w.shortest(set, w.edges)) == 0 })
		switch {
		case explained || !suspected:
		case len(rounds) > 0:
			for _, r := range rounds {
				w.addCycle(w.cycle(r, true), found, open)
			}
		default:
			w.addCycle(w.cycle(sink, false), found, open)
		}
	}
}

// addCycle takes a cycle for one only where nobody in it may have something else open.
func (w *world) addCycle(c root, found, open *[]root) {
	if c.class == model.ClassIncompleteEvidence {
		*open = append(*open, c)
		return
	}
	if turns := w.turning(c.cycle); c.mismatch == nil && slices.ContainsFunc(turns, func(r int32) bool { return w.ranks[r].blind() }) {
		c.class, c.candidates, c.ranks, c.sides = model.ClassIncompleteEvidence, turns, nil, false
		c.notes = append(c.notes, "they may have open what their buffers do not hold any more")
		*open = append(*open, c)
		return
	}
	*found = append(*found, c)
}

// turning are the ranks by which the operations of a cycle wait for one another.
func (w *world) turning(cycle []int32) []int32 {
	ranks := slices.Concat(w.turns(cycle)...)
	for _, v := range cycle {
		if w.isRank(v) {
			ranks = append(ranks, v)
		}
	}
	return compact(ranks)
}

// rounds returns the sets within a sink that wait for one another for certain, and for no
// other such set: an operation that also stands behind one of them does not loosen it. It looks
// at nothing but the sink, of which there may be as many as ranks.
func (w *world) rounds(sink []int32) [][]int32 {
	place := make(map[int32]int32, len(sink))
	for i, v := range sink {
		place[v] = int32(i)
	}
	edges := make([][]int32, len(sink))
	for i, v := range sink {
		for _, to := range w.edges[v] {
			if p, ok := place[to]; ok {
				edges[i] = append(edges[i], p)
			}
		}
	}
	c := tarjan(len(sink), func(i int32) []int32 { return edges[i] }, everything)
	sets := make([][]int32, c.count)
	for i := range int32(len(sink)) {
		sets[c.comp[i]] = append(sets[c.comp[i]], i)
	}
	leads := make([]bool, c.count) // components from which a larger one can be reached
	for id := range c.count {
		for _, i := range sets[id] {
			for _, to := range edges[i] {
				if o := c.comp[to]; o != id && (len(sets[o]) > 1 || leads[o]) {
					leads[id] = true
				}
			}
		}
	}
	var out [][]int32
	for id, set := range sets {
		if len(set) < 2 || leads[id] {
			continue
		}
		for k, i := range set {
			set[k] = sink[i]
		}
		out = append(out, set)
	}
	return out
}
