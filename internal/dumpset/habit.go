// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

const (
	// maxObserved bounds the dumps that are read again for one rank: its own, at most maxWaiting
	// of ranks that wait for it, and others.
	maxObserved = 32
	maxWaiting  = 20
	maxNearest  = 12 // of those, that wait for it directly
	// maxHabits bounds the ranks that are looked at in one set.
	maxHabits = 8
	// leastRepeats is how often a place of a program must be recorded before how long others
	// waited there is a habit: the first steps of a job are slow for reasons of their own.
	leastRepeats = 3
	// usualHeld is the share of its time above which a job that runs is often in a state: as many
	// wait as now, while one rank is in the place of its program in which it is now.
	usualHeld = 0.05
	// seldomHeld is below which a snapshot of a running job shows a state only by chance.
	seldomHeld = 0.01
	// usualChance and hungChance are how much likelier than a hang a state of a job that runs may
	// be at most, where nobody says that it hung, and where somebody does.
	usualChance = 0.1
	hungChance  = 0.25
	// chanceRepeats is how many repetitions weigh as much as that any rank is as often late as the
	// others: of few that are recorded it is chance which was.
	chanceRepeats = 2
)

// habits looks up how much of its recorded time a job looked as its dumps do.
type habits struct {
	byRank map[int64]*item
	hung   bool
	limits flightrecorder.Limits
	cache  *flightrecorder.Cache
	known  map[int64]desync.Habit
	names  names
	// pasts are those of the dumps of files that hold several: such a file is read once.
	pasts map[string]*past
}

func (r *run) habits(taken []*item) *habits {
	h := &habits{hung: r.o.Hung, limits: r.o.Limits, cache: r.cache, byRank: map[int64]*item{}, known: map[int64]desync.Habit{}, names: names{}, pasts: map[string]*past{}}
	for _, it := range taken {
		h.byRank[it.rank] = it
	}
	return h
}

// of is the habit of a rank for which others wait. Each is looked up once.
func (h *habits) of(rank int64, waiting []int64) desync.Habit {
	if known, ok := h.known[rank]; ok {
		return known
	}
	if len(h.known) >= maxHabits {
		return desync.Habit{}
	}
	found := h.look(rank, waiting)
	h.known[rank] = found
	return found
}

func (h *habits) look(rank int64, waiting []int64) desync.Habit {
	var all []*past
	observed := h.observed(rank, waiting)
	h.readGathered(observed)
	for _, id := range observed {
		it := h.byRank[id]
		if it == nil {
			continue
		}
		p := h.past(it)
		if p == nil {
			continue // it was there before: what is known without it has to do
		}
		if len(p.calls) > 0 {
			p.waits = slices.Contains(waiting, id)
			all = append(all, p)
		} else if id == rank {
			return desync.Habit{}
		}
	}
	if h.byRank[rank] == nil {
		return desync.Habit{}
	}
	if all = visible(all); len(all) < 2 {
		return desync.Habit{}
	}
	return h.judge(rank, all)
}

// past reads what a rank did before; nil where its dump cannot be read any more. It is the caller's
// to change.
func (h *habits) past(it *item) *past {
	if it.fileLen > 0 {
		kept := h.pasts[it.path]
		if kept == nil {
			return nil
		}
		own := *kept
		own.calls = slices.Clone(kept.calls)
		return &own
	}
	all, err := flightrecorder.ReadAll(it.from(), flightrecorder.Options{Limits: h.limits, Cache: h.cache})
	defer flightrecorder.Release(all)
	if err != nil || len(all) != 1 || all[0].Dump == nil {
		return nil
	}
	return pastOf(all[0].Dump, h.names)
}

// maxKept bounds the pasts that are kept of ranks that nobody asked for yet.
const maxKept = maxHabits * maxObserved

