// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Key names one life of one job.
type Key struct{ Job, Incarnation string }

// Engine keeps what the ranks of any number of jobs say that they have loaded. What it holds is the
// join of all of it: duplicates, and their order, are nothing to it. It is not safe for concurrent
// use.
type Engine struct {
	cfg   Config
	held  map[Key]*incarnation
	room  bounded.Room[*incarnation]
	ranks int
	stats Stats
	// left, if any, is called with each incarnation that is held no more.
	left func(Key)
}

type incarnation struct {
	key   Key
	share *bounded.Share[*incarnation]
	name  string // of the job
	ranks map[int64]*rank
	of    int64 // how many there are; 0: nobody said
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
	if c.Bytes <= 0 {
		c.Bytes = def.Bytes
	}
	return &Engine{cfg: c, held: map[Key]*incarnation{}}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Ranks, s.Bytes = e.ranks, e.room.Bytes()
	return s
}

// Observe joins what a rank has told, and reports whether that changed anything.
func (e *Engine) Observe(v *model.Resume) (changed bool) {
	e.stats.Resumes++
	k := Key{v.Rank.JobID, v.Rank.Incarnation}
	in := e.held[k]
	if in == nil {
		if len(e.held) >= e.cfg.Incarnations {
			e.evict(e.room.Oldest())
		}
		in = &incarnation{key: k, ranks: map[int64]*rank{}}
		in.share = e.room.Enter(in)
		in.share.Add(incarnationBytes + len(k.Job) + len(k.Incarnation))
		e.held[k] = in
	}
	in.share.Hear()
	name, of := max(in.name, cut.Text(v.Rank.JobName, cut.MaxName)), max(in.of, v.Rank.WorldSize.V)
	changed = name != in.name || of != in.of
	in.share.Add(len(name) - len(in.name))
	in.name, in.of = name, of
	r := in.ranks[v.Rank.Rank]
	if r == nil {
		for e.ranks >= e.cfg.Ranks {
			if !e.makeRoom(in, e.mostRanks(in)) {
				return e.overflow(in)
			}
		}
		r = &rank{}
		in.ranks[v.Rank.Rank] = r
		e.ranks++
	}
	l := life{
		name: v.Life, first: v.Time, host: cut.Text(v.Rank.HostName, cut.MaxName), hwid: cut.Text(v.Rank.HWID, cut.MaxName),
		loaded: loadedOf(v),
	}
	more, ok := r.observe(&l)
	if !ok {
		return e.overflow(in)
	}
	if more {
		bytes := r.size()
		in.share.Add(bytes - r.bytes)
		r.bytes = bytes
	}
	for e.room.Bytes() > e.cfg.Bytes {
		if !e.makeRoom(in, e.room.Largest()) {
			in.drop(v.Rank.Rank)
			e.ranks--
			return e.overflow(in)
		}
	}
	return changed || more
}

// drop forgets a rank.
func (in *incarnation) drop(n int64) {
	in.share.Add(-in.ranks[n].bytes)
	delete(in.ranks, n)
}

// makeRoom has the life that holds most leave; false where that is the one that needs room.
func (e *Engine) makeRoom(beside, most *incarnation) bool {
	if most == beside {
		return false
	}
	e.evict(most)
	return true
}

// mostRanks returns the incarnation that leaves first where another one needs a rank.
func (e *Engine) mostRanks(beside *incarnation) *incarnation {
	return e.room.LargestBy(func(in *incarnation) int {
		if in == beside {
			return len(in.ranks) + 1
		}
		return len(in.ranks)
	})
}

func (e *Engine) overflow(in *incarnation) (changed bool) {
	e.stats.Overflowed++
	changed = !in.tainted
	in.tainted = true
	return changed
}

func (e *Engine) evict(in *incarnation) {
	e.stats.Left++
	e.Forget(in.key)
}

// Forget drops an incarnation.
func (e *Engine) Forget(k Key) {
	if in := e.held[k]; in != nil {
		e.ranks -= len(in.ranks)
		in.share.Leave()
		delete(e.held, k)
		if e.left != nil {
			e.left(k)
		}
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
