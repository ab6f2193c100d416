// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Config bounds what an engine keeps. Zero limits mean the defaults.
type Config struct {
	Jobs        int // those that were not heard of for longest leave, new ones first
	Generations int // of one job; those whose newest save is the oldest leave
	Saves       int // of one generation; those of the lowest epochs leave
	Domains     int // of one generation
	// Observers bounds those of all jobs: observers without registers leave, then forgotten ones, then those of
	// the first job that has more of them than all that began after it. A job stays where all of its
	// observers are of other jobs too.
	Observers int
	// Registers bounds those of all jobs: of the first job that holds more of them than all that began after
	// it, and of its generation that has most, the saves of the lowest epochs leave.
	Registers int
	// Bytes bounds all that is held, by estimate, but for the names of observers: the first
	// job that holds more than all that began after it gives up generations, then saves, then all.
	Bytes int
}

// DefaultConfig has room for 16,384 ranks with 8 domains each, and their last 30 saves.
func DefaultConfig() Config {
	return Config{
		Jobs: 256, Generations: 8, Saves: 256, Observers: 32_768,
		Domains:   1 << 18,
		Registers: 4 << 20, // 32 bytes each
		Bytes:     256 << 20,
	}
}

func (c Config) or(def Config) Config {
	for _, p := range []struct {
		to  *int
		def int
	}{
		{&c.Jobs, def.Jobs},
		{&c.Generations, def.Generations},
		{&c.Saves, def.Saves},
		{&c.Domains, def.Domains},
		{&c.Observers, def.Observers},
		{&c.Registers, def.Registers},
		{&c.Bytes, def.Bytes},
	} {
		if *p.to <= 0 {
			*p.to = p.def
		}
	}
	return c
}

// Stats count what an engine has taken and left out.
type Stats struct {
	Observations int64
	Refused      int64 // of unknown states, or with names that can not be
	JobsLost     int64 // jobs and generations that left
	SavesLost    int64 // saves that left, or came too late
	Overflowed   int64 // observations beyond domains or observers: they taint
	Registers    int   // held now
	Bytes        int   // held now, by estimate
}

// Engine keeps what observers say of the saves of jobs. What it holds is the join of all
// observations: duplicates, and their order, are nothing to it. It is not safe for concurrent
// use.
type Engine struct {
	cfg       Config
	jobs      map[string]*job
	shares    bounded.Room[*job]
	observers map[string]int32
	names     []string // of observers
	gone      []bool   // observers that are not heard from any more
	held      []int32  // of observers, their registers
	moves     int      // how often an observer began or ended to hold registers of a job
	stats     Stats
}

type job struct {
	id          string
	generations map[string]*generation
	share       *bounded.Share[*job]
	observers   map[int32]int32 // those that hold registers of it, and how many
	refused     int             // 1 + Engine.moves when it last found no room for an observer; 0: it did
}

// generation is the life of one set of domains of a job.
type generation struct {
	of        *job
	name      string
	bytes     int // of its domains
	index     map[model.Domain]int32
	domains   []model.Domain
	order     []int32 // of domains, sorted; stale while it is shorter than they are
	saves     map[int64]*save
	registers int
	// tainted: something was left out for want of room, so that nothing can be confirmed.
	tainted bool
}

// save holds registers by domain: the first observer's in cells, those of others in more.
type save struct {
	cells []cell
	more  map[int32][]cell
	of    map[model.DomainKind]int64 // how many domains of a kind there are, where somebody says
	spoke int                        // registers that were not withdrawn
	told  set                        // domains that observers told of of which nothing is held any more
	// others counts the registers in more, beside is what the engine's user keeps of the save, and bytes
	// is what the job's share counts for it.
	others, beside, bytes int
}

type cell struct {
	register
	observer int32
}

// New returns an engine that holds nothing.
func New(c Config) *Engine {
	return &Engine{cfg: c.or(DefaultConfig()), jobs: map[string]*job{}, observers: map[string]int32{}}
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Bytes = e.shares.Bytes()
	return s
}

// Change is what an observation changed.
type Change uint8

