// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Engine analyses the steps of one or more jobs. It is not safe for concurrent
// use; everything it does is idempotent in (incarnation, step, operation).
type Engine struct {
	cfg   Config
	now   func() time.Time
	jobs  map[jobKey]*job
	book  *finding.Book[standing]
	stats Stats
	bytes int64 // that all jobs hold, about
	young int64 // of these, those of young jobs
	final bool  // Flush was called, and nothing added since
	// reports counts the findings that were reported.
	reports int64
	waiting bool // for jobs with findings that were open before a restart
	// What step reports hold besides the ranks.
	meetings, durations bool
	missing             func(id, incarnation string, step int64) Missing // nil: nothing is known
}

// New returns an engine; now is the clock that deadlines are taken from.
func New(cfg Config, now func() time.Time) *Engine {
	return &Engine{
		cfg: cfg, now: now, jobs: map[jobKey]*job{}, meetings: !cfg.Brief, durations: !cfg.Brief,
		book: finding.New[standing](finding.Config{MaxOpen: maxOpen, MaxOpenOfJob: maxOpenOfJob}),
	}
}

// Report says what step reports are to hold besides the ranks: meetings, their notes and
// all spans but those of the path; and histograms of durations. Both take long where nobody
// reads them.
func (e *Engine) Report(meetings, durations bool) { e.meetings, e.durations = meetings, durations }

// Missing is what is known to be missing of a step besides ranks.
type Missing struct {
	// Why names the cause; empty: nothing is missing.
	Why string
	// Spans are those that were lost.
	Spans int64
}

// Ask has a function asked of each step that is closed, before it is analysed, what is missing of it. A step of which
// something is missing is reported, and changes no finding: what is left of a rank may look slow.
func (e *Engine) Ask(missing func(id, incarnation string, step int64) Missing) { e.missing = missing }

// jobKey is one life of one job. Sources that know no incarnation leave it
// empty, so the job's id counts too.
type jobKey struct{ id, incarnation string }

// Add takes operations of one rank and returns the reports of the steps that
// became complete by it. A rank's step is complete when its operation of kind
// step has been added: sources send it last.
func (e *Engine) Add(rank model.Rank, ops []model.Op) []*StepReport {
	e.final = false
	if rank.Rank < 0 {
		e.stats.OpsWithoutRank += int64(len(ops))
		return nil
	}
	j := e.job(&rank)
	if !j.admit(&rank) {
		e.stats.RanksRefused++
		return nil
	}
	for i := range ops {
		j.add(&rank, &ops[i])
	}
	j.endTaking()
	j.outgrow(j.forms.most, "ranks are members of one group")
	j.noteLarge()
	out := j.closeDue()
	out = append(out, j.shrink()...)
	e.count(j)
	return append(out, e.shrink()...)
}

// Expire closes the steps whose deadline has passed and returns their reports.
func (e *Engine) Expire() []*StepReport {
	limit, short := e.now().Add(-e.cfg.Deadline), e.now().Add(-min(e.cfg.Deadline, markedGrace))
	var out []*StepReport
	for _, j := range e.sorted() {
		out = append(out, j.closeWhere(func(s *openStep) bool {
			return !s.heard.After(limit) || (!s.heard.After(short) && j.marked(s) && j.inTurn(s)) || (e.cfg.Reorder > 0 && j.due(s))
		})...)
		if j.steps < minTrials && !j.quiet && e.now().Sub(j.used) >= quietAfter+quietSteps*j.longest() {
			j.quiet, j.judged = true, false // what was put off is decided now
		}
		e.count(j)
	}
	return append(out, e.shrink()...)
}

// A job of few steps of which nothing came for so long, and for so many times its
// longest step, has no more of them, as a recording of one step.
const (
	quietAfter = 10 * time.Second
	quietSteps = 8
)

