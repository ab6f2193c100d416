// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// group are replicas that must hold the same parameters.
type group struct {
	key      Key
	of       *holder
	bytes    int // that the job's share counts for it
	doubts   int // bytes of doubt
	texts    int // bytes of texts of ranks
	jobName  string
	replicas int64 // the most that anybody said; 0: nobody did
	ranks    map[int64]*rank
	steps    map[int64]*step
	doubt    map[int64]*Judgement // slices that differed when they were last compared, by their start
	since    int64                // the step at which the first of doubt was seen to differ
	began    time.Time            // when it was first heard of, and last
	heard    time.Time
	dirty    bool
}

// rank is one replica, and the process that is it now.
type rank struct {
	life       string
	last       int64 // when it told last, by its own clock
	lives      int
	host, hwid string
}

// step is what replicas told after one step.
type step struct {
	start, total int64
	told         map[int64]said
	// unlike: ranks have told of different slices, or of models of different sizes. They are no
	// replicas, and nothing is compared.
	unlike bool
}

// said is what one rank told of one step: a hash, or several, where it contradicts itself and
// confirms nothing; and in which of its lives.
type said struct {
	hash epoch.Flat[uint64]
	life int
}

// Judgement is what a group was seen to hold in one slice.
type Judgement struct {
	Step         int64
	Start, Total int64 // of the slice; elements of all slices
	// Held are the hashes, that of most replicas first, at most maxHeld of HeldCount.
	Held            []Held
	HeldCount, Told int
	Replicas        int // 0: nobody said
	// Decided: the first of Held is that of most replicas, whatever those hold that are silent.
	Decided bool
	// Minority are the replicas that hash otherwise, where it is decided; Hosts and HWIDs are theirs.
	Minority      []int64
	MinorityCount int
	Hosts, HWIDs  []string
	// Slices is how many slices of the group are in doubt.
	Slices int
}

// Held is one hash, and which replicas told it, ascending.
type Held struct {
	Hash  uint64
	Ranks []int64
	Count int
}

// observe takes a fingerprint of a rank that is known; late is true where it says nothing any more.
func (g *group) observe(r *rank, v *model.Fingerprint) (late bool) {
	switch {
	case r.life == v.Life:
	case v.Time <= r.last && r.life != "":
		return true
	default: // another process: what it tells is not compared with what is told of before
		g.texts += len(v.Life) - len(r.life)
		r.life = v.Life
		r.lives++
	}
	r.last = max(r.last, v.Time)
	g.texts -= r.texts()
	r.host, r.hwid = cut.Text(v.Rank.HostName, cut.MaxName), cut.Text(v.Rank.HWID, cut.MaxName)
	g.texts += r.texts()
	s := g.steps[v.Step]
	if s == nil {
		if s = g.room(v); s == nil {
			return true
		}
	}
	s.unlike = s.unlike || s.start != v.Start || s.total != v.Total
	p := s.told[v.Rank.Rank]
	if p.life != r.lives {
		p = said{life: r.lives}
	}
	p.hash = p.hash.Join(epoch.Of(v.Hash))
	s.told[v.Rank.Rank] = p
	g.dirty = true
	return false
}

// room makes room for a step; those that come after it push out the lowest, which is judged for the
// last time. Nil where this would be the one.
func (g *group) room(v *model.Fingerprint) *step {
	n := v.Step
	if len(g.steps) >= maxSteps {
		lowest := slices.Min(slices.Collect(maps.Keys(g.steps)))
		if n < lowest {
			return nil
		}
		g.settle(lowest)
		delete(g.steps, lowest)
	}
	s := &step{start: v.Start, total: v.Total, told: map[int64]said{}}
	g.steps[n] = s
	return s
}

// judge compares what was told, step by step.
func (g *group) judge() {
	for _, n := range slices.Sorted(maps.Keys(g.steps)) {
		g.settle(n)
	}
	g.dirty = false
}

// settle notes whether the slice of a step is in doubt. It is out of it when all replicas are seen to
// agree on it at a later step, or those of this step agree after all.
func (g *group) settle(n int64) {
	s := g.steps[n]
	j, mixed := g.compare(n, s)
	was := g.doubt[s.start]
	switch {
	case was != nil && was.Step > n:
	case mixed && (was != nil || len(g.doubt) < maxSlices):
		if len(g.doubt) == 0 {
			g.since = n
		}
		g.doubts += j.size() - was.size()
		g.doubt[s.start] = &j
	case mixed || was == nil:
	case was.Step == n, j.Told > 0 && j.Told >= max(j.Replicas, was.Told):
		g.doubts -= was.size()
		delete(g.doubt, s.start)
	}
}

// compare joins what was told after a step by ranks that were started equally often.
func (g *group) compare(n int64, s *step) (j Judgement, mixed bool) {
	j = Judgement{Step: n, Start: s.start, Total: s.total, Replicas: int(g.replicas)}
	if s.unlike {
		return j, false
	}
	life := 0
	for _, p := range s.told {
		life = max(life, p.life)
	}
	var joined epoch.Flat[uint64]
	at := map[uint64]int{}
	for _, r := range slices.Sorted(maps.Keys(s.told)) {
		p := s.told[r]
		hash, ok := p.hash.Value()
		if !ok || p.life != life {
			continue
		}
		joined = joined.Join(p.hash)
		j.Told++
		i, known := at[hash]
		if !known {
			i, at[hash] = len(j.Held), len(j.Held)
			j.Held = append(j.Held, Held{Hash: hash})
		}
		h := &j.Held[i]
		h.Count++
		h.Ranks = append(h.Ranks, r)
	}
	if !joined.Mixed() {
		return j, false
	}
	slices.SortStableFunc(j.Held, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Ranks[0], b.Ranks[0]))
	})
	j.HeldCount = len(j.Held)
	// Where nobody says how many replicas there are, more may tell.
	if j.Decided = g.replicas > 0 && 2*j.Held[0].Count > max(j.Told, j.Replicas); j.Decided {
		g.name(&j)
	}
	j.Held = j.Held[:min(len(j.Held), maxHeld)]
	for i := range j.Held {
		j.Held[i].Ranks = j.Held[i].Ranks[:min(len(j.Held[i].Ranks), maxRanks)]
	}
	return j, true
}

// name lists who does not hash as most do.
func (g *group) name(j *Judgement) {
	hosts, hwids := map[string]bool{}, map[string]bool{}
	for _, h := range j.Held[1:] {
		j.Minority = append(j.Minority, h.Ranks...)
	}
	slices.Sort(j.Minority)
	for _, r := range j.Minority {
		hosts[g.ranks[r].host], hwids[g.ranks[r].hwid] = true, true
	}
	j.MinorityCount = len(j.Minority)
	j.Minority = j.Minority[:min(len(j.Minority), maxRanks)]
	j.Hosts, j.HWIDs = sorted(hosts), sorted(hwids)
}

func sorted(set map[string]bool) []string {
	delete(set, "") // not known
	list := slices.Sorted(maps.Keys(set))
	return list[:min(len(list), maxRanks)]
}

// verdict is the first slice that is in doubt, of those that differed last; nil where none is.
func (g *group) verdict() (j *Judgement) {
	for _, start := range slices.Sorted(maps.Keys(g.doubt)) {
		if d := g.doubt[start]; j == nil || d.Step > j.Step {
			j = d
		}
	}
	if j != nil {
		j.Slices = len(g.doubt)
	}
	return j
}
