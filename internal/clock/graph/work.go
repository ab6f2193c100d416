// SPDX-License-Identifier: Apache-2.0

package graph

// work counts the edges that a solution looks at. When most are, what would only
// make it better is not begun any more.
type work struct {
	most, spent int
	cutShort    bool // something was left out
}

const (
	// defaultWork is two to four seconds.
	defaultWork = 1 << 29
	// workPerEdge is more than three times what a mesh of 10,000 clocks takes.
	workPerEdge = 1024
)

func (s *Solver) mostWork() int {
	return orInt(s.opt.MaxWork, max(defaultWork, workPerEdge*len(s.edges)))
}

// searchCosts is what an arc costs in a search, in rows of a fit.
const searchCosts = 4

func (w *work) add(edges int) {
	if w != nil {
		w.spent += edges
	}
}

// done reports that the limit is reached, and notes that something was left out for
// it.
func (w *work) done() bool {
	if w == nil || w.spent < w.most {
		return false
	}
	w.cutShort = true
	return true
}
