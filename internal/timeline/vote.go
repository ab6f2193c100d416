// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// wall is what one real-time clock says: its reading less the reference's when the
// reference reads at, how wrong that can be, and its rate less the reference's.
type wall struct {
	clock  string
	offset int64
	bound  int64 // model.NoBound where nothing bounds it
	drift  float64
}

// pairing is that a real-time clock was read together with its host's raw clock.
type pairing struct {
	raw   string
	heard time.Time
}

// pair remembers which raw clock a real-time clock hangs on.
func (t *Timeline) pair(e *model.ClockEdge) {
	raw, wall, ok := paired(e)
	if !ok {
		return
	}
	p := pairing{raw: raw, heard: t.opt.Now()}
	if !t.paired.Fits(wall, p) {
		t.stats.Overflowed.Add(1)
		return
	}
	t.paired.Set(wall, p)
}

// unpair forgets what was not read for long.
func (t *Timeline) unpair(now time.Time) {
	t.paired.DropOldest(func(_ string, p pairing) bool { return now.Sub(p.heard) > t.opt.Forget })
	t.comparing.Lock()
	defer t.comparing.Unlock()
	t.compared.DropOldest(func(_ string, c comparison) bool { return now.Sub(c.heard) > t.opt.Forget })
}

// voters are the real-time clocks of one component.
type voters struct {
	hosts  map[string]wall // by host: those that hang on their host's raw clock
	heard  map[string]time.Time
	traces []wall // those that traces alone tell of
}

// votes returns the real-time clocks that each scale follows, by reference: one of
// each host that hangs on its raw clock. Only where there is none those count that
// traces tell of, which any program can make up.
func (t *Timeline) votes(solved []graph.Solved) map[string]*vote {
	on := make(map[string]string, len(solved))
	for i := range solved {
		if !solved[i].Untrusted {
			on[solved[i].Clock] = solved[i].Reference
		}
	}
	all := map[string]*voters{}
	for i := range solved {
		s := &solved[i]
		n := parse(s.Clock)
		if s.Untrusted || !n.realtime || t.inDoubt(s.Clock) {
			continue
		}
		v := all[s.Reference]
		if v == nil {
			v = &voters{hosts: map[string]wall{}, heard: map[string]time.Time{}}
			all[s.Reference] = v
		}
		p, ok := t.paired.Peek(s.Clock)
		v.add(newWall(s), n, p, ok && on[p.raw] == s.Reference)
	}
	out := map[string]*vote{}
	for i := range solved {
		ref := solved[i].Reference
		if v := all[ref]; v != nil && out[ref] == nil {
			// At + Offset is the same instant for all clocks of a component.
			out[ref] = v.elect(solved[i].At+solved[i].Offset, &t.opt)
		}
	}
	return out
}

func newWall(s *graph.Solved) wall {
	w := wall{clock: s.Clock, offset: -s.Offset, bound: model.NoBound, drift: -s.Drift}
	if s.Bounded {
		w.bound = s.Bound
	}
	return w
}

func (v *voters) add(w wall, n name, p pairing, paired bool) {
	switch {
	case paired:
		// A host that booted has two for a while.
		if before, ok := v.heard[n.host]; !ok || p.heard.After(before) {
			v.hosts[n.host], v.heard[n.host] = w, p.heard
		}
	case strings.HasPrefix(w.clock, "host:") || strings.HasPrefix(w.clock, "service:"):
		v.traces = append(v.traces, w)
	}
}

func (v *voters) elect(at int64, opt *Options) *vote {
	walls := make([]wall, 0, len(v.hosts))
	for _, w := range v.hosts {
		walls = append(walls, w)
	}
	if len(walls) == 0 {
		walls = v.traces
	}
	if len(walls) == 0 {
		return nil
	}
	out := elect(at, walls, opt)
	out.paired = len(v.hosts) > 0
	return out
}

// vote is what the real-time clocks of a component say together.
type vote struct {
	walls  int
	paired bool
	// median of the offsets, with what its clock's own can be wrong by, and of the
	// rates.
	median knot
	bound  int64
	// reach is how far each clock that agrees can be from the median, in order, and
	// rates how many agree on the rate.
	reach []int64
	rates int
	// two are the clocks where there are no more.
	two []wall
}

// elect takes offset and drift each on its own: a clock that is right in one need
// not be in the other. Of an even number it is the lower one: the mean would let one
// clock of two that lies move the scale by half.
func elect(at int64, walls []wall, opt *Options) *vote {
	slices.SortFunc(walls, func(a, b wall) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), strings.Compare(a.clock, b.clock))
	})
	rates := make([]float64, len(walls))
	for i, w := range walls {
		rates[i] = w.drift
	}
	slices.Sort(rates)
	mid := stats.MedianLow(walls)
	v := &vote{walls: len(walls), bound: mid.bound, median: knot{x: at, off: mid.offset, slope: stats.MedianLow(rates)}}
	for _, w := range walls {
		if math.Abs(w.drift-v.median.slope) <= opt.Drift {
			v.rates++
		}
		away := distance(w.offset, v.median.off)
		if w.bound == model.NoBound || v.bound == model.NoBound || away-v.bound-w.bound > opt.Skew.Nanoseconds() {
			continue
		}
		v.reach = append(v.reach, away+w.bound)
	}
	slices.Sort(v.reach)
	if len(walls) == 2 {
		v.two = slices.Clone(walls)
	}
	return v
}

// against reports whether more than half of at least three clocks agree, and all of
// them are certainly nearer to the median than something that is so far away.
func (v *vote) against(far int64) bool {
	near, _ := slices.BinarySearch(v.reach, far)
	return v.walls >= 3 && 2*near > v.walls
}

// againstRate reports whether more than half of at least three clocks agree on a rate.
func (v *vote) againstRate() bool { return v.walls >= 3 && 2*v.rates > v.walls }

// other is the other one of two clocks.
func (v *vote) other(clock string) (wall, bool) {
	for i, w := range v.two {
		if w.clock == clock {
			return v.two[1-i], true
		}
	}
	return wall{}, false
}
