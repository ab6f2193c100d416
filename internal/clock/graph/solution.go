// SPDX-License-Identifier: Apache-2.0

package graph

// Solved is what is known of one clock against its component's reference.
type Solved struct {
	Clock string
	// Reference is the clock against which offsets stand. That of the reference
	// itself is 0.
	Reference string
	// From and Until are the clock's readings between which it was observed, At the
	// one at the instant that all clocks of the component share: a clock that was not
	// observed then has it outside of From and Until.
	From, Until, At int64
	// Offset is the reference's reading less this clock's when this one reads At:
	// At + Offset is the same number for all clocks of a component.
	Offset int64
	// Drift is the reference's rate less this clock's; DriftBound the half width of
	// what it can be, or 0 where nothing tells.
	Drift, DriftBound float64

	// Bound is the half width of what Offset can be, moved by Drift, at all readings
	// from From to Until; false Bounded where nothing bounds one side or the other.
	// It holds if the stamps do.
	Bound   int64
	Bounded bool
	// Growth is what Bound grows by per ns outside of From and Until, while the
	// frequency changes by no more than Options.Wander in a window, for four windows.
	Growth float64
	// Sigma is the standard deviation of Offset in ns, 0 for the reference, and no
	// bound.
	Sigma float64

	Neighbours int  // clocks with which edges are shared
	Stepped    bool // the clock was stepped, or changed its frequency, at From

	// Untrusted: the clock contradicts three others or more beyond what bounds
	// allow, and was cut off; Evidence tells with which, and by how much. Its Offset
	// is then what most of its neighbours agree on, and nothing bounds it.
	Untrusted bool
	// Undecided: the clock and one of its neighbours contradict one another, and
	// nothing tells which of them lies. The edge between them was left out.
	Undecided bool
	Evidence  []Evidence
}

// Evidence is one contradiction of a clock.
type Evidence struct {
	Other  string
	Source string // of the edge with Other
	Excess int64  // ns beyond what bounds allow
}

// Contradiction is a pair of clocks of which nothing tells which one lies.
type Contradiction struct {
	A, B   string
	Source string
	Excess int64 // ns beyond what bounds allow
}

// Component is a set of clocks that can be compared.
type Component struct {
	Reference string
	At        int64 // the instant of the solution, a reading of the reference
	Clocks    int   // trusted ones
	Edges     int   // edges that the solution rests on
	// Misfit is the root mean square of what edges deviate from the solution, in
	// their own sigmas: near 1 where sigmas are right.
	Misfit float64
}

// Solution is what all edges together say. It does not change any more, and is
// safe for concurrent use.
type Solution struct {
	models     []Solved
	components []Component
	undecided  []Contradiction
	index      map[string]int32
	paths      *paths
}

// Models returns all clocks, in the order of their names. The slice is not to be
// changed.
func (s *Solution) Models() []Solved { return s.models }

// Model returns one clock; false where nothing is known of it.
func (s *Solution) Model(clock string) (Solved, bool) {
	i, ok := s.index[clock]
	if !ok {
		return Solved{}, false
	}
	return s.models[i], true
}

// Components returns the sets of comparable clocks, largest first.
func (s *Solution) Components() []Component { return s.components }

// Undecided returns the pairs that contradict one another without telling who
// lies.
func (s *Solution) Undecided() []Contradiction { return s.undecided }
