// SPDX-License-Identifier: Apache-2.0

package sequence

import "time"

type jobKey struct{ id, incarnation string }

func (s Step) job() jobKey { return jobKey{s.Job, s.Incarnation} }

// job is what is known of one life of a job.
type job struct {
	done   Ranges          // steps that were concluded, or may have been
	unsure Ranges          // those of them whose conclusion was under way when a gateway ended
	lost   map[int64]int64 // spans lost of steps that were not

	used  time.Time     // when spans of it arrived or a step was concluded last
	woke  time.Time     // when spans arrived after none had for the wait; zero: the job was not run again since
	slept time.Duration // for how long none had until then
	kept  bool          // the store has its key
}

func (j *job) size(of jobKey) int {
	return jobSize + len(of.id) + len(of.incarnation) + rangeSize*(len(j.done)+len(j.unsure)) + lostSize*len(j.lost)
}

// change changes what is known of a job.
func (l *Ledger) change(of jobKey, do func(*job)) {
	j, ok := l.jobs.Get(of)
	if !ok {
		j = &job{lost: map[int64]int64{}, kept: l.changed[of]} // a change of an unknown job is to delete its key
		l.jobs.Set(of, j)
		l.listed = false
	}
	l.changed[of], j.used = true, l.now
	do(j)
	l.jobs.Touch(of)
}

// leaveJob has the key of a job deleted that is no longer known.
func (l *Ledger) leaveJob(of jobKey, j *job) {
	l.listed = false
	if delete(l.changed, of); j.kept {
		l.changed[of] = true
	}
}

// forgetJobs drops jobs of which nothing has come for long: the same name may be another job now.
func (l *Ledger) forgetJobs(limit time.Time) {
	for of, j := range l.jobs.All() {
		if j.used.Before(limit) {
			l.jobs.Delete(of)
			l.leaveJob(of, j)
		}
	}
}

// run notes that spans of jobs arrive, and forgets the steps of those that run again under the same name.
func (l *Ledger) run(s *stream, a *Arrival) {
	first := map[jobKey]int64{}
	for step := range a.Steps {
		if least, ok := first[step.job()]; !ok || step.Step < least {
			first[step.job()] = step.Step
		}
	}
	for of, step := range first {
		j, ok := l.jobs.Get(of)
		if !ok {
			continue
		}
		quiet := j.used
		if quiet.Before(l.began) { // what came while the gateway was away is not known
			quiet = l.began
		}
		if l.now.Sub(quiet) >= l.cfg.Wait {
			j.woke, j.slept = l.now, l.now.Sub(quiet)
		}
		j.used = l.now
		if l.now.Sub(j.woke) < l.cfg.Wait && j.begins(step) && s.goesOn(a, Step{of.id, of.incarnation, step}, j.slept >= longPause*l.cfg.Wait) {
			l.change(of, func(j *job) { *j = job{lost: map[int64]int64{}, used: j.used, kept: j.kept} })
		}
	}
}

// begins reports whether a step is no later than the first one that was concluded.
func (j *job) begins(step int64) bool { return len(j.done) > 0 && step <= j.done[0].First }

// longPause is for how many waits nothing came of a job that agents of which nothing came yet may run again: the first
// spans of an agent that was cut off begin the same way, and come while the job runs, between steps and pauses of it.
const longPause = 10

// goesOn reports whether an agent numbered the spans of a step after all that arrived of its stream. A stream that
// is new has its first number here, and came after a long pause.
func (s *stream) goesOn(a *Arrival, step Step, long bool) bool {
	if len(s.seen) == 0 {
		return long && a.numbers().Has(0)
	}
	numbers := a.Steps[step]
	return len(numbers) > 0 && numbers[0].First > s.seen[len(s.seen)-1].Last
}

// settle notes that a step was concluded, or may have been.
func (l *Ledger) settle(step Step, unsure bool) {
	l.change(step.job(), func(j *job) {
		this := Ranges{{step.Step, step.Step}}
		j.done = l.last(j.done.Union(this))
		if unsure {
			j.unsure = l.last(j.unsure.Union(this))
		}
	})
}

// last returns the last ranges of steps: as many as are kept.
func (l *Ledger) last(steps Ranges) Ranges { return steps[max(0, len(steps)-l.cfg.MaxRanges):] }

// concluded reports whether a step was concluded, here.
func (l *Ledger) concluded(step Step) bool {
	j, ok := l.jobs.Peek(step.job())
	return ok && j.done.Has(step.Step)
}

// unsure reports whether it is not known if a step was concluded, here.
func (l *Ledger) unsure(step Step) bool {
	j, ok := l.jobs.Peek(step.job())
	return ok && j.unsure.Has(step.Step)
}
