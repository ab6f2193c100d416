// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// byProcess is by what the kernel says of a process a finding is told.
const byProcess = "process"

// stoppedLimit is how long others may wait for a process that is stopped where too few gaps of the
// job are known: nothing that a job does by itself stops its processes.
const stoppedLimit = 30 * time.Second

// heldProcess reports whether the kernel says that the process is held: it goes on when it is let, whatever
// it waits for.
func heldProcess(s model.ProcessState) bool {
	return s == model.ProcessStopped || s == model.ProcessTraced || s == model.ProcessFrozen
}

// leastHeld is how long a process must have given no heartbeat, s, which it gives once a second: a
// profiler stops one for less to read its stacks.
const leastHeld = 1

// stopped returns the newest state of a rank whose process is held; nil where it is not.
func (w *Watch) stopped(r *rank, now time.Time) *held {
	h := r.states[model.StateRankEvents]
	if h == nil || r.gone || !heldProcess(h.state.Process) || h.state.Silent.Or(leastHeld) < leastHeld || now.Sub(h.came) > w.cfg.StateTTL {
		return nil
	}
	return h
}

// tellStopped opens a finding of each process that is held, and closes that of one that goes on.
func (w *Watch) tellStopped(j *job, now time.Time) {
	var found []*episode
	var q *queue
	for _, of := range slices.Sorted(maps.Keys(j.living)) {
		r := j.ranks[of]
		if r == nil {
			continue
		}
		if h := w.stopped(r, now); h != nil {
			if q == nil {
				q = w.queueOf(j, now)
			}
			found = append(found, w.tellHeld(j, r, h, q, now))
		}
	}
	for _, e := range slices.Clone(j.told) {
		if e.Data.by == byProcess && !slices.Contains(found, e) && !w.awaited(e, now) {
			w.close(e, now)
		}
	}
}

// tellHeld opens or updates the finding of one process.
func (w *Watch) tellHeld(j *job, r *rank, h *held, q *queue, now time.Time) *episode {
	f, since := w.heldFinding(j, r, h)
	at := slices.IndexFunc(j.told, func(e *episode) bool { return e.Data.by == byProcess && e.Finding.Rank == f.Rank })
	if at >= 0 { // it knows best since when
		f.Start = j.told[at].Finding.Start
		since = min(since, r.local(h.state, f.Start, now).UnixNano())
	}
	waits, longest := q.waitersFor(r, now)
	waited := min(longest, now.Sub(time.Unix(0, since)))
	limit := w.limitOfHeld(j)
	if waited >= limit {
		f.Severity = model.SeverityError
	}
	f.Waiting = slices.Clone(waits[:min(len(waits), maxWaiting)])
	f.WaitingCount = model.Some(int64(len(waits)))
	f.Evidence = heldEvidence(h.state, f.Time-f.Start, waited, limit)
	if at < 0 {
		return w.open(j, fmt.Sprintf("process of rank %d", r.of.Rank), h.state.Rank.PID.V, &f, byProcess, now)
	}
	e := j.told[at]
	w.book.Confirm(e, now)
	graver := f.Severity != e.Finding.Severity
	if f.Severity < e.Finding.Severity { // others that wait no longer do not make it less
		f.Severity, graver = e.Finding.Severity, false
	}
	if graver || differ(&e.Finding, &f) && now.Sub(e.Revised) >= updateEvery {
		w.revise(e, &f, now)
	}
	return e
}

// heldFinding is what is known of a process that is held, and since when by this watch's clock.
func (w *Watch) heldFinding(j *job, r *rank, h *held) (f model.Finding, since int64) {
	s := h.state
	silent := time.Duration(s.Silent.Or(0) * float64(time.Second))
	f = model.Finding{
		Severity: model.SeverityInfo, JobName: j.name, JobID: j.key.id, Incarnation: j.key.incarnation,
		Kind: model.FindingDesync, Class: model.ClassProcessStopped, Cause: model.CauseUnknown,
		Rank: model.Some(r.of.Rank), Ranks: []int64{r.of.Rank}, RanksCount: model.Some(int64(1)), Host: r.of.HostName, HWID: r.of.HWID,
		Time: s.Time, Start: s.Time - int64(silent), Through: model.Some(int64(0)), Confidence: sureHeld, Action: heldAction(s),
		Stack: s.HostStack,
	}
	return f, h.came.Add(-silent).UnixNano()
}

