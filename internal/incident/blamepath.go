package incident

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

// blamePath walks back from the meeting that ended last: who arrived last there,
// in which meeting it had been before, who arrived last there, and so on to the
// start of the step. The meetings on this path are those whose last arrivers
// decided how long the step took. Latest first.
func blamePath(r *straggler.StepReport) []*straggler.Meeting {
	visits := visitsByRank(r)
	m := latest(r)
	var path []*straggler.Meeting
	for m != nil {
		path = append(path, m)
		last := m.Last()
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
		if m.Attributed && len(m.Members) > 0 && (found == nil || m.Last().Enter > found.Last().Enter) {
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
		if visits[i].meeting.Last().Enter < enter {
			return visits[i].meeting
		}
	}
	return nil
}
