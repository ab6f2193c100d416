// SPDX-License-Identifier: Apache-2.0

package sequence

import "time"

// Tick decides what time decides: spans of before a restart that did not come again, gaps that were not filled,
// and steps, streams and jobs of which nothing comes any more.
func (l *Ledger) Tick(now time.Time) error {
	l.now = now
	if !l.settled && now.Sub(l.looked) >= l.cfg.Wait {
		l.settled, l.looked = l.loseAll(), now
	}
	for _, s := range l.streams.All() {
		if now.Sub(s.since) >= l.cfg.Wait {
			gaps := s.seen.gaps().Minus(l.passing(s.name))
			l.miss(s, s.late.Intersect(gaps))
			s.late, s.since = gaps.Minus(s.late), now
		}
	}
	l.forget(now)
	return l.commit()
}

// loseAll counts what earlier lives left open, and did not come again, as lost. It reports whether that is all: calls
// under way have the rest.
func (l *Ledger) loseAll() (all bool) {
	all = true
	for _, s := range l.streams.All() {
		for step, p := range s.parts {
			n := l.lose(s, step)
			all = all && len(p.doubt) == 0
			if n == 0 {
				continue
			}
			l.change(step.job(), func(j *job) {
				if j.lost[step.Step] > 0 || len(j.lost) < l.cfg.MaxRanges {
					j.lost[step.Step] += n
				}
			})
		}
	}
	return all
}

// miss counts gaps of a stream. What is before its first span went to another gateway.
func (l *Ledger) miss(s *stream, gaps Ranges) {
	for _, r := range gaps {
		n := r.Last - r.First + 1
		if r.First == 0 || l.cfg.JobsMove {
			l.totals.Elsewhere += n
			s.elsewhere = s.elsewhere || r.First == 0
			continue
		}
		l.totals.Gap += n
		l.report(Step{Job: s.job.id, Incarnation: s.job.incarnation}, n, ReasonGap)
	}
	if len(gaps) > 0 {
		s.seen = s.seen.Union(gaps)
		l.dirty[s.name] = true
	}
}

// forget drops steps, streams and jobs of which nothing has come for long.
func (l *Ledger) forget(now time.Time) {
	limit := now.Add(-l.cfg.StepLimit)
	for step, begun := range l.underway {
		if begun.Before(limit) { // the analysis panicked
			delete(l.underway, step)
		}
	}
	for step, of := range l.steps {
		if _, underway := l.underway[step]; !underway && of.last.Before(limit) {
			l.totals.Forgotten += l.close(step)
		}
	}
	limit = now.Add(-l.cfg.StreamLimit)
	l.forgetJobs(limit)
	for name, s := range l.streams.All() {
		if !s.used.Before(limit) {
			break
		}
		l.streams.Delete(name)
		l.leave(s)
	}
}

// leave drops what a stream has that gives its place to another one.
func (l *Ledger) leave(s *stream) {
	for step, p := range s.parts {
		l.totals.Forgotten += p.count()
		*p = part{}
		l.tidy(s, step)
	}
	l.listed = false
	if delete(l.dirty, s.name); s.kept {
		l.dirty[s.name] = true // to be deleted
	}
}
