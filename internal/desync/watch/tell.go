// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// told is what the watch keeps of an open finding.
type told struct {
	job      *job // nil: the job was not seen since a restart
	by       string
	involved []int64
	bytes    int // that the job's share counts for it
}

type episode = finding.Episode[told]

// By what a finding is told: by states that come all the time, or by dumps, which come once.
const (
	byStates = "live"
	byDumps  = "dumps"
)

// maxEpisodes bounds the findings of one job that are open at a time.
const maxEpisodes = 256

// updateEvery is how often a finding is told anew whose numbers alone have changed.
const updateEvery = 5 * time.Second

// missedBefore is how many judgements in a row must have lost sight of a root that has moved.
const missedBefore = 2

// tell opens a finding, or updates the one that this is.
func (w *Watch) tell(j *job, f *model.Finding, l *look, found map[*episode]bool, now time.Time) *episode {
	n := w.finished(j, f, l, now)
	e := j.match(f, found)
	if e == nil {
		return w.open(j, placeOf(f), 0, &n, l.of, now)
	}
	w.book.Confirm(e, now)
	if ofDumps := e.Data.by == byDumps && l.of == byDumps; decided(&e.Finding) && !decided(&n) && !ofDumps {
		return e // what was known once stays known: evidence is lost, as with an agent; dumps are not
	}
	was := &e.Finding
	another, more := was.Class != n.Class || was.Rank != n.Rank || !slices.Equal(was.Ranks, n.Ranks), differ(was, &n)
	if another || more && now.Sub(e.Revised) >= updateEvery {
		w.revise(e, &n, now)
	}
	return e
}

// open opens a finding; nil where there is no room. Where one is open at its place already, as of two ranks
// that are at fault in one operation, the ranks and the class tell them apart.
func (w *Watch) open(j *job, place string, first int64, f *model.Finding, by string, now time.Time) *episode {
	p := finding.Place{Job: j.key.id, Incarnation: j.key.incarnation, Name: place}
	for _, more := range []string{fmt.Sprint(" of ranks ", blamed(f)), " " + f.Class, " again"} {
		if w.book.At(p) == nil {
			break
		}
		p.Name += more
	}
	if w.book.At(p) != nil {
		return nil
	}
	e := w.book.Open(p, first, f, now)
	if e == nil {
		return nil
	}
	e.Data = told{job: j, by: by}
	j.told = append(j.told, e)
	j.keep(e)
	return e
}

func (w *Watch) revise(e *episode, f *model.Finding, now time.Time) {
	w.book.Revise(e, f, now)
	e.Data.job.keep(e)
}

// decided reports whether a finding says why something hangs.
func decided(f *model.Finding) bool {
	return f.Class != model.ClassIncompleteEvidence && f.Class != model.ClassDumpMissing
}

// differ reports whether what is said has changed beside the place.
func differ(a, b *model.Finding) bool {
	return a.Cause != b.Cause || a.WaitingCount != b.WaitingCount || a.Through != b.Through || a.CandidatesCount != b.CandidatesCount ||
		!slices.Equal(a.Waiting, b.Waiting) || !slices.Equal(a.Candidates, b.Candidates) || a.Stack != b.Stack ||
		math.Abs(a.Confidence-b.Confidence) >= 0.05
}

// keep counts a finding as it was last reported.
func (j *job) keep(e *episode) {
	e.Data.involved = append(blamed(&e.Finding), e.Finding.Waiting...)
	bytes := e.Finding.Bytes() + len(e.Data.involved)*int(unsafe.Sizeof(int64(0)))
	j.share.Add(bytes - e.Data.bytes)
	e.Data.bytes = bytes
}

// finished fills in what the analysis does not know.
func (w *Watch) finished(j *job, f *model.Finding, l *look, now time.Time) model.Finding {
	n := *f
	n.Kind, n.JobID, n.Incarnation, n.JobName = model.FindingDesync, j.key.id, j.key.incarnation, j.name
	n.Time = j.latest(now)
	if n.Start == 0 {
		n.Start = n.Time - int64(l.stood)
	}
	n.Time = max(n.Time, n.Start)
	n.Evidence = evidenceOf(f.Evidence, l)
	return n
}

// latest is when the newest state was taken, by its host.
func (j *job) latest(now time.Time) (at int64) {
	for _, r := range j.ranks {
		for _, h := range r.states {
			at = max(at, h.state.Time)
		}
	}
	if at == 0 {
		return now.UnixNano()
	}
	return at
}

