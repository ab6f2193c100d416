// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// Offsets are solved against a clock that can be set itself, and then all others seem
// to be set. A scale goes on as most of the clocks on it do: it rests on what the
// reference would read had it not been set, which is its reading and the offset that
// its own track has on the scale.

// leapt is from when on a clock that ran ahead of another is taken for the one that
// was set, where nobody else tells which of both it was.
const leapt = int64(10 * time.Second)

// gone is how a clock goes on in a solution.
type gone struct {
	jump, slack int64 // beyond what its last window foresaw, and what that can be wrong by
	on          int64 // how far the clock itself went on
	raw         bool
}

func (g gone) jumped() bool { return distance(g.jump, 0) > g.slack }

// onScales returns the models of a solution against what their references would read
// had they not been set, and by how much that differs for each. The caller holds solving.
func (t *Timeline) onScales(sol *graph.Solution, now time.Time) ([]graph.Solved, map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	solved := slices.Clone(sol.Models())
	leads := map[string]*lead{}
	for _, c := range sol.Components() {
		if tr := t.tracks[c.Reference]; tr != nil && !tr.foreign && len(tr.segments) > 0 {
			leads[c.Reference] = newLead(tr, t.scales[c.Reference], c.At)
		}
	}
	of, by := map[string][]gone{}, map[string][]*graph.Solved{}
	for i := range solved {
		s := &solved[i]
		if l := leads[s.Reference]; l != nil {
			if g, ok := l.goes(s, t.tracks[s.Clock]); ok {
				of[s.Reference], by[s.Reference] = append(of[s.Reference], g), append(by[s.Reference], s)
			}
		}
	}
	raws, waiting := countRaws(solved), map[string]bool{}
	shifts := map[string]int64{}
	for ref, l := range leads {
		votes := of[ref]
		if l.own != nil && raws[ref] == 0 {
			votes, waiting[ref] = t.hear(ref, l, by[ref], votes, now)
		}
		by := leap(votes)
		shifts[ref] = l.shift - by.jump
		t.blur(l.own, by.slack)
	}
	t.endWaits(sol, waiting, now)
	solved = slices.DeleteFunc(solved, func(s graph.Solved) bool { return waiting[s.Reference] })
	for i := range solved {
		solved[i].Offset += shifts[solved[i].Reference]
	}
	return solved, shifts
}

// blur widens what was known of the clocks of a scale by how well it is known what its
// reference was set by: what is known from then on is against where that stands now.
func (t *Timeline) blur(s *scale, by int64) {
	if s == nil || by == 0 {
		return
	}
	for _, tr := range t.tracks {
		if len(tr.segments) == 0 || tr.last().scale != s {
			continue
		}
		windows := tr.last().windows
		for i := max(0, len(windows)-windowsLooked); i < len(windows); i++ {
			windows[i].bound = grow(windows[i].bound, by)
		}
	}
}

// lead is a reference that was known before.
type lead struct {
	own   *scale // on which it stands as the reference; nil where it was not it before
	root  string
	shift int64 // what it would read had it never been set, less what it reads
	spot  spot  // where it stands at the instant, as if it were not set since
}

func newLead(tr *track, own *scale, at int64) *lead {
	l := &lead{root: tr.last().scale.root, spot: tr.last().place(at)}
	if own != nil && tr.last().scale == own {
		l.own, l.shift = own, tr.last().last().offset
	}
	return l
}

// goes tells how a clock goes on; false where that says nothing of the reference.
func (l *lead) goes(s *graph.Solved, tr *track) (gone, bool) {
	if s.Untrusted || !s.Bounded || tr == nil || tr.foreign || tr.untrusted || len(tr.segments) == 0 || tr.doubt != nil && !tr.doubt.waits && tr.name.realtime {
		return gone{}, false
	}
	seg := tr.last()
	if seg.last().bound == model.NoBound || seg.scale != l.own && (l.own != nil || seg.scale.root != l.root) {
		return gone{}, false
	}
	w := windowOf(s)
	by, slack := int64(0), 0.0
	switch {
	case l.own != nil:
		w.offset += l.shift
		by, slack = jump(seg.last(), &w)
	case s.Clock != s.Reference:
		there := seg.place(s.At)
		if there.bound == model.NoBound || l.spot.bound == model.NoBound {
			return gone{}, false
		}
		_, slack = jump(seg.last(), &w)
		by, slack = l.spot.time-there.time, slack+float64(l.spot.bound)+float64(there.bound)
	}
	return gone{jump: by, slack: int64(min(slack, float64(farthest))), on: w.until - seg.last().until, raw: tr.name.raw}, true
}

// leap is by how much the others of a scale jumped together, which is what its
// reference was set by. A time service can set all real-time clocks of a site, and what
// traces tell of with them, so raw clocks decide, where there are some. Of two halves of
// them the one is right that most of all clocks are with.
func leap(all []gone) gone {
	voters := slices.DeleteFunc(slices.Clone(all), func(g gone) bool { return !g.raw })
	if len(voters) == 0 {
		voters = all
	}
	by, agree := mostJumped(voters)
	switch {
	case 2*agree > len(voters):
		return by
	case agree == 0 || 2*agree < len(voters):
		return gone{}
	}
	if most, agree := mostJumped(all); 2*agree > len(all) {
		return most
	} else if len(voters) < len(all) && 2*agree < len(all) {
		return gone{}
	}
	if setBefore(by, voters) {
		return by
	}
	return gone{}
}

// mostJumped returns what those that agree with the median of those that jumped did, and
// how many these are: the middle of what all of them allow, as the median may be known to
// much less than others.
func mostJumped(all []gone) (mid gone, agree int) {
	moved := slices.DeleteFunc(slices.Clone(all), func(g gone) bool { return distance(g.jump, 0) <= g.slack })
	if len(moved) == 0 {
		return gone{}, 0
	}
	slices.SortFunc(moved, func(a, b gone) int { return cmp.Compare(a.jump, b.jump) })
	mid = stats.MedianHigh(moved)
	least, most := mid.jump-mid.slack, mid.jump+mid.slack
	for _, g := range moved {
		if distance(g.jump, mid.jump) <= g.slack+mid.slack {
			agree++
			least, most = max(least, g.jump-g.slack), min(most, g.jump+g.slack)
		}
	}
	if least <= most {
		mid.slack = (most - least + 1) / 2
		mid.jump = least + mid.slack
	}
	return mid, agree
}

// setBefore reports whether those that did not jump were set rather than those that
// did: they went back, or ran far ahead.
func setBefore(moved gone, all []gone) bool {
	i := slices.IndexFunc(all, func(g gone) bool { return distance(g.jump, 0) <= g.slack })
	if i < 0 || moved.on < 0 {
		return i < 0
	}
	return all[i].on < 0 || all[i].on-moved.on > leapt
}

// jump is by how much a clock departs from what its last window foresaw, and by how
// much it can without having been set.
func jump(old, next *window) (by int64, slack float64) {
	unseen := max(0, next.from-old.until, old.from-next.until)
	by = next.offsetAt(next.from) - old.offsetAt(next.from)
	return by, float64(old.bound) + float64(next.bound) + max(maxPace, old.growth)*float64(unseen)
}

func windowOf(s *graph.Solved) window {
	w := window{
		from: s.From, until: s.Until, at: s.At, offset: s.Offset, drift: s.Drift,
		bound: model.NoBound, growth: s.Growth, sigma: min(s.Sigma, float64(farthest)),
	}
	if s.Bounded {
		w.bound = s.Bound
	}
	return w
}
