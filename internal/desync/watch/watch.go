// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Watch follows any number of jobs. It is not safe for concurrent use. Times that it is given
// are of one clock, that of who uses it.
type Watch struct {
	cfg       Config
	judge     func(*Evidence) *desync.Report
	jobs      map[jobKey]*job
	latest    map[string]jobKey // by job id, its life that began last
	room      bounded.Room[*job]
	witnesses *bounded.Map[witnessKey, witness] // by when they were told last
	over      []*model.Op                       // of one call of AddOps
	book      *finding.Book[told]
	stats     Stats
}

func newWatch(cfg Config, judge func(*Evidence) *desync.Report) *Watch {
	return &Watch{
		cfg: cfg, judge: judge, jobs: map[jobKey]*job{}, latest: map[string]jobKey{}, book: newBook(&cfg),
		witnesses: bounded.NewMap(bounded.MapConfig[witnessKey, witness]{Order: bounded.ByUse}),
	}
}

// AddState takes the state of a rank; nothing of s may change afterwards.
func (w *Watch) AddState(s *model.RankState, now time.Time) {
	w.stats.States++
	switch s.Source {
	case model.StateFlightRecorder, model.StateRankEvents, model.StateRAS:
	default:
		w.stats.StatesForeign++
		return
	}
	j := w.job(&s.Rank, now)
	r := w.rank(j, &s.Rank, now)
	if r == nil {
		return
	}
	w.take(j, r, s, now)
	w.makeRoom()
}

func (w *Watch) take(j *job, r *rank, s *model.RankState, now time.Time) {
	old := r.states[s.Source]
	if old != nil && s.Source == model.StateFlightRecorder && now.Sub(old.came) > w.patience() {
		j.forget(r, s.Source) // of another incident, whatever its time
		old = nil
	}
	if !r.take(s, now) {
		if clock := r.clockOf(s.Source); clock != nil && s.Time > clock.latest(now) {
			w.stats.TimesAhead++
		} else {
			w.stats.StatesLate++
		}
		return
	}
	j.count(r, old, r.states[s.Source])
	j.countAbsence(r)
	if s.Source == model.StateFlightRecorder {
		w.stats.Dumps++
		if !j.world.OK {
			j.world = widest(s)
		}
		w.addDump(j, r, now)
		return
	}
	j.native = j.native || s.Name != fromEvents
	if s.Source == model.StateRankEvents && s.Name != fromEvents && !r.gone {
		j.replaced = false // its ranks are there, whatever else was heard of
	}
	if phase := phaseOf(s); phase != r.phase {
		if r.phase != "" {
			r.phaseSince = now
		}
		r.phase, r.phaseFrom = phase, s.Time
	} else if phase != model.PhaseTrain {
		j.rhythm.stretch(stretch{r.phaseFrom, s.Time, phase})
	}
	if !r.gone {
		j.living[s.Rank.Rank] = struct{}{}
	}
}

// widest is the size of the largest communicator of a dump: that of the world, unless it says
// another.
func widest(s *model.RankState) (size model.Optional[int64]) {
	for i := range s.Comms {
		if n := int64(len(s.Comms[i].Members)); n > size.V {
			size = model.Some(n)
		}
	}
	return size
}

// AddAbsence takes that there is no state of a rank of the job that of says.
func (w *Watch) AddAbsence(of *model.Rank, a model.Absence, now time.Time) {
	w.stats.Absences++
	j := w.job(of, now)
	var heard time.Time // of itself; this is of others
	if r := j.ranks[of.Rank]; r != nil {
		heard = r.heard
	}
	r := w.rank(j, of, now)
	if r == nil {
		return
	}
	r.absence, r.heard, r.absentAt = &a, heard, now
	r.gone = r.gone || a.Reason == model.AbsentDead
	j.countAbsence(r)
	w.makeRoom()
}

