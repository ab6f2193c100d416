// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Solver collects edges between clocks and solves for all clocks at once. It is
// not safe for concurrent use; the Solutions that it returns are.
type Solver struct {
	opt   Options
	count Counters

	ids    map[string]int32
	clocks []clockSlot
	free   []int32

	at    map[edgeKey]int32 // index into edges
	edges []edgeSlot

	crossing  *bounded.Map[[2]string, *crossing] // by when they were noted
	elsewhere map[string]*elsewhere              // by the names of clocks that are held
	afar      *bounded.Map[[2]string, *afar]     // by the name of a clock, or of both of a pair, in order of last
	moved     *bounded.Map[string, int64]        // until when of elapsed it is remembered that a clock may have been set
	elapsed   int64                              // ns from the first solution to the last, by most clocks

	ranks map[string]int // of preferred references
	last  *Solution
	work  int // of the last solution

	past past // of the last solution

	solutions int // so far
}

// clockSlot is a place for a clock. It is free when no edge names the clock.
type clockSlot struct {
	name  string
	edges int32
	// led is of how many clocks it was the reference in the last solution.
	led int32
}

type edgeKey struct {
	src, dst int32
	source   uint8
}

type edgeSlot struct {
	model.ClockEdge
	key edgeKey
	// fresh: the edge came after the last solution.
	fresh bool
	// solved: some solution had an edge of its clocks and source.
	solved bool
	// jumped: the edge does not go on from one that a solution had: one of both clocks was
	// set in between. That is remembered until Solver.elapsed is jumpedUntil.
	jumped      bool
	jumpedUntil int64
	// late is in how many solutions in a row only older edges came, and lateIn the last.
	late   int
	lateIn int
}

// crossing remembers of two clocks that an edge between them was refused because
// its bounds crossed: a message arrived before it was sent, whatever the offset.
type crossing struct {
	excess int64
	source string
	noted  int // after so many solutions
}

// New returns an empty Solver.
func New(opt Options) *Solver {
	s := &Solver{
		opt: opt.withDefaults(), ids: map[string]int32{}, at: map[edgeKey]int32{}, elsewhere: map[string]*elsewhere{},
		ranks: map[string]int{}, last: &Solution{},
	}
	s.crossing = newMemory[[2]string, *crossing](s.opt.MaxClocks)
	s.afar = newMemory[[2]string, *afar](s.opt.MaxClocks)
	s.moved = newMemory[string, int64](s.opt.MaxClocks)
	for i, name := range opt.Prefer {
		if _, ok := s.ranks[name]; !ok {
			s.ranks[name] = i
		}
	}
	return s
}

// newMemory returns a map that remembers as many things as there are clocks, the one that was noted longest
// ago first. Its owner refuses what is beyond: what is remembered is evidence.
func newMemory[K comparable, V any](most int) *bounded.Map[K, V] {
	return bounded.NewMap(bounded.MapConfig[K, V]{Entries: most, Order: bounded.ByUse})
}

// rank is the place of a clock among the preferred references.
func (s *Solver) rank(name string) int {
	if r, ok := s.ranks[name]; ok {
		return r
	}
	return len(s.ranks)
}

// Counters returns what was counted so far.
func (s *Solver) Counters() Counters {
	c := s.count
	c.PathsOverflowed += s.last.overflowed()
	return c
}

// Add takes an edge in place of an earlier one of the same clocks and source. An
// error names the field, the value and what is wanted; the edge is then counted
// and left out. Of an edge whose bounds cross, or whose observations contradict one
// another, it is remembered that they do, and nothing else.
func (s *Solver) Add(e model.ClockEdge) error {
	if err := s.count.check(&e); err != nil {
		if e.Lower > e.Upper && e.Lower != model.NoUpper && e.Upper != model.NoLower {
			s.noteCrossing(&e, e.Lower-e.Upper)
		}
		return err
	}
	if e.Contradicted > 0 {
		s.count.Contradicted++
		s.noteCrossing(&e, e.Contradicted)
		return nil
	}
	key, known, err := s.key(&e)
	if err != nil {
		return err
	}
	s.count.Added++
	// Names are those of the clocks: each edge comes with copies of its own.
	e.Src, e.Dst = s.clocks[key.src].name, s.clocks[key.dst].name
	if i, ok := s.at[key]; known && ok {
		s.replace(&s.edges[i], &e)
		return nil
	}
	s.at[key] = int32(len(s.edges))
	s.edges = append(s.edges, edgeSlot{ClockEdge: e, key: key, fresh: true})
	s.clocks[key.src].edges++
	s.clocks[key.dst].edges++
	if e.Stepped {
		s.noteMoved(&e)
	}
	s.crossing.Delete(pairOfNames(e.Src, e.Dst))
	return nil
}

// key finds or makes the places of both clocks. Nothing is made where a limit
// forbids the edge.
func (s *Solver) key(e *model.ClockEdge) (key edgeKey, known bool, err error) {
	src, okSrc := s.ids[e.Src]
	dst, okDst := s.ids[e.Dst]
	key = edgeKey{src, dst, sources[e.Source]}
	if okSrc && okDst {
		if _, ok := s.at[key]; ok {
			return key, true, nil
		}
	}
	if len(s.edges) >= s.opt.MaxEdges {
		s.count.TooManyEdges++
		return key, false, fmt.Errorf("add clock edge %s to %s: got edge %d; want at most %d", e.Src, e.Dst, len(s.edges)+1, s.opt.MaxEdges)
	}
	wanted := len(s.ids)
	for _, ok := range []bool{okSrc, okDst} {
		if !ok {
			wanted++
		}
	}
	if wanted > s.opt.MaxClocks {
		s.count.TooManyClocks++
		return key, false, fmt.Errorf("add clock edge %s to %s: got clock %d; want at most %d", e.Src, e.Dst, wanted, s.opt.MaxClocks)
	}
	key.src, key.dst = s.clock(e.Src), s.clock(e.Dst)
	return key, false, nil
}