// Changes.
const (
	Nothing Change = iota // it was heard before, or is older than what was
	OfSave                // what its save holds
	OfAll                 // what is expected of all saves of its generation, too
	Refused               // nothing: it is none
)

// Observe joins one observation.
func (e *Engine) Observe(o *model.EpochObservation) Change {
	defer e.shrink()
	return e.observe(o)
}

func (e *Engine) observe(o *model.EpochObservation) Change {
	st, ok := stateOf[o.State]
	if !ok || o.Domain.Kind == "" || !named(o) {
		e.stats.Refused++
		return Refused
	}
	e.stats.Observations++
	g := e.generation(o.JobID, o.Generation)
	// The domain is expected from now on, whatever becomes of what is said of it.
	domains := len(g.domains)
	at, ok := g.domain(o.Domain, e.cfg.Domains)
	defer g.measure(o.Save)
	change := Nothing
	if len(g.domains) > domains {
		change = OfAll
	}
	s := e.save(g, o.Save)
	if s == nil {
		return change
	}
	by, ok2 := e.observer(o.Observer, g.of)
	if !ok || !ok2 {
		e.overflow(g)
		return OfAll
	}
	if o.Of > int64(e.cfg.Domains) { // more than can ever be heard of
		e.overflow(g)
		change = OfAll
	} else if kind := g.domains[at].Kind; o.Of > s.of[kind] { // the text is the generation's, which counts it
		s.of[kind] = o.Of
		change = max(change, OfSave)
	}
	v := value{state: st}
	if o.Epoch.OK && (st == committed || st == absent) {
		v.epoch, v.known = o.Epoch.V, true
	}
	if o.Domain.Kind == model.DomainPlace && v.speaks() {
		v.parts = int32(min(max(o.Parts, 0), math.MaxInt32))
	}
	if e.join(g, o.Save, at, cell{register{o.Revision, v}, by}) {
		change = max(change, OfSave)
	}
	return change
}

// named reports whether the names can be kept, and written down.
func named(o *model.EpochObservation) bool {
	for _, s := range []string{o.JobID, o.Generation, string(o.Domain.Kind), o.Domain.ID, o.Observer} {
		if !cut.Fits(s, cut.MaxName) {
			return false
		}
	}
	return true
}

func (e *Engine) overflow(g *generation) {
	e.stats.Overflowed++
	g.tainted = true
}

// join reports whether the register has changed.
func (e *Engine) join(g *generation, n int64, at int32, c cell) bool {
	s := g.saves[n]
	for int(at) >= len(s.cells) {
		s.cells = append(s.cells, cell{})
	}
	first := &s.cells[at]
	if first.value.state == silent || first.observer == c.observer {
		if first.value.state == silent && !e.room(g, n, c.observer) {
			return true
		}
		joined := first.register.join(c.register)
		first.observer = c.observer
		return s.put(&first.register, joined)
	}
	others := s.more[at]
	for i := range others {
		if others[i].observer == c.observer {
			return s.put(&others[i].register, others[i].register.join(c.register))
		}
	}
	if !e.room(g, n, c.observer) {
		return true
	}
	if s.more == nil {
		s.more = map[int32][]cell{}
	}
	s.others++
	s.more[at] = append(others, cell{observer: c.observer})
	return s.put(&s.more[at][len(others)].register, c.register)
}

// put sets a register, and reports whether its value has changed.
func (s *save) put(r *register, to register) bool {
	before := r.value
	if *r = to; before == to.value {
		return false
	}
	if before.speaks() {
		s.spoke--
	}
	if to.value.speaks() {
		s.spoke++
	}
	return true
}

func (e *Engine) generation(id, name string) *generation {
	j := e.jobs[id]
	if j == nil {
		if len(e.jobs) >= e.cfg.Jobs {
			e.dropJob(e.shares.Oldest())
		}
		j = &job{id: id, generations: map[string]*generation{}, observers: map[int32]int32{}}
		j.share = e.shares.Enter(j)
		j.share.Add(jobBytes + len(id))
		e.jobs[id] = j
	}
	j.share.Hear()
	g := j.generations[name]
	if g == nil {
		if len(j.generations) >= e.cfg.Generations {
			e.evictGeneration(j)
		}
		g = &generation{of: j, name: name, bytes: generationBytes + len(name), index: map[model.Domain]int32{}, saves: map[int64]*save{}}
		j.share.Add(g.bytes)
		j.generations[name] = g
	}
	return g
}

