// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Key names one group of replicas of one life of one job.
type Key struct{ Job, Incarnation, Group string }

// Watch follows the groups of any number of jobs, and keeps a finding open while replicas of one
// differ. It is not safe for concurrent use. All times are of the clock of its user.
type Watch struct {
	cfg    Config
	groups map[Key]*group
	jobs   map[string]*holder
	room   bounded.Room[*holder]
	book   *finding.Book[struct{}]
	stats  Stats
}

// NewWatch returns a watch that has heard nothing.
func NewWatch(c Config) *Watch {
	c = c.or(NewDefaultConfig())
	return &Watch{
		cfg: c, groups: map[Key]*group{}, jobs: map[string]*holder{},
		book: finding.New[struct{}](finding.Config{MaxOpen: c.MaxEpisodes, Same: finding.Equal}),
	}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s, of := w.stats, w.book.Stats()
	s.Opened, s.Closed, s.Withheld = of.Opened, of.Closed, of.Withheld
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
		w.recall(g)
	}
	g.of.share.Hear()
	g.of.groups.Touch(k)
	defer w.keep(g)
	g.heard = now
	g.jobName, g.replicas = max(g.jobName, cut.Text(v.Rank.JobName, cut.MaxName)), max(g.replicas, v.Replicas)
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
	g.of.groups.Delete(k)
	g.of.share.Add(-g.bytes)
	if g.of.groups.Len() == 0 {
		g.of.share.Leave()
		delete(w.jobs, g.of.job)
	}
}

// Tick judges what has changed, and returns the findings that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) []model.Finding {
	for k, g := range w.groups {
		if now.Sub(g.heard) >= w.cfg.Silent {
			w.stats.Silent++
			w.forget(k)
		}
	}
	for _, e := range w.book.Episodes() {
		if k := keyOf(e.Place); w.groups[k] != nil && w.replaced(k) {
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
	w.book.End(now, func(e *finding.Episode[struct{}]) bool { return w.ended(e, now) })
	for _, k := range sortedKeys(w.groups) {
		g := w.groups[k]
		if j := g.verdict(); j != nil {
			w.book.Found(k.place(), g.since, g.finding(j, now), now)
		}
	}
	return w.book.Take()
}

// ended reports whether the replicas of a finding differ no longer. What was open before a restart waits
// for its replicas to report again.
func (w *Watch) ended(e *finding.Episode[struct{}], now time.Time) bool {
	if g := w.groups[keyOf(e.Place)]; g != nil {
		return len(g.doubt) == 0
	}
	return !e.Restored || now.Sub(e.Confirmed) >= w.cfg.Silent
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

// Mixed returns, by job, how many of its groups that are held have replicas that differ.
func (w *Watch) Mixed() map[string]int {
	jobs := map[string]int{}
	for k := range w.groups {
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

func sortedKeys[V any](m map[Key]V) []Key {
	return slices.SortedFunc(maps.Keys(m), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Group, b.Group))
	})
}