// sureHeld is how sure it is that a process is held: its kernel says so.
const sureHeld = 0.99

func heldAction(s *model.RankState) string {
	pid := "PID"
	if s.Rank.PID.OK {
		pid = strconv.FormatInt(s.Rank.PID.V, 10)
	}
	switch s.Process {
	case model.ProcessTraced:
		return "let the debugger that is attached to process " + pid + " go on or detach (TracerPid in /proc/" + pid + "/status)"
	case model.ProcessFrozen:
		return "thaw the cgroup of process " + pid + " (cgroup.freeze or freezer.state, of the group that /proc/" + pid + "/cgroup names)"
	}
	return "kill -CONT " + pid + ", unless it was stopped on purpose"
}

func heldEvidence(s *model.RankState, ns int64, waited, limit time.Duration) *evidence.Held {
	e := &evidence.Held{
		Process: string(s.Process), Seconds: time.Duration(ns).Seconds(), Watched: byProcess,
		Waited: waited.Seconds(), StallLimit: limit.Seconds(),
	}
	if pid := s.Rank.PID; pid.OK {
		e.PID = &pid.V
	}
	return e
}

// heldFor is evidence of a process that was held for so long, ns, in all.
func heldFor(found evidence.Evidence, ns int64) evidence.Evidence {
	of, ok := evidence.As[evidence.Held](found)
	if !ok {
		return found
	}
	out := *of
	out.Seconds = time.Duration(ns).Seconds()
	return &out
}

// maxWaiting bounds the ranks that are listed as waiting.
const maxWaiting = 64

// commsOf are the ids of the communicators that a rank is known to be a member of.
func (r *rank) commsOf() map[string]bool {
	all := map[string]bool{}
	for id := range r.comms {
		all[id] = true
	}
	for _, h := range r.states {
		for i := range h.state.Comms {
			all[h.state.Comms[i].Comm.ID] = true
		}
	}
	return all
}

// limitOfHeld is how long others may wait for a process that is held.
func (w *Watch) limitOfHeld(j *job) time.Duration {
	h := j.rhythm.phases[model.PhaseTrain]
	if h == nil || h.Len() < w.cfg.MinGaps {
		return min(stoppedLimit, w.cfg.HeldLimit)
	}
	return min(w.limitOf(j, model.PhaseTrain), w.cfg.HeldLimit)
}

// holdups are the processes that are held, of those with an open finding, and the ranks that wait.
type holdups struct {
	ranks []*rank
	q     *queue // nil: no process is held
}

func (w *Watch) holdupsOf(j *job, now time.Time) (h holdups) {
	for _, e := range j.told {
		if e.Data.by != byProcess {
			continue
		}
		if r := j.ranks[e.Finding.Rank.V]; r != nil && w.stopped(r, now) != nil {
			h.ranks = append(h.ranks, r)
		}
	}
	if len(h.ranks) > 0 {
		h.q = w.queueOf(j, now)
	}
	return h
}

// explain reports whether a root may be the effect of a process that is held. A death or a mismatch
// is not: letting the process go on does not remove it.
func (h *holdups) explain(f *model.Finding) bool {
	if h.q == nil || ownFault(f.Class) {
		return false
	}
	a := h.q.accuse(f)
	return slices.ContainsFunc(h.ranks, func(r *rank) bool { return h.q.explains(r, a) })
}

// ownFault reports whether a root of this class is a fault whatever other processes do.
func ownFault(class string) bool {
	switch class {
	case model.ClassProcessDead, model.ClassMismatchOp, model.ClassMismatchSize, model.ClassMismatchDType,
		model.ClassMismatchRoot, model.ClassSplitImbalance, model.ClassOrderCycle:
		return true
	}
	return false
}
