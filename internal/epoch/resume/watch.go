// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Watch follows what the ranks of any number of jobs have loaded, and keeps a finding open while
// those of one incarnation disagree. It is not safe for concurrent use. All times are of the clock of
// its user.
type Watch struct {
	cfg    Config
	engine *Engine
	lives  map[Key]*hearing // of what the engine holds
	book   *finding.Book[struct{}]
	silent int64 // incarnations that were forgotten
}

// hearing is when an incarnation was heard of, and what was made of it.
type hearing struct {
	began, heard time.Time
	order        int64 // the later it was first heard of, the greater
	judged       bool
	Judgement
}

// NewWatch returns a watch that has heard nothing.
func NewWatch(c Config) *Watch {
	w := &Watch{
		cfg: c, engine: New(c), lives: map[Key]*hearing{},
		book: finding.New[struct{}](finding.Config{MaxOpen: c.MaxEpisodes, Same: finding.Equal}),
	}
	w.engine.left = func(k Key) { delete(w.lives, k) }
	return w
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s, of := w.engine.Stats(), w.book.Stats()
	s.Opened, s.Closed, s.Withheld, s.Silent = of.Opened, of.Closed, of.Withheld, w.silent
	return s
}

// Observe takes what a rank has told.
func (w *Watch) Observe(v *model.Resume, now time.Time) {
	k := Key{v.Rank.JobID, v.Rank.Incarnation}
	in := w.lives[k]
	if in == nil {
		in = &hearing{began: now, order: w.engine.stats.Resumes}
		w.lives[k] = in
	}
	in.heard = now
	if w.engine.Observe(v) {
		in.judged = false
	}
}

// Tick judges what has changed, and returns the findings that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) []model.Finding {
	silent := map[Key]bool{}
	for k, in := range w.lives {
		if now.Sub(in.heard) >= w.cfg.Silent {
			w.silent++
			silent[k] = true
			w.engine.Forget(k)
		}
	}
	for e := range w.book.All() { // an incarnation that left for others may still be mixed
		if k := keyOf(e.Place); w.lives[k] == nil && !silent[k] && !e.Restored {
			w.book.Drop(e)
		}
	}
	for k, in := range w.lives {
		if !in.judged {
			in.Judgement, in.judged = w.engine.Judge(k), true
		}
	}
	w.book.End(now, func(e *finding.Episode[struct{}]) bool { return w.ended(e, now) })
	for _, k := range w.engine.Keys() {
		if in := w.lives[k]; in.Verdict == epoch.MixedEpoch && !w.replaced(k) {
			w.book.Found(k.place(), in.number, in.finding(k, w.engine.Name(k), now), now)
		}
	}
	return w.book.Take()
}

// ended reports whether the ranks of a finding disagree no longer. What was open before a restart waits
// for its ranks to report again.
func (w *Watch) ended(e *finding.Episode[struct{}], now time.Time) bool {
	k := keyOf(e.Place)
	in := w.lives[k]
	switch {
	case w.replaced(k):
		return true
	case e.Restored && now.Sub(e.Confirmed) < w.cfg.Silent:
		return in != nil && in.Verdict == epoch.Converged
	}
	return in == nil || in.Verdict != epoch.MixedEpoch
}

// replaced reports whether the job has a newer life whose ranks agree, and this one was not heard of
// since that began: two jobs may go by one name.
func (w *Watch) replaced(k Key) bool {
	in := w.lives[k]
	for other, o := range w.lives {
		if other.Job == k.Job && other != k && o.agrees() && (in == nil || o.order > in.order && !in.heard.After(o.began)) {
			return true
		}
	}
	return false
}

// agrees: all ranks do; where nobody says how many there are, those that told.
func (in *hearing) agrees() bool {
	return in.Verdict == epoch.Converged || in.Verdict == epoch.Converging && in.Of == 0 && in.Ranks > 1 && in.Apart == 0
}

// Mixed returns, by job, how many of its lives that are held have ranks that disagree.
func (w *Watch) Mixed() map[string]int {
	jobs := map[string]int{}
	for k := range w.lives {
		jobs[k.Job] += 0 // one that agrees has a value, too
		if w.book.At(k.place()) != nil {
			jobs[k.Job]++
		}
	}
	return jobs
}

// Standing returns the findings that are open, as of now.
func (w *Watch) Standing(now time.Time) []model.Finding { return w.book.Standing(now) }

// Snapshot returns the findings, to be kept over a restart.
func (w *Watch) Snapshot() ([]byte, error) { return w.book.Snapshot() }

// Restore takes what Snapshot returned, before anything is observed.
func (w *Watch) Restore(data []byte, now time.Time) error { return w.book.Restore(data, now) }