// markedGrace is how long a step that every rank has marked waits for operations
// that were announced: they are on their way, or a filter before us took them.
const markedGrace = 5 * time.Second

// Flush closes every open step and returns their reports.
func (e *Engine) Flush() []*StepReport {
	e.final = true
	var out []*StepReport
	for _, j := range e.sorted() {
		out = append(out, j.closeWhere(func(*openStep) bool { return true })...)
		if j.steps < minTrials {
			j.judged = false // what was put off is decided now
		}
		e.count(j)
	}
	return out
}

// Verdicts judges what has come since the last call and returns the findings
// that opened, changed by more than noise, or closed by it, most costly first;
// after Flush, those that changed at all.
func (e *Engine) Verdicts() []Verdict {
	for _, j := range e.sorted() {
		j.judge()
		if e.final {
			j.renew()
		}
	}
	e.closeAbsent()
	return e.changed()
}

// Jobs returns what all steps of every job showed.
func (e *Engine) Jobs() []JobReport {
	var out []JobReport
	for _, j := range e.sorted() {
		out = append(out, j.report())
	}
	return out
}

// Bytes returns about how many bytes the jobs hold.
func (e *Engine) Bytes() int64 { return e.bytes }

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	out := e.stats
	out.FindingsWithheld = e.book.Stats().Withheld
	for _, j := range e.jobs {
		out.JudgeRefused += j.refused()
	}
	return out
}

func (e *Engine) sorted() []*job {
	jobs := make([]*job, 0, len(e.jobs))
	for _, j := range e.jobs {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, (*job).compare)
	return jobs
}

func (e *Engine) job(r *model.Rank) *job {
	key := jobKey{r.JobID, r.Incarnation}
	if j := e.jobs[key]; j != nil {
		j.used, j.quiet = e.now(), false
		return j
	}
	if len(e.jobs) >= e.cfg.MaxJobs {
		e.evict(e.leastShown())
	}
	j := newJob(e, r)
	e.jobs[key] = j
	return j
}

// longIdle is how long a job sends nothing until it gives its place to any other job.
const longIdle = 10 * time.Minute

// leastShown returns the job that is to give its place to a new one: the one that was idle longest,
// where one was idle for long, else of those with the fewest steps the one that was idle longest.
// A job that is at work does not lose its place to names that come once.
func (e *Engine) leastShown() (out *job) {
	idle := e.now().Add(-longIdle)
	steps := func(j *job) int {
		if j.used.Before(idle) {
			return -1
		}
		return j.steps
	}
	for _, j := range e.sorted() {
		if out == nil || cmp.Or(cmp.Compare(steps(j), steps(out)), j.used.Compare(out.used)) < 0 {
			out = j
		}
	}
	return out
}

// Forget drops the jobs of some ids, with their open steps and findings, and reports nothing of them: another
// engine gets them.
func (e *Engine) Forget(ids []string) {
	for _, j := range e.sorted() {
		if slices.Contains(ids, j.id) {
			e.drop(j)
		}
	}
	for _, of := range e.book.Episodes() { // of before a restart
		if slices.Contains(ids, of.Place.Job) {
			e.book.Drop(of)
		}
	}
}

// Touch begins the deadlines of open steps anew: nothing could come of them for a while.
func (e *Engine) Touch() {
	now := e.now()
	for _, j := range e.jobs {
		for _, s := range j.open {
			s.heard = now
			if !s.done.IsZero() {
				s.done = now
			}
		}
	}
}

// evict drops a job for lack of room.
func (e *Engine) evict(j *job) {
	e.drop(j)
	e.stats.JobsEvicted++
}

// drop forgets a job with its findings: they are not reported as closed, since they may still hold.
func (e *Engine) drop(j *job) {
	for _, of := range j.standing() {
		e.book.Drop(of)
	}
	e.stats.JudgeRefused += j.refused()
	e.uncount(j)
	delete(e.jobs, jobKey{j.id, j.incarnation})
}
