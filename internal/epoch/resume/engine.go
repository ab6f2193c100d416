// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Key names one life of one job.
type Key struct{ Job, Incarnation string }

// Engine keeps what the ranks of any number of jobs say that they have loaded. What it holds is the
// join of all of it: duplicates, and their order, are nothing to it. It is not safe for concurrent
// use.
type Engine struct {
	cfg   Config
	held  map[Key]*incarnation
	ranks int
	stats Stats
}

type incarnation struct {
	name  string // of the job
	ranks map[int64]*rank
	of    int64 // how many there are; 0: nobody said
	heard int64 // as many resumes had been taken when it was last heard of
	// tainted: something was left out for want of room, so that nothing can be confirmed.
	tainted bool
}

// New returns an engine that holds nothing.
func New(c Config) *Engine {
	def := NewDefaultConfig()
	if c.Incarnations <= 0 {
		c.Incarnations = def.Incarnations
	}
	if c.Ranks <= 0 {
		c.Ranks = def.Ranks
	}
	return &Engine{cfg: c, held: map[Key]*incarnation{}}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Ranks = e.ranks
	return s
}

// Observe joins what a rank has told, and reports whether that changed anything.
func (e *Engine) Observe(v *model.Resume) (changed bool) {
	e.stats.Resumes++
	k := Key{v.Rank.JobID, v.Rank.Incarnation}
	in := e.held[k]
	if in == nil {
		if len(e.held) >= e.cfg.Incarnations {
			e.evict(k)
		}
		in = &incarnation{ranks: map[int64]*rank{}}
		e.held[k] = in
	}
	in.heard = e.stats.Resumes
	name, of := max(in.name, v.Rank.JobName), max(in.of, v.Rank.WorldSize.V)
	changed = name != in.name || of != in.of
	in.name, in.of = name, of
	r := in.ranks[v.Rank.Rank]
	if r == nil {
		for room := true; room && e.ranks >= e.cfg.Ranks; {
			room = e.evict(k)
		}
		if e.ranks >= e.cfg.Ranks {
			return e.overflow(in)
		}
		r = &rank{}
		in.ranks[v.Rank.Rank] = r
		e.ranks++
	}
	l := life{name: v.Life, first: v.Time, host: v.Rank.HostName, hwid: v.Rank.HWID, loaded: loadedOf(v)}
	more, ok := r.observe(&l)
	if !ok {
		return e.overflow(in)
	}
	return changed || more
}

func (e *Engine) overflow(in *incarnation) (changed bool) {
	e.stats.Overflowed++
	changed = !in.tainted
	in.tainted = true
	return changed
}

// evict has the incarnation leave that was not heard of for longest, but for one; false where there
// is no other.
func (e *Engine) evict(but Key) bool {
	var oldest Key
	found := false
	for k, in := range e.held {
		if k != but && (!found || in.heard < e.held[oldest].heard) {
			oldest, found = k, true
		}
	}
	if found {
		e.stats.Left++
		e.Forget(oldest)
	}
	return found
}

// Forget drops an incarnation.
func (e *Engine) Forget(k Key) {
	if in := e.held[k]; in != nil {
		e.ranks -= len(in.ranks)
		delete(e.held, k)
	}
}

// Has reports whether an incarnation is held.
func (e *Engine) Has(k Key) bool { return e.held[k] != nil }

// Name is what the job of an incarnation is called.
func (e *Engine) Name(k Key) string {
	if in := e.held[k]; in != nil {
		return in.name
	}
	return ""
}

// Keys returns what is held, in order.
func (e *Engine) Keys() []Key { return slices.SortedFunc(maps.Keys(e.held), compareKeys) }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Incarnation, b.Incarnation))
}