func (s *Solver) clock(name string) int32 {
	if i, ok := s.ids[name]; ok {
		return i
	}
	i := int32(len(s.clocks))
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
		s.clocks[i] = clockSlot{name: name}
	} else {
		s.clocks = append(s.clocks, clockSlot{name: name})
	}
	s.ids[name] = i
	return i
}

// convinced is in how many solutions in a row an edge has to be older than the one
// held, and none newer, until what is heard later counts.
const convinced = 3

// replace puts an edge in the place of one held. One that is older came late, unless
// it says that a clock was stepped, or all that come are older: then the one held was
// of another time, or a clock was set back since.
func (s *Solver) replace(held *edgeSlot, e *model.ClockEdge) {
	jumped := s.jumped(&held.ClockEdge, e)
	stepped := e.Stepped || held.fresh && held.Stepped
	if s.older(held, e) && !e.Stepped {
		if held.lateIn != s.solutions {
			held.late, held.lateIn = held.late+1, s.solutions
		}
		if held.late < convinced {
			s.count.Late++
			return
		}
	}
	s.count.Replaced++
	held.late = 0
	if jumped && held.solved {
		held.jumped, held.jumpedUntil = true, s.elapsed+s.opt.Horizon.Nanoseconds()
	}
	if held.jumped || stepped {
		s.noteMoved(e)
	}
	held.ClockEdge, held.fresh = *e, true
	held.Stepped = stepped
	s.crossing.Delete(pairOfNames(e.Src, e.Dst))
}

// older reports whether an edge is from before the one held. Where its clocks do not agree
// on that, one of them was set in between, and the other one tells: that which is not
// known to have been set, and, as long as nothing is known, that which went on.
func (s *Solver) older(held *edgeSlot, e *model.ClockEdge) bool {
	src := e.At - held.At
	dst := src + middle(e) - middle(&held.ClockEdge)
	_, srcSet := s.past.set[e.Src]
	_, dstSet := s.past.set[e.Dst]
	on := max(src, dst)
	switch {
	case srcSet && !dstSet:
		on = dst
	case dstSet && !srcSet:
		on = src
	}
	return on < 0 && -on <= s.opt.Horizon.Nanoseconds()
}

// middle is what an edge says that Dst reads more than Src.
func middle(e *model.ClockEdge) int64 {
	l := link{ClockEdge: e}
	if l.estimate(); l.estimated {
		return l.offset
	}
	if e.Lower != model.NoLower {
		return e.Lower
	}
	return e.Upper
}

// jumped reports whether an edge does not go on from the one before, whatever the
// frequency was in between.
func (s *Solver) jumped(held, e *model.ClockEdge) bool {
	a, b := link{ClockEdge: held}, link{ClockEdge: e}
	a.estimate()
	b.estimate()
	if !a.estimated || !b.estimated {
		return false
	}
	away := math.Abs(float64(e.At) - float64(held.At))
	most := s.opt.MaxDrift*away + halfWidth(held) + halfWidth(e)
	return math.Abs(float64(b.offset)-float64(a.offset)) > most
}

// halfWidth is by how much an edge can err at least on one of its sides.
func halfWidth(e *model.ClockEdge) float64 {
	if e.Lower == model.NoLower || e.Upper == model.NoUpper {
		return 8 * e.Sigma
	}
	return float64(e.Upper)/2 - float64(e.Lower)/2
}

// Forget drops all edges of a clock.
func (s *Solver) Forget(clock string) {
	id, ok := s.ids[clock]
	if !ok {
		return
	}
	for i := len(s.edges) - 1; i >= 0; i-- {
		if k := s.edges[i].key; k.src == id || k.dst == id {
			s.drop(i)
		}
	}
}

// drop removes edge i; the last edge takes its place.
func (s *Solver) drop(i int) {
	key, last := s.edges[i].key, len(s.edges)-1
	delete(s.at, key)
	if i != last {
		s.edges[i] = s.edges[last]
		s.at[s.edges[i].key] = int32(i)
	}
	s.edges[last] = edgeSlot{}
	s.edges = s.edges[:last]
	for _, id := range []int32{key.src, key.dst} {
		c := &s.clocks[id]
		if c.edges--; c.edges == 0 {
			delete(s.ids, c.name)
			s.clocks[id] = clockSlot{}
			s.free = append(s.free, id)
		}
	}
}

// noteCrossing remembers that observations of two clocks contradict one another.
func (s *Solver) noteCrossing(e *model.ClockEdge, excess int64) {
	if excess < 0 {
		excess = farthest
	}
	p, c := pairOfNames(e.Src, e.Dst), &crossing{excess: excess, source: e.Source, noted: s.solutions}
	if !s.crossing.Fits(p, c) {
		s.count.CrossingOverflow++
		return
	}
	s.crossing.Set(p, c)
}

func pairOfNames(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

func pairOf(a, b int32) [2]int32 { return [2]int32{min(a, b), max(a, b)} }
