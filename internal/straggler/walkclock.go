// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Stages of a pipeline may share no collective, only messages, so that no estimate
// relates their clocks. The walk still has to cross from one to the other. Both sides of
// a message leave it nearly together where the sender stays until it is taken, which is
// enough to go on with the right rank; nothing is measured across by it, since what
// counts on the path is each rank's own time.

// clockGroup are ranks whose clocks are related.
type clockGroup struct {
	reference string
	shift     int64 // to the first group's timeline, once known
	known     bool
	ends      map[int][]int64 // by how much ends here lie before those on the other side, by group
}

// relate finds the groups of the ranks, and shifts all that messages connect with the
// first onto its timeline.
func (s *stepGraph) relate(meetings []*meeting) {
	s.groups, s.groupOf = s.groups[:0], s.groupOf[:0]
	for _, v := range s.views {
		g := slices.IndexFunc(s.groups, func(g clockGroup) bool { return g.reference == v.offset.Reference })
		if g < 0 {
			g = len(s.groups)
			s.groups = append(s.groups, clockGroup{reference: strings.Clone(v.offset.Reference)})
		}
		s.groupOf = append(s.groupOf, g)
	}
	if len(s.groups) < 2 || len(s.groups) > maxClockGroups {
		return
	}
	for _, m := range meetings {
		if a, b, ok := s.across(m); ok {
			s.groups[a].add(b, m.exit[1]-m.exit[0])
			s.groups[b].add(a, m.exit[0]-m.exit[1])
		}
	}
	s.groups[0].known = true
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := &s.groups[queue[0]]
		for other := range s.groups {
			if o := &s.groups[other]; !o.known && len(at.ends[other]) > 0 {
				slices.Sort(at.ends[other])
				o.known, o.shift = true, at.shift-stats.MedianMidpoint(at.ends[other])
				queue = append(queue, other)
			}
		}
	}
	for i := range s.Ranks {
		s.move(i, s.groups[s.groupOf[i]].shift)
	}
}

// maxClockGroups bounds the search among groups.
const maxClockGroups = 256

func (g *clockGroup) add(other int, by int64) {
	if g.ends == nil {
		g.ends = map[int][]int64{}
	}
	if v := g.ends[other]; len(v) < clockMemory {
		g.ends[other] = append(v, by)
	}
}

// across returns the groups of a message whose two sides' clocks are not related.
func (s *stepGraph) across(m *meeting) (a, b int, ok bool) {
	if m.rule != waitForSender || m.attributed || len(m.parties) != 2 || m.parties[0].op.inferred || m.parties[1].op.inferred {
		return 0, 0, false
	}
	x, y := m.parties[0].at, m.parties[1].at
	if s.at[x.index] < 0 || s.at[y.index] < 0 || x.offset.Conflict || y.offset.Conflict {
		return 0, 0, false
	}
	a, b = s.groupOf[s.at[x.index]], s.groupOf[s.at[y.index]]
	return a, b, a != b
}

// move shifts a rank's times.
func (s *stepGraph) move(i int, by int64) {
	r := &s.Ranks[i]
	s.shift[i] += by
	r.Start, r.End = r.Start+by, r.End+by
	for k := range r.Ops {
		op := &r.Ops[k]
		op.Start, op.End = op.Start+by, op.End+by
		if op.Launch != 0 {
			op.Launch += by
		}
	}
	for k := range r.Syncs {
		r.Syncs[k] += by
	}
	for k := range r.Holes {
		r.Holes[k][0], r.Holes[k][1] = r.Holes[k][0]+by, r.Holes[k][1]+by
	}
}
