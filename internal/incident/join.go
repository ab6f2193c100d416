// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// group is one incident: findings of one cause, as far as time and place tell.
type group struct {
	id      string
	seq     int64  // of its first finding
	job     string // of the findings that are of one; what is of none concerns a host's jobs alike
	members []*entry
}

func (g *group) remove(n *entry) {
	g.members = slices.DeleteFunc(g.members, func(m *entry) bool { return m == n })
}

// join gives n its incident: the oldest that n touches, else one of its own.
// The findings of younger incidents that n connects change their incident and
// are revised.
func (e *Engine) join(n *entry) {
	touched := e.touching(n)
	if n.Data.incident == nil && len(touched) == 0 {
		newGroup(n)
		return
	}
	if n.Data.incident != nil && !slices.Contains(touched, n.Data.incident) {
		touched = append(touched, n.Data.incident)
	}
	oldest := slices.MinFunc(touched, func(a, b *group) int { return int(a.seq - b.seq) })
	for _, g := range touched {
		if g != oldest {
			e.absorb(oldest, g, n)
		}
	}
	if n.Data.incident == nil {
		oldest.take(n)
		n.Finding.IncidentID = oldest.id
	}
}

func newGroup(n *entry) {
	f := &n.Finding
	g := &group{id: f.IncidentID, seq: n.Data.seq}
	if g.id == "" {
		g.id = model.FindingID(f.Incarnation, "incident", f.JobID+"/"+f.ID, 0) // jobs may share the rest
	}
	f.IncidentID = g.id
	g.take(n)
}

func (g *group) take(n *entry) {
	g.members = append(g.members, n)
	if g.job == "" {
		g.job = n.Finding.JobID
	}
	n.Data.incident = g
}

// absorb moves all members of o to g. All are revised but the one that caused it, which is about to be
// reported anyway.
func (e *Engine) absorb(g, o *group, cause *entry) {
	members := o.members
	o.members = nil
	for _, m := range members {
		g.take(m)
	}
	for _, m := range members {
		if m == cause {
			m.Finding.IncidentID = g.id
			continue
		}
		e.book.Amend(m, g.id)
		e.weigh(m)
	}
}

// touching returns the incidents of the findings that n shares time and place with. A
// finding of no job, as of a host's clock, joins the oldest of them, and never makes one of
// the incidents of several jobs.
func (e *Engine) touching(n *entry) []*group {
	var groups []*group
	look := func(m *entry) {
		g := m.Data.incident
		if g != nil && related(&m.Finding, &n.Finding) && !slices.Contains(groups, g) && g.of(&n.Finding) {
			groups = append(groups, g)
		}
	}
	for m := range e.book.All() {
		if m != n {
			look(m)
		}
	}
	for m := range e.book.Ended() {
		if m != n {
			look(m)
		}
	}
	slices.SortFunc(groups, func(a, b *group) int { return int(a.seq - b.seq) })
	switch {
	case n.Finding.JobID != "" || len(groups) == 0:
		return groups
	case n.Data.incident != nil:
		return nil // it stays where it was first
	}
	return groups[:1]
}

// of reports whether a finding can be of the incident: it is of the same job, or one of them
// is of none.
func (g *group) of(f *model.Finding) bool { return g.job == "" || f.JobID == "" || g.job == f.JobID }

// related reports whether two findings are of one incident.
func related(a, b *model.Finding) bool {
	return a.Start <= b.Time && b.Start <= a.Time && mayShareJob(a, b) && samePlace(a, b)
}

// mayShareJob is sameJob of findings that may not know their job, as of a host's clock, or
// not which of its lives, as of dumps.
func mayShareJob(a, b *model.Finding) bool {
	may := func(x, y string) bool { return x == y || x == "" || y == "" }
	return may(a.JobID, b.JobID) && may(a.Incarnation, b.Incarnation)
}

func samePlace(a, b *model.Finding) bool {
	same := func(x, y string) bool { return x != "" && x == y }
	return same(a.Host, b.Host) || same(a.HWID, b.HWID) || same(a.Link, b.Link) ||
		same(a.CommID, b.CommID) || a.JobID == b.JobID && shareRank(a, b)
}

func shareRank(a, b *model.Finding) bool {
	of := b.AboutRanks()
	return slices.ContainsFunc(a.AboutRanks(), func(r int64) bool { return slices.Contains(of, r) })
}
