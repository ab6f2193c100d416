// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Key names one group of replicas of one life of one job.
type Key struct{ Job, Incarnation, Group string }

// Watch follows the groups of any number of jobs, and holds an episode open while replicas of one
// differ. It is not safe for concurrent use. Times that it is given are of one clock, that of who
// uses it: they decide who is silent.
type Watch struct {
	cfg    Config
	groups map[Key]*group
	jobs   map[string]*holder
	room   bounded.Room[*holder]
	open   map[Key]*Episode
	stats  Stats
}

// Episode is one group whose replicas differ, from when that was seen to its end.
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
	return &Watch{cfg: c.or(NewDefaultConfig()), groups: map[Key]*group{}, jobs: map[string]*holder{}, open: map[Key]*Episode{}}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s := w.stats
	s.Bytes = w.room.Bytes()
	return s
}

// Observe takes a fingerprint.
func (w *Watch) Observe(v *model.Fingerprint, now time.Time) {
	w.stats.Fingerprints++
	k := Key{v.Rank.JobID, v.Rank.Incarnation, v.Group}
	g := w.groups[k]
	if g == nil {
		w.groupFits()
		g = &group{key: k, began: now, ranks: map[int64]*rank{}, steps: map[int64]*step{}, doubt: map[int64]*Judgement{}}
		w.enter(g)
	}
	g.of.share.Hear()
	g.of.groups.MoveToBack(g.at)
	defer w.keep(g)
	g.heard = now
	g.jobName, g.replicas = max(g.jobName, bounded.Text(v.Rank.JobName, bounded.MaxName)), max(g.replicas, v.Replicas)
	r := g.ranks[v.Rank.Rank]
	if r == nil {
		if !w.rankFits(g) {
			w.stats.Overflowed++
			return
		}
		r = &rank{}
		g.ranks[v.Rank.Rank] = r
		w.stats.Ranks++
		g.of.ranks++
	}
	if g.observe(r, v) {
		w.stats.Late++
	}
}

func (w *Watch) forget(k Key) {
	g := w.groups[k]
	w.stats.Ranks -= len(g.ranks)
	g.of.ranks -= len(g.ranks)
	delete(w.groups, k)
	g.of.groups.Remove(g.at)
	g.of.share.Add(-g.bytes)
	if g.of.groups.Len() == 0 {
		g.of.share.Leave()
		delete(w.jobs, g.of.job)
	}
}

// Tick judges what has changed, and returns the episodes that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) (out []Episode) {
	for k, g := range w.groups {
		if now.Sub(g.heard) >= w.cfg.Silent {
			w.stats.Silent++
			w.forget(k)
		}
	}
	for k := range w.open {
		if w.groups[k] != nil && w.replaced(k) {
			w.forget(k)
		}
	}
	for _, g := range w.groups {
		if g.dirty {
			g.judge()
			g.measure()
		}
	}
	for w.room.Bytes() > w.cfg.Bytes {
		if !w.leave(w.room.Largest(), nil) {
			break
		}
	}
	for _, k := range sortedKeys(w.open) {
		if g := w.groups[k]; g == nil || len(g.doubt) == 0 {
			e := *w.open[k]
			delete(w.open, k)
			w.stats.Closed++
			e.Ended = now
			e.Revision++
			out = append(out, e)
		}
	}
	for _, k := range sortedKeys(w.groups) {
		if j := w.groups[k].verdict(); j != nil {
			out = w.tell(out, k, j, now)
		}
	}
	return out
}

// replaced reports whether another life of the job has begun after this one was last heard of: its
// replicas are loaded anew.
func (w *Watch) replaced(k Key) bool {
	for other, o := range w.groups {
		if other.Job == k.Job && other.Incarnation != k.Incarnation && o.began.After(w.groups[k].heard) {
			return true
		}
	}
	return false
}

func (w *Watch) tell(out []Episode, k Key, j *Judgement, now time.Time) []Episode {
	e := w.open[k]
	switch {
	case e == nil && len(w.open) >= w.cfg.MaxEpisodes:
		w.stats.Withheld++
		return out
	case e == nil:
		e = &Episode{Key: k, Began: now}
		w.open[k] = e
		w.stats.Opened++
	case reflect.DeepEqual(e.Judgement, *j):
		return out
	}
	e.JobName, e.Judgement = w.groups[k].jobName, *j
	e.Revision++
	return append(out, *e)
}

// Mixed returns, by job, how many of its groups that are held have replicas that differ.
func (w *Watch) Mixed() map[string]int {
	jobs := map[string]int{}
	for k := range w.groups {
		jobs[k.Job] += 0 // one that agrees has a value, too
		if w.open[k] != nil {
			jobs[k.Job]++
		}
	}
	return jobs
}

// Standing returns the episodes that are open.
func (w *Watch) Standing() (out []Episode) {
	for _, k := range sortedKeys(w.open) {
		out = append(out, *w.open[k])
	}
	return out
}

func sortedKeys[V any](m map[Key]V) []Key {
	return slices.SortedFunc(maps.Keys(m), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Group, b.Group))
	})
}