// evidenceOf adds to what decided the analysis what decided the watch.
func evidenceOf(found evidence.Evidence, l *look) evidence.Evidence {
	of, ok := found.(*evidence.Hang)
	if !ok && found != nil {
		return found
	}
	var limit *evidence.StallLimit
	if l.limit > 0 {
		limit = &evidence.StallLimit{Limit: l.limit.Seconds(), Stood: l.stood.Seconds(), Phase: l.phase}
	}
	return of.WithWatch(l.of, limit)
}

// placeOf names the coarse place of a hang: the operation in its communicator, or else the rank. It depends
// neither on when the watch looked nor on how much it knew of the hang then.
func placeOf(f *model.Finding) string {
	switch {
	case f.CommID != "":
		return f.Op + " of " + f.CommID
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V)
	}
	return fmt.Sprintf("%s of ranks %v", f.Class, blamed(f))
}

// match returns the finding that is open and that this is one with: the evidence grows, and
// with it what is known of one and the same hang. Those that were found by this judgement already
// are others.
func (j *job) match(f *model.Finding, found map[*episode]bool) *episode {
	for _, same := range []func(a, b *model.Finding) bool{samePlace, sameRank, sameOperation, sameSuspects} {
		for _, e := range j.told {
			if !found[e] && e.Data.by != byProcess && same(&e.Finding, f) {
				return e
			}
		}
	}
	return nil
}

func samePlace(a, b *model.Finding) bool {
	return a.Class == b.Class && a.Rank == b.Rank && a.CommID == b.CommID && a.Op == b.Op && slices.Equal(a.Ranks, b.Ranks)
}

func sameRank(a, b *model.Finding) bool { return a.Rank.OK && a.Rank == b.Rank }

// sameOperation: one of them may name a rank where the other does not yet.
func sameOperation(a, b *model.Finding) bool {
	return a.CommID != "" && a.CommID == b.CommID && a.Op == b.Op && (!a.Rank.OK || !b.Rank.OK)
}

func sameSuspects(a, b *model.Finding) bool {
	if a.Rank.OK && b.Rank.OK {
		return false
	}
	of := blamed(b)
	return slices.ContainsFunc(blamed(a), func(r int64) bool { return slices.Contains(of, r) })
}

// missing closes what was not found any more.
func (w *Watch) missing(j *job, found map[*episode]bool, now time.Time) {
	for _, e := range slices.Clone(j.told) {
		if found[e] || e.Data.by == byProcess {
			continue
		}
		e.Missed++
		if e.Missed >= missedBefore && (w.moved(j, e) || e.Data.by == byStates) {
			w.close(e, now)
		}
	}
}

// settleTold closes the findings of a job in which no rank stands: at once where
// that is because it goes on, else when the finding was not confirmed for long.
func (w *Watch) settleTold(j *job, now time.Time) {
	for _, e := range slices.Clone(j.told) {
		if e.Data.by != byProcess && (w.moved(j, e) || now.Sub(e.Confirmed) >= w.cfg.Forget) {
			w.close(e, now)
		}
	}
}

// moved reports whether a rank that was at fault or waited has gone on, or all of them are gone.
func (w *Watch) moved(j *job, e *episode) bool {
	gone := 0
	for _, of := range e.Data.involved {
		r := j.ranks[of]
		if r == nil {
			continue
		}
		if !r.moved.Before(e.Confirmed) {
			return true
		}
		if r.gone {
			gone++
		}
	}
	return j.replaced || len(e.Data.involved) > 0 && gone == len(e.Data.involved)
}

// close ends a finding.
func (w *Watch) close(e *episode, now time.Time) {
	j := e.Data.job
	j.leave(e)
	f := e.Finding
	f.Time = max(f.Time, j.latest(now))
	if e.Data.by == byProcess {
		f.Evidence = heldFor(f.Evidence, f.Time-f.Start)
	}
	j.rhythm.stretch(stretch{f.Start, f.Time, phaseHang})
	w.book.Refresh(e, &f)
	w.book.Close(e, f.Time)
}

// leave forgets a finding.
func (j *job) leave(e *episode) {
	j.told = slices.DeleteFunc(j.told, func(o *episode) bool { return o == e })
	j.share.Add(-e.Data.bytes)
}

// abortsAfter is how long ranks wait for a stopped process before libraries end them for that: their
// timeouts are minutes.
const abortsAfter = time.Minute

// firstTold is the time from which a death may be an effect of a finding that is open; zero without one.
func (j *job) firstTold() (first time.Time) {
	for _, e := range j.told {
		from := e.Opened
		if e.Data.by == byProcess {
			from = from.Add(abortsAfter)
		}
		if first.IsZero() || from.Before(first) {
			first = from
		}
	}
	return first
}
