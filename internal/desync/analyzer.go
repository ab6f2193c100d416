// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Analyzer takes what is known of one incident and concludes once. It is not safe for
// concurrent use.
type Analyzer struct {
	cfg       Config
	job       Job
	told      Job // by states
	doubt     Doubt
	groups    groupTable
	names     interner
	sigs      sigTable
	ranks     map[int64]*rank
	absent    map[int64]model.Absence
	beside    map[int64]beside
	witnesses []Witness
	problems  []string
	saved     saved
	stats     Stats
}

// maxWitnesses and maxProblems bound what is held for text: nobody reads more.
const (
	maxWitnesses = 1024
	maxProblems  = 64
)

// New returns an analyzer; zero limits mean the defaults.
func New(cfg Config) *Analyzer {
	cfg = cfg.withDefaults()
	return &Analyzer{
		cfg: cfg, groups: newGroupTable(cfg.MaxGroups), names: newInterner(), sigs: newSigTable(),
		ranks: map[int64]*rank{}, absent: map[int64]model.Absence{}, beside: map[int64]beside{},
	}
}

// SetJob says whose incident it is; what states say of it counts where it is empty.
func (a *Analyzer) SetJob(j Job) {
	if !j.WorldSize.OK {
		j.WorldSize = a.job.WorldSize
	}
	a.job = j
}

// SetDoubt says that what stands still may do so for a moment only.
func (a *Analyzer) SetDoubt(d Doubt) { a.doubt = d }

// Add takes what one source says of one rank. Nothing of s is kept.
func (a *Analyzer) Add(s *model.RankState) {
	id := s.Rank.Rank
	r := a.ranks[id]
	switch {
	case id < 0:
		a.refuse("state %s: got rank %d; want 0 or more", s.Name, id)
		return
	case r == nil && len(a.ranks) >= a.cfg.MaxRanks:
		a.refuse("state %s: got more than %d ranks", s.Name, a.cfg.MaxRanks)
		return
	case r == nil:
		r = &rank{id: id}
		a.ranks[id] = r
	}
	a.stats.States++
	a.knowJob(&s.Rank)
	r.know(s)
	// Every state is looked at, so that the order in which they come does not decide which
	// communicators are known.
	v := a.view(s)
	switch {
	case s.Source == model.StateRAS:
		a.vote(r, v)
	case r.view == nil, better(s, r.view):
		if r.view != nil {
			a.twin(s, r.view)
		}
		r.view = v
	default:
		a.twin(s, r.view)
	}
}

// maxVotes bounds what RAS says of one rank: one answer per incident is usual.
const maxVotes = 4

// vote keeps what RAS says of a rank, of many answers the newest. Of many saved ones, which come
// newest first, half of those that are kept are far enough from the newest to be compared with it.
func (a *Analyzer) vote(r *rank, v *view) {
	at, _ := slices.BinarySearchFunc(r.votes, v, func(x, y *view) int {
		return cmp.Or(cmp.Compare(y.time, x.time), cmp.Compare(x.name, y.name))
	})
	r.votes = slices.Insert(r.votes, at, v)
	if len(r.votes) > maxVotes {
		drop := maxVotes
		if a.saved.is && r.votes[0].time-r.votes[maxVotes/2].time < int64(SavedApart) {
			drop = maxVotes / 2
		}
		r.votes = slices.Delete(r.votes, drop, drop+1)
		a.stats.VotesDropped++
	}
}

// better reports whether s says more of a rank than what is known: a dump has operations in
// detail, and of two of one source the newer counts.
func better(s *model.RankState, v *view) bool {
	if s.Source != v.source {
		return s.Source == model.StateFlightRecorder
	}
	if s.Time != v.time {
		return s.Time > v.time
	}
	if s.LastEnqueue != v.lastEnqueue {
		return s.LastEnqueue > v.lastEnqueue
	}
	return s.Name < v.name
}

// twin notes that one source told of a rank twice.
func (a *Analyzer) twin(s *model.RankState, v *view) {
	if s.Source == v.source {
		a.stats.StatesRefused++
		first, second := min(s.Name, v.name), max(s.Name, v.name)
		a.problem("rank %d has two states, %s and %s: the newer counts", s.Rank.Rank, first, second)
	}
}

// AddAbsence takes that there is no state of a rank, and why. A state of it counts more,
// except where it is known to be dead.
func (a *Analyzer) AddAbsence(b model.Absence) {
	known, ok := a.absent[b.Rank]
	switch {
	case b.Rank < 0, !ok && len(a.absent) >= a.cfg.MaxRanks:
		a.stats.StatesRefused++
	case !ok, weight(b.Reason) < weight(known.Reason):
		a.absent[b.Rank] = b
	}
}

// weight orders reasons, what is best known first.
func weight(r model.AbsenceReason) int {
	for i, known := range []model.AbsenceReason{
		model.AbsentDead, model.AbsentUnreadable, model.AbsentRefused, model.AbsentStale, model.AbsentLate,
	} {
		if r == known {
			return i
		}
	}
	return 5
}

// AddWitness takes a fact of somebody else.
func (a *Analyzer) AddWitness(w Witness) {
	if len(a.witnesses) >= maxWitnesses {
		a.stats.WitnessesDropped++
		return
	}
	a.witnesses = append(a.witnesses, w)
}

func (a *Analyzer) knowJob(r *model.Rank) {
	t := &a.told
	t.ID, t.Name, t.Incarnation = named(t.ID, r.JobID), named(t.Name, r.JobName), named(t.Incarnation, r.Incarnation)
	if r.WorldSize.OK && r.WorldSize.V > a.job.WorldSize.Or(0) {
		a.job.WorldSize = r.WorldSize
	}
}

func (a *Analyzer) refuse(format string, args ...any) {
	a.stats.StatesRefused++
	a.problem(format, args...)
}

func (a *Analyzer) problem(format string, args ...any) {
	if len(a.problems) < maxProblems {
		a.problems = append(a.problems, fmt.Sprintf(format, args...))
	} else {
		a.stats.ProblemsOmitted++
	}
}
