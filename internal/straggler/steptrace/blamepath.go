// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// visit is one rank's presence in a meeting.
type visit struct {
	exit    int64
	meeting *straggler.Meeting
}

// blamePath returns the meetings in which the step's critical path goes from one rank to
// another, latest first: those whose last arrivers decided how long the step took. A
// step that was not walked over all operations is walked over its meetings.
func blamePath(r *straggler.StepReport) []*straggler.Meeting {
	if len(r.Path) == 0 {
		return pathOfMeetings(r)
	}
	path := make([]*straggler.Meeting, 0, len(r.PathMeetings))
	for _, i := range r.PathMeetings {
		if i < len(r.Meetings) && len(r.Meetings[i].Members) > 0 {
			path = append(path, &r.Meetings[i])
		}
	}
	return path
}

// pathOfMeetings walks back from the meeting that ended last: who arrived last there,
// in which meeting it had been before, who arrived last there, and so on to the
// start of the step.
func pathOfMeetings(r *straggler.StepReport) []*straggler.Meeting {
	visits := visitsByRank(r)
	m := latest(r)
	var path []*straggler.Meeting
	for m != nil {
		path = append(path, m)
		last := lastOf(m)
		m = before(visits[last.Rank], last.Enter)
	}
	return path
}

func visitsByRank(r *straggler.StepReport) map[int64][]visit {
	visits := map[int64][]visit{}
	for i := range r.Meetings {
		m := &r.Meetings[i]
		if !m.Attributed || len(m.Members) == 0 {
			continue
		}
		for _, member := range m.Members {
			visits[member.Rank] = append(visits[member.Rank], visit{member.Exit, m})
		}
	}
	for _, v := range visits {
		slices.SortFunc(v, func(a, b visit) int { return cmp.Compare(a.exit, b.exit) })
	}
	return visits
}

// latest returns the attributed meeting with the latest arrival, or nil.
func latest(r *straggler.StepReport) *straggler.Meeting {
	var found *straggler.Meeting
	for i := range r.Meetings {
		m := &r.Meetings[i]
		if m.Attributed && len(m.Members) > 0 && (found == nil || lastOf(m).Enter > lastOf(found).Enter) {
			found = m
		}
	}
	return found
}

// before returns the meeting that a rank left last before it entered another.
// Only a meeting whose own last arrival was earlier counts, so that a walk
// always ends, whatever the stamps say.
func before(visits []visit, enter int64) *straggler.Meeting {
	i, _ := slices.BinarySearchFunc(visits, enter, func(v visit, t int64) int { return cmp.Compare(v.exit, t+1) })
	for i--; i >= 0; i-- {
		if lastOf(visits[i].meeting).Enter < enter {
			return visits[i].meeting
		}
	}
	return nil
}

// lastOf returns the member that the others waited for: in a broadcast that is
// the root, although leaves may come later.
func lastOf(m *straggler.Meeting) *straggler.Member {
	for i := range m.Members {
		if m.Members[i].Rank == m.LastRank {
			return &m.Members[i]
		}
	}
	return m.Last()
}
