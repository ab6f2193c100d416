// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// told is a finding that was given out and is open.
type told struct {
	f model.Finding
	// first is when it was told, confirmed when it was last found, sent when it last changed
	// as others know it.
	first, confirmed, sent time.Time
	missed                 int // judgements in a row that did not find it
	involved               []int64
	bytes                  int // that the job's share counts for it
	by                     string
}

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
func (w *Watch) tell(j *job, f *model.Finding, l *look, found map[*told]bool, now time.Time) *told {
	n := w.finished(j, f, l, now)
	t := j.match(f, found)
	if t == nil {
		if len(j.told) >= maxEpisodes {
			w.stats.Withheld++
			return nil
		}
		n.ID = w.newID(&n)
		n.Revision, n.Status = 1, model.StatusOpen
		t = &told{first: now, confirmed: now, sent: now, by: l.of}
		j.keep(t, &n)
		j.told = append(j.told, t)
		w.stats.Told++
		w.out = append(w.out, n)
		return t
	}
	t.confirmed, t.missed = now, 0
	if ofDumps := t.by == byDumps && l.of == byDumps; decided(&t.f) && !decided(&n) && !ofDumps {
		return t // what was known once stays known: evidence is lost, as with an agent; dumps are not
	}
	n.ID, n.Start, n.Revision, n.Status = t.f.ID, t.f.Start, t.f.Revision, model.StatusUpdated
	another, more := t.f.Class != n.Class || t.f.Rank != n.Rank || !slices.Equal(t.f.Ranks, n.Ranks), differ(&t.f, &n)
	if another || more && now.Sub(t.sent) >= updateEvery {
		n.Revision++
		t.sent = now
		j.keep(t, &n)
		w.out = append(w.out, n)
	}
	return t
}

// newID names a finding by its place and since when it hangs, so that who begins to watch
// anew finds the same one; what was closed already is not opened again.
func (w *Watch) newID(f *model.Finding) string {
	for episode := f.Start; ; episode++ {
		id := model.FindingID(f.Incarnation, model.FindingDesync, placeOf(f), episode)
		if !slices.Contains(w.closed, id) && !slices.ContainsFunc(w.Standing(), func(o model.Finding) bool { return o.ID == id }) {
			return id
		}
	}
}

// maxClosed is how many ids of closed findings are remembered.
const maxClosed = 1024

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

// keep records a finding as it was last reported.
func (j *job) keep(t *told, f *model.Finding) {
	t.f, t.involved = *f, append(blamed(f), f.Waiting...)
	bytes := f.Bytes() + len(t.involved)*int(unsafe.Sizeof(int64(0)))
	j.share.Add(bytes - t.bytes)
	t.bytes = bytes
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

// placeOf names the coarse place of a hang: who, or where.
func placeOf(f *model.Finding) string {
	if f.Rank.OK {
		return fmt.Sprintf("rank %d", f.Rank.V)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", f.Op, f.CommID)
	for _, r := range blamed(f) {
		fmt.Fprintf(&b, " %d", r)
	}
	return b.String()
}

// match returns the finding that is open and that this is one with: the evidence grows, and
// with it what is known of one and the same hang. Those that were found by this judgement already
// are others.
func (j *job) match(f *model.Finding, found map[*told]bool) *told {
	for _, same := range []func(a, b *model.Finding) bool{samePlace, sameRank, sameOperation, sameSuspects} {
		for _, t := range j.told {
			if !found[t] && t.by != byProcess && same(&t.f, f) {
				return t
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
func (w *Watch) missing(j *job, found map[*told]bool, now time.Time) {
	for _, t := range slices.Clone(j.told) {
		if found[t] || t.by == byProcess {
			continue
		}
		t.missed++
		if t.missed >= missedBefore && (w.moved(j, t) || t.by == byStates) {
			w.close(j, t, now)
		}
	}
}

// settleTold closes the findings of a job in which nobody is seen to stand: at once where
// that is because it goes on, else when nothing was heard of it for long.
func (w *Watch) settleTold(j *job, now time.Time) {
	for _, t := range slices.Clone(j.told) {
		if t.by != byProcess && (w.moved(j, t) || now.Sub(t.confirmed) >= w.cfg.Forget) {
			w.close(j, t, now)
		}
	}
}

// moved reports whether who was at fault or waited has gone on, or is gone.
func (w *Watch) moved(j *job, t *told) bool {
	gone := 0
	for _, of := range t.involved {
		r := j.ranks[of]
		if r == nil {
			continue
		}
		if !r.moved.Before(t.confirmed) {
			return true
		}
		if r.gone {
			gone++
		}
	}
	return j.replaced || len(t.involved) > 0 && gone == len(t.involved)
}

// close tells the end of a finding.
func (w *Watch) close(j *job, t *told, now time.Time) {
	j.told = slices.DeleteFunc(j.told, func(o *told) bool { return o == t })
	j.share.Add(-t.bytes)
	f := t.f
	f.Revision++
	f.Status = model.StatusClosed
	f.Time = max(f.Time, j.latest(now))
	if t.by == byProcess {
		f.Evidence = heldFor(f.Evidence, f.Time-f.Start)
	}
	j.rhythm.stretch(stretch{f.Start, f.Time, phaseHang})
	w.out = append(w.out, f)
	if len(w.closed) >= maxClosed {
		w.closed = append(w.closed[:0], w.closed[1:]...)
	}
	w.closed = append(w.closed, f.ID)
}

// abortsAfter is how long ranks wait for a stopped process before libraries end them for that: their
// timeouts are minutes.
const abortsAfter = time.Minute

// firstTold is the time from which a death may be an effect of a finding that is open; zero without one.
func (j *job) firstTold() (first time.Time) {
	for _, t := range j.told {
		from := t.first
		if t.by == byProcess {
			from = from.Add(abortsAfter)
		}
		if first.IsZero() || from.Before(first) {
			first = from
		}
	}
	return first
}