// readGathered keeps the pasts of these ranks that stand in files of several dumps, and those of the
// other ranks in them as long as there is room, so that each file is read once.
func (h *habits) readGathered(ranks []int64) {
	files := map[string][]*item{}
	for _, id := range ranks {
		if it := h.byRank[id]; it != nil && it.fileLen > 0 {
			if _, known := h.pasts[it.path]; !known {
				files[it.from()] = append(files[it.from()], it)
			}
		}
	}
	for id, it := range h.byRank {
		if asked := files[it.from()]; it.fileLen > 0 && asked != nil && len(h.pasts)+len(asked) < maxKept && !slices.Contains(ranks, id) {
			files[it.from()] = append(asked, it)
		}
	}
	for file, items := range files {
		all, err := flightrecorder.ReadAll(file, flightrecorder.Options{Limits: h.limits, Cache: h.cache})
		for _, it := range items {
			h.pasts[it.path] = nil
			if err == nil && it.part < len(all) && all[it.part].Dump != nil {
				h.pasts[it.path] = pastOf(all[it.part].Dump, h.names)
			}
		}
		flightrecorder.Release(all)
	}
}

// observed are the ranks whose history is looked at: one that others wait for, first, some of
// those, and some of the others, which have to wait as well where the job hangs.
func (h *habits) observed(rank int64, waiting []int64) []int64 {
	near := waiting[:min(len(waiting), maxNearest)]
	out := append([]int64{rank}, near...)
	out = append(out, spread(waiting[len(near):], maxWaiting-len(near))...)
	var others []int64
	for id := range h.byRank {
		if id != rank && !slices.Contains(waiting, id) {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	return append(out, spread(others, maxObserved-len(out))...)
}

// visible leaves out ranks that wait for none of the others, but for one that is not among them: what
// they wait for is not seen. Where none is left that waits, nothing can be compared.
func visible(all []*past) []*past {
	j, waits := join(all), false
	out := all[:0:0]
	for i, p := range all {
		sees := p.depth(&j) > 0
		if i == 0 || sees || !p.waits {
			out, waits = append(out, p), waits || i > 0 && sees
		}
	}
	if !waits {
		return nil
	}
	return out
}

// spread picks some of many, from the first on.
func spread(ranks []int64, most int) []int64 {
	if len(ranks) <= most {
		return ranks
	}
	out := make([]int64, most)
	for i := range out {
		out[i] = ranks[i*len(ranks)/most]
	}
	return out
}

// judge compares what the first of all, and the others, do now with what they did before. Where its
// clock may be off by what would change the answer, it says so.
func (h *habits) judge(rank int64, all []*past) desync.Habit {
	c := compareClocks(all)
	for i, p := range all[1:] {
		p.shift(-c.offsets[i])
	}
	now := observe(all)
	if now.span <= 0 || now.repeats < leastRepeats && !now.always() {
		return desync.Habit{Text: fmt.Sprintf("the dumps record %s of this place of the program: too little to tell how the job looks there while it runs",
			times(now.repeats))}
	}
	out := desync.Habit{State: h.state(&now), Text: now.text(rank), Longest: now.longest}
	if out.State == desync.HabitUsual {
		out.Text += ": a job that runs looks like this"
	}
	if c.proven > 0 {
		out.Text += fmt.Sprintf("; clocks are off by up to %v, which is taken into account", round(c.proven))
	}
	if !c.known {
		out.Text += "; nothing recorded compares the clocks of the ranks"
		return out
	}
	for _, by := range []int64{c.later, -c.earlier} {
		all[0].shift(by)
		other := observe(all)
		all[0].shift(-by)
		if usual := h.state(&other) == desync.HabitUsual; usual != (out.State == desync.HabitUsual) {
			out.Text += fmt.Sprintf("; were the clock of rank %d off by %v, which the dumps do not exclude, it would be otherwise", rank, round(time.Duration(max(by, -by))))
			break
		}
	}
	return out
}

func (h *habits) state(o *observation) desync.HabitState {
	most := usualChance
	if h.hung {
		most = hungChance
	}
	switch chance := o.chance(); {
	case o.held > usualHeld, chance > most, o.repeats < leastRepeats:
		return desync.HabitUsual
	case o.held > seldomHeld, chance > usualChance:
		return desync.HabitSome
	}
	return desync.HabitRare
}

// observation is what a job did in the time of which all of its dumps tell.
type observation struct {
	ranks, waiting int
	span           time.Duration
	any            float64       // share of span in which as many waited as now
	free           float64       // and in which the rank in question did not
	held           float64       // and was where it is now
	repeats        int           // of the place where it is now
	heldIn         int           // in how many of those as many waited
	longest        time.Duration // that it was held at a time
}

// always reports whether as many waited for the rank in each repetition of this place that is recorded,
// few as they are.
func (o *observation) always() bool {
	return o.repeats > 0 && o.heldIn >= o.repeats && o.held > usualHeld
}

// chance is how likely the state is in a job that runs, against one that hangs, in which any rank
// may be the one that does not come.
func (o *observation) chance() float64 {
	n := float64(o.repeats)
	return (n*float64(o.ranks)*o.free + chanceRepeats*o.any) / (n + chanceRepeats)
}

func (o *observation) text(rank int64) string {
	return fmt.Sprintf("in the %v that are recorded before, as many waited as now, %d of %d, for %s of the time, and for %s with rank %d where it is now (in %d of %d repetitions)",
		round(o.span), o.waiting, o.ranks, percent(o.any), percent(o.held), rank, o.heldIn, o.repeats)
}

func percent(share float64) string {
	if share > 0 && share < 0.001 {
		return "less than 0.1 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

func times(n int) string {
	switch n {
	case 0:
		return "no repetition"
	case 1:
		return "1 repetition"
	}
	return fmt.Sprintf("%d repetitions", n)
}

// round drops digits that nobody reads.
func round(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d
}

// observe finds how long as many of these ranks as now had come to operations that others had not
// come to, by as many calls as they have now. It looks at the time from when all dumps tell until
// the newest call of the first, which is what it may be stuck behind.
func observe(all []*past) (o observation) {
	rank := all[0]
	newest := &rank.calls[len(rank.calls)-1]
	until, from := newest.at, int64(0)
	for _, p := range all {
		from = max(from, p.calls[0].at)
	}
	if until <= from {
		return o
	}
	o.ranks, o.span = len(all), time.Duration(until-from)
	var edges []edge
	j := join(all)
	for i, p := range all {
		depth := p.depth(&j)
		if depth > 0 {
			o.waiting++
		}
		edges = p.blocked(edges, &j, i == 0, max(1, depth), from, until)
	}
	slices.SortFunc(edges, edge.compare)
	s := sweep{rank: rank, place: newest.what, most: o.waiting, at: from, in: map[int]bool{}}
	for i := range edges {
		s.step(edges[i])
	}
	s.step(edge{at: until})
	for i := range rank.calls[:len(rank.calls)-1] {
		if rank.calls[i].what == newest.what && rank.calls[i+1].at > from {
			o.repeats++
		}
	}
	share := func(ns int64) float64 { return float64(ns) / float64(o.span) }
	o.longest = time.Duration(s.longest)
	o.any, o.free, o.held, o.heldIn = share(s.any), share(s.free), share(s.held), len(s.in)
	return o
}

// sweep goes through time and counts who is blocked.
type sweep struct {
	rank            *past
	place           int32
	most            int // how many are blocked now
	at              int64
	count           int
	blocked         bool // rank is among them
	any, free, held int64
	longest, last   int64        // of held, at a time
	in              map[int]bool // calls of rank behind which it held up as many
}

func (s *sweep) step(e edge) {
	if d := e.at - s.at; d > 0 {
		s.pass(d)
	}
	s.at = e.at
	s.count += e.by
	if e.own {
		s.blocked = e.by > 0
	}
}

// pass counts time in which no rank begins or ends to be blocked.
func (s *sweep) pass(d int64) {
	i := -1
	if s.count >= s.most {
		s.any += d
		if !s.blocked {
			s.free += d
			i = s.rank.newestAt(s.at)
		}
	}
	if i < 0 || s.rank.calls[i].what != s.place {
		s.last = 0
		return
	}
	s.held += d
	s.last += d
	s.longest = max(s.longest, s.last)
	s.in[i] = true
}

// edge is where a rank begins (by 1) or ends (by -1) to be blocked.
type edge struct {
	at  int64
	by  int
	own bool // it is the rank in question
}

func (e edge) compare(o edge) int { return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(e.by, o.by)) }
