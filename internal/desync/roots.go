package desync

import "github.com/lockstep-otel/lockstep/internal/model"

// root is one fault, before it is said.
type root struct {
	class      string
	ranks      []int32 // at fault; where sides is set, one of them is
	sides      bool
	candidates []int32 // where it is not decided who is
	node       *node
	cycle      []int32 // vertices of a cycle
	vertices   []int32 // from which victims are looked for
	confidence float64
	mismatch   *mismatch
	cause      string
	notes      []string
	witness    *Witness
	in, out    int64 // of an all_to_all
	lag        int64
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
	if len(found) == 0 {
		found = w.cyclesOfSeen(found)
	}
	found, open = w.skewed(w.once(found), open)
	found = w.explained(found)
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
			c := w.cycle(sink, true)
			c.confidence = min(c.confidence, sureOne)
			found = append(found, c)
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
		rounds := w.rounds(sink)
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
	for _, r := range c.ranks {
		if v := w.ranks[r].view; c.mismatch == nil && v != nil && (v.partial != "" || v.hides()) {
			c.class, c.candidates, c.ranks = model.ClassIncompleteEvidence, c.ranks, nil
			c.notes = append(c.notes, "they may have open what their buffers do not hold any more")
			*open = append(*open, c)
			return
		}
	}
	*found = append(*found, c)
}

// rounds returns the sets within a sink that wait for one another for certain, and for no
// other such set: an operation that also stands behind one of them does not loosen it.
func (w *world) rounds(sink []int32) [][]int32 {
	in := map[int32]bool{}
	for _, v := range sink {
		in[v] = true
	}
	c := tarjan(len(w.edges), func(v int32) []int32 { return w.edges[v] }, func(v int32) bool { return in[v] })
	sets := map[int32][]int32{}
	for _, v := range sink {
		sets[c.comp[v]] = append(sets[c.comp[v]], v)
	}
	leads := map[int32]bool{} // components from which a larger one can be reached
	for id := range c.count {
		for _, v := range sets[id] {
			for _, to := range w.edges[v] {
				if o := c.comp[to]; in[to] && o != id && (len(sets[o]) > 1 || leads[o]) {
					leads[id] = true
				}
			}
		}
	}
	var out [][]int32
	for id := range c.count {
		if len(sets[id]) > 1 && !leads[id] {
			out = append(out, sets[id])
		}
	}
	return out
}
