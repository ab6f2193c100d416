// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
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
	cfg   Config
	jobs  map[string]*holder // with their groups
	held  int                // groups of all jobs
	room  bounded.Room[*holder]
	book  *finding.Book[struct{}]
	stats Stats
}

// NewWatch returns a watch that has heard nothing.
func NewWatch(c Config) *Watch {
	c = c.or(NewDefaultConfig())
	return &Watch{
		cfg: c, jobs: map[string]*holder{},
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
	g := w.group(k)
	if g == nil {
		w.groupFits()
		g = &group{key: k, began: now, ranks: map[int64]*rank{}, steps: map[int64]*step{}, doubt: map[int64]*Judgement{}}
		w.enter(g)
		w.recall(g)
	}
	g.of.share.Hear()
	g.of.groups.Touch(k.inJob())
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

func (w *Watch) forget(g *group) {
	h := g.of
	w.stats.Ranks -= len(g.ranks)
	h.ranks -= len(g.ranks)
	w.held--
	h.groups.Delete(g.key.inJob())
	h.share.Add(-g.bytes)
	if h.groups.Len() == 0 {
		h.share.Leave()
		delete(w.jobs, h.job)
	}
}

// forgetSilent forgets the groups that were silent for Config.Silent.
func (w *Watch) forgetSilent(now time.Time) {
	for _, h := range w.jobs {
		for g := h.oldest(); g != nil && now.Sub(g.heard) >= w.cfg.Silent; g = h.oldest() {
			w.stats.Silent++
			w.forget(g)
		}
	}
}

// Tick judges what has changed, and returns the findings that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) []model.Finding {
	w.forgetSilent(now)
	for _, e := range w.book.Episodes() {
		if g := w.group(keyOf(e.Place)); g != nil && g.replaced() {
			w.forget(g)
		}
	}
	for g := range w.groups {
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
	for _, g := range slices.SortedFunc(w.groups, byKey) {
		if j := g.verdict(); j != nil {
			w.book.Found(g.key.place(), g.since, g.finding(j, now), now)
		}
	}
	return w.book.Take()
}

// ended reports whether the replicas of a finding differ no longer. What was open before a restart waits
// for its replicas to report again.
func (w *Watch) ended(e *finding.Episode[struct{}], now time.Time) bool {
	if g := w.group(keyOf(e.Place)); g != nil {
		return len(g.doubt) == 0
	}
	return !e.Restored || now.Sub(e.Confirmed) >= w.cfg.Silent
}

// replaced reports whether another life of the job has begun after this one was last heard of: its
// replicas are loaded anew.
func (g *group) replaced() bool {
	for _, o := range g.of.groups.All() {
		if o.key.Incarnation != g.key.Incarnation && o.began.After(g.heard) {
			return true
		}
	}
	return false
}

// Mixed returns, by job, how many of its groups that are held have replicas that differ.
func (w *Watch) Mixed() map[string]int {
	jobs := map[string]int{}
	for g := range w.groups {
		jobs[g.key.Job] += 0 // one that agrees has a value, too
		if w.book.At(g.key.place()) != nil {
			jobs[g.key.Job]++
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

func byKey(a, b *group) int {
	return cmp.Or(cmp.Compare(a.key.Job, b.key.Job), cmp.Compare(a.key.Incarnation, b.key.Incarnation), cmp.Compare(a.key.Group, b.key.Group))
}