// Tick judges what is due, and returns the findings that have changed since the last.
func (w *Watch) Tick(now time.Time) []model.Finding {
	for _, j := range w.inOrder() {
		w.settleAllOpens(j)
		j.rhythm.settle(now)
		j.measure()
		if w.due(j, now) {
			w.judgeDumps(j, now)
		}
		switch {
		case j.replaced || len(j.living) == 0:
			w.settleTold(j, now)
		default:
			w.judgeLive(j, now)
		}
		w.tellStopped(j, now)
		if len(j.told) == 0 && now.Sub(j.heard) >= w.cfg.Forget {
			w.drop(j)
		}
	}
	w.closeUnseen(now)
	w.witnesses.DropOldest(func(_ witnessKey, x witness) bool { return now.Sub(x.heard) >= w.cfg.Forget })
	w.makeRoom()
	return w.changed()
}

// Flush judges dumps that are still waited for, and returns what has changed. What hangs is
// not closed: that nobody watches any more mends nothing.
func (w *Watch) Flush(now time.Time) []model.Finding {
	for _, j := range w.inOrder() {
		w.settleAllOpens(j)
		if len(j.dumps.ranks) > 0 && !j.dumps.judged {
			w.judgeDumps(j, now)
		}
	}
	return w.changed()
}

func (w *Watch) changed() []model.Finding {
	out := w.book.Take()
	for i := range out {
		out[i] = out[i].GiveOut()
	}
	return out
}

// Standing returns the findings that are open, as they were last reported: their times are of the clocks
// of ranks.
func (w *Watch) Standing() (all []model.Finding) {
	for e := range w.book.All() {
		all = append(all, e.Finding.GiveOut())
	}
	slices.SortStableFunc(all, func(a, b model.Finding) int {
		return cmp.Or(strings.Compare(a.JobID, b.JobID), strings.Compare(a.Incarnation, b.Incarnation))
	})
	return all
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s, of := w.stats, w.book.Stats()
	s.Told, s.Withheld = of.Opened, s.Withheld+of.Withheld
	s.Bytes = int64(w.room.Bytes())
	for _, j := range w.jobs {
		s.GapsHurried += j.rhythm.hurried
	}
	return s
}

// Limit is how long a job may stand in a phase.
type Limit struct {
	Job, Phase string
	Limit      time.Duration
	// Gaps is how many gaps of the phase are known.
	Gaps int
}

// Limits lists the limits in force, of phases of which there are gaps: of a job with several
// lives that go on, the limit that rests on most.
func (w *Watch) Limits() (list []Limit) {
	at := map[[2]string]int{}
	for _, j := range w.inOrder() {
		if j.replaced {
			continue
		}
		for phase, h := range j.rhythm.phases {
			if phase == phaseHang {
				continue
			}
			key, l := [2]string{j.key.id, phase}, Limit{j.key.id, phase, w.limitOf(j, phase), h.Len()}
			if i, twice := at[key]; !twice {
				at[key], list = len(list), append(list, l)
			} else if l.Gaps > list[i].Gaps {
				list[i] = l
			}
		}
	}
	return list
}

// Hang is what is open of a job.
type Hang struct {
	Job      string
	Findings int
	Waiting  int64 // ranks, themselves or through others
}

// Hangs sums up what is open, by job; a job that works is listed with zeros.
func (w *Watch) Hangs() (list []Hang) {
	of := map[string]int{} // a job may have several lives
	for _, j := range w.jobs {
		at, known := of[j.key.id]
		if !known {
			at = len(list)
			of[j.key.id], list = at, append(list, Hang{Job: j.key.id})
		}
		h := &list[at]
		for _, e := range j.told {
			f := &e.Finding
			if f.Severity == model.SeverityInfo {
				continue // a process that is stopped, for which no rank has waited for long
			}
			h.Findings++
			h.Waiting = max(h.Waiting, f.WaitingCount.Or(int64(len(f.Waiting)))+f.Through.Or(0))
		}
	}
	slices.SortFunc(list, func(a, b Hang) int { return strings.Compare(a.Job, b.Job) })
	return list
}