func (g *generation) newest() int64 {
	newest := int64(-1)
	for n, s := range g.saves {
		if s.spoke > 0 {
			newest = max(newest, n)
		}
	}
	return newest
}

// save returns a save; of too many, those of the lowest epochs leave.
func (e *Engine) save(g *generation, n int64) *save {
	if s := g.saves[n]; s != nil {
		return s
	}
	if len(g.saves) >= e.cfg.Saves {
		lowest := n
		for other := range g.saves {
			lowest = min(lowest, other)
		}
		e.stats.SavesLost++
		if lowest == n {
			return nil
		}
		e.drop(g, lowest)
	}
	s := &save{of: map[model.DomainKind]int64{}}
	g.saves[n] = s
	return s
}

// observer returns the number of an observer that speaks of a job, and false where there is no room.
func (e *Engine) observer(name string, of *job) (int32, bool) {
	i, ok := e.observers[name]
	if !ok {
		if i, ok = e.place(of); !ok {
			return 0, false
		}
		e.observers[name], e.names[i] = i, name
	}
	e.gone[i] = false
	return i, true
}

// place returns the number of a new observer that reports on a job. If there is no room, an observer without
// registers leaves. If there is none, forgotten observers give up their registers. If there is still none, jobs
// leave.
func (e *Engine) place(of *job) (int32, bool) {
	if len(e.names) < e.cfg.Observers {
		e.names, e.gone, e.held = append(e.names, ""), append(e.gone, false), append(e.held, 0)
		return int32(len(e.names) - 1), true
	}
	i := slices.Index(e.held, 0)
	if i < 0 {
		e.sweep()
		i = slices.Index(e.held, 0)
	}
	if i < 0 {
		if i = e.freeObserver(of); i < 0 {
			return 0, false
		}
	}
	delete(e.observers, e.names[i])
	return int32(i), true
}

// Forget takes back what an observer said: it is not heard from any more, and what it saw may
// have changed since. When that is so, is the caller's to say, by a clock of its own. An
// observer that is heard from again is believed again.
func (e *Engine) Forget(observer string) {
	if i, ok := e.observers[observer]; ok {
		e.gone[i] = true
	}
}

func (g *generation) domain(d model.Domain, limit int) (int32, bool) {
	if i, ok := g.index[d]; ok {
		return i, true
	}
	if len(g.domains) >= limit {
		return 0, false
	}
	i := int32(len(g.domains))
	g.index[d] = i
	g.domains = append(g.domains, d)
	g.grow(domainBytes + len(d.Kind) + len(d.ID))
	return i, true
}

// sorted returns the domains in a fixed order, whichever came first.
func (g *generation) sorted() []int32 {
	if len(g.order) < len(g.domains) {
		g.order = g.order[:0]
		for i := range g.domains {
			g.order = append(g.order, int32(i))
		}
		slices.SortFunc(g.order, func(a, b int32) int { return compareDomains(g.domains[a], g.domains[b]) })
	}
	return g.order
}

// Jobs returns the jobs that are known, in order.
func (e *Engine) Jobs() []string { return sortedKeys(e.jobs) }

// Generations returns the generations of a job, the one with the newest save last.
func (e *Engine) Generations(id string) []string {
	j := e.jobs[id]
	if j == nil {
		return nil
	}
	names := sortedKeys(j.generations)
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(j.generations[a].newest(), j.generations[b].newest())
	})
	return names
}

// Saves returns the epochs of the saves of a generation, ascending.
func (e *Engine) Saves(id, name string) []int64 {
	g := e.find(id, name)
	if g == nil {
		return nil
	}
	return sortedKeys(g.saves)
}

// Has reports whether a save is held.
func (e *Engine) Has(id, name string, save int64) bool {
	g := e.find(id, name)
	return g != nil && g.saves[save] != nil
}

func (e *Engine) find(id, name string) *generation {
	if j := e.jobs[id]; j != nil {
		return j.generations[name]
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
