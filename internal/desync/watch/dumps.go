// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// dumps are what has come of one incident's dumps. They are written once, when it is too late
// for anything else: all of them are waited for, and judged together.
type dumps struct {
	first, last time.Time
	looked      time.Time // when they were judged last
	ranks       map[int64]struct{}
	judged      bool
	// ready: they have been waited for, and count with whatever else is known.
	ready bool
}

// Dumps of ranks that come one by one are not waited for longer than so many times DumpWait;
// what comes so long after the last is of another incident.
const dumpPatience = 6

func (w *Watch) patience() time.Duration { return dumpPatience * w.cfg.DumpWait }

// addDump notes a rank's dump, the first of another incident after those of the former are
// forgotten.
func (w *Watch) addDump(j *job, from *rank, now time.Time) {
	d := &j.dumps
	if d.judged && now.Sub(d.last) > w.patience() {
		for _, r := range j.ranks {
			if r != from {
				j.forget(r, model.StateFlightRecorder)
				r.absence = nil
				j.countAbsence(r)
			}
		}
		*d = dumps{}
	}
	if d.ranks == nil {
		d.ranks, d.first = map[int64]struct{}{}, now
	}
	from.absence = nil
	j.countAbsence(from)
	d.ranks[from.of.Rank] = struct{}{}
	d.last, d.judged = now, false
}

// due reports whether dumps have come that are not judged yet, and no others are to be
// waited for.
func (w *Watch) due(j *job, now time.Time) bool {
	d := &j.dumps
	if len(d.ranks) == 0 || d.judged {
		return false
	}
	if now.Sub(j.judged) < j.pause() {
		return false
	}
	return now.Sub(d.last) >= w.cfg.DumpWait || now.Sub(later(d.first, d.looked)) >= w.patience() ||
		j.world.OK && int64(len(d.ranks))+j.absences() >= j.world.V
}

// absences counts the ranks of which it is known that no dump will come.
func (j *job) absences() (n int64) {
	for of, r := range j.ranks {
		if _, dumped := j.dumps.ranks[of]; r.absence != nil && !dumped {
			n++
		}
	}
	return n
}

// judgeDumps judges what has come, with all else that is known.
func (w *Watch) judgeDumps(j *job, now time.Time) {
	j.dumps.judged, j.dumps.ready, j.dumps.looked = true, true, now
	ev := w.gather(j, now)
	for of := range j.world.Or(0) {
		if of >= int64(w.cfg.MaxRanks) {
			break
		}
		if r := j.ranks[of]; r == nil || len(r.states) == 0 && r.absence == nil {
			ev.Absences = append(ev.Absences, model.Absence{
				Rank: of, Reason: model.AbsentLate, Time: now.UnixNano(),
				Detail: "no dump of it had come " + w.cfg.DumpWait.String() + " after the last",
			})
		}
	}
	report := w.judgement(j, &ev, now)
	found := make(map[*episode]bool, len(report.Roots))
	for i := range report.Roots {
		f := &report.Roots[i].Finding
		if !ev.live {
			found[w.tell(j, f, &look{blamed: blamed(f), of: byDumps}, found, now)] = true
		} else if l := w.look(j, f, w.standing(j, now), now); l.why == "" {
			found[w.tell(j, f, &l, found, now)] = true
		}
	}
	if !ev.live {
		w.takeBack(j, found, now)
	}
}

// takeBack closes what fewer dumps have told, and all that have come by now do not: none is lost
// in between.
func (w *Watch) takeBack(j *job, found map[*episode]bool, now time.Time) {
	for _, e := range slices.Clone(j.told) {
		if e.Data.by == byDumps && !found[e] {
			w.close(e, now)
		}
	}
}
