// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Watch follows what the ranks of any number of jobs have loaded, and holds an episode open while
// those of one incarnation disagree. It is not safe for concurrent use. Times that it is given are
// of one clock, that of who uses it: they decide who is silent.
type Watch struct {
	cfg    Config
	engine *Engine
	lives  map[Key]*hearing
	open   map[Key]*Episode
	stats  Stats // of episodes, and who was silent
}

// hearing is when an incarnation was heard of, and what was made of it.
type hearing struct {
	began, heard time.Time
	order        int64 // the later it was first heard of, the greater
	judged       bool
	Judgement
}

// Episode is one incarnation whose ranks disagree, from when that was seen to its end.
type Episode struct {
	Key
	JobName string
	Judgement
	Began    time.Time
	Ended    time.Time // zero: it is open
	Revision int64
}

// NewWatch returns a watch that has heard nothing.
func NewWatch(c Config) *Watch {
	return &Watch{cfg: c, engine: New(c), lives: map[Key]*hearing{}, open: map[Key]*Episode{}}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s := w.engine.Stats()
	s.Opened, s.Closed, s.Withheld, s.Silent = w.stats.Opened, w.stats.Closed, w.stats.Withheld, w.stats.Silent
	return s
}

// Observe takes what a rank has told.
func (w *Watch) Observe(v *model.Resume, now time.Time) {
	k := Key{v.Rank.JobID, v.Rank.Incarnation}
	in := w.lives[k]
	if in == nil || !w.engine.Has(k) {
		if len(w.lives) >= 2*w.engine.cfg.Incarnations { // else a flood of them waits for Tick
			w.prune()
		}
		in = &hearing{began: now, order: w.engine.stats.Resumes}
		w.lives[k] = in
	}
	in.heard = now
	if w.engine.Observe(v) {
		in.judged = false
	}
}

// prune drops what the engine holds no more.
func (w *Watch) prune() {
	maps.DeleteFunc(w.lives, func(k Key, _ *hearing) bool { return !w.engine.Has(k) })
}

// Tick judges what has changed, and returns the episodes that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) (out []Episode) {
	for k, in := range w.lives {
		if now.Sub(in.heard) >= w.cfg.Silent && w.engine.Has(k) {
			w.stats.Silent++
			w.engine.Forget(k)
		}
	}
	w.prune()
	for k, in := range w.lives {
		if !in.judged {
			in.Judgement, in.judged = w.engine.Judge(k), true
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(w.open), compareKeys) {
		if in := w.lives[k]; in == nil || in.Verdict != epoch.MixedEpoch || w.replaced(k) {
			out = append(out, w.close(k, now))
		}
	}
	for _, k := range w.engine.Keys() {
		if in := w.lives[k]; in.Verdict == epoch.MixedEpoch && !w.replaced(k) {
			out = w.tell(out, k, in, now)
		}
	}
	return out
}

// replaced reports whether the job has a newer life whose ranks agree, and this one was not heard of
// since that began: two jobs may go by one name.
func (w *Watch) replaced(k Key) bool {
	in := w.lives[k]
	for other, o := range w.lives {
		if other.Job == k.Job && o.order > in.order && o.agrees() && !in.heard.After(o.began) {
			return true
		}
	}
	return false
}

// agrees: all ranks do; where nobody says how many there are, those that told.
func (in *hearing) agrees() bool {
	return in.Verdict == epoch.Converged || in.Verdict == epoch.Converging && in.Of == 0 && in.Ranks > 1 && in.Apart == 0
}

func (w *Watch) tell(out []Episode, k Key, in *hearing, now time.Time) []Episode {
	e := w.open[k]
	switch {
	case e == nil && len(w.open) >= w.cfg.MaxEpisodes:
		w.stats.Withheld++
		return out
	case e == nil:
		e = &Episode{Key: k, Began: now}
		w.open[k] = e
		w.stats.Opened++
	case reflect.DeepEqual(e.Judgement, in.Judgement):
		return out
	}
	e.JobName, e.Judgement = w.engine.Name(k), in.Judgement
	e.Revision++
	return append(out, *e)
}

// close ends an episode; it keeps what it was about.
func (w *Watch) close(k Key, now time.Time) Episode {
	e := *w.open[k]
	delete(w.open, k)
	w.stats.Closed++
	e.Ended = now
	e.Revision++
	return e
}

// Mixed returns, by job, how many of its lives that are held have ranks that disagree.
func (w *Watch) Mixed() map[string]int {
	jobs := map[string]int{}
	for k := range w.lives {
		jobs[k.Job] += 0 // one that agrees has a value, too
		if w.open[k] != nil {
			jobs[k.Job]++
		}
	}
	return jobs
}

// Standing returns the episodes that are open.
func (w *Watch) Standing() (out []Episode) {
	for _, k := range slices.SortedFunc(maps.Keys(w.open), compareKeys) {
		out = append(out, *w.open[k])
	}
	return out
}
