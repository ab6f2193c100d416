// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// pausing is how often one rank was held up.
type pausing struct {
	s      *standing
	events []int     // frames
	shares []float64 // of excess in them
	mean   float64   // share of excess, over all steps
}

const (
	// wildSteps is how many standard deviations of a step beyond its rank's typical one
	// make it an event.
	wildSteps = 6
	// leastEvents is how often a rank must be held up to be named for it.
	leastEvents = 3
	// loneAlarm is from what chance on a rank's share of all pauses stands out enough for
	// their intervals to be asked, too: where all ranks pause by the clock, intervals tell
	// nobody apart.
	loneAlarm = 0.05
	// sized is by how many times events are longer that are asked about apart: one rank's
	// long pauses drown among short ones of all.
	sized = 4
	// mostHeld and heldShare bound how many ranks at once are named for being held up.
	mostHeld  = 8
	heldShare = 4
)

// events finds for each rank that is not named the steps in which it was held up.
func (t *trial) events() []pausing {
	out := make([]pausing, 0, len(t.ranks))
	limit, lossy := max(t.cfg.MinExcessShare, wildSteps*t.noise.step), t.h.lost() > sameAmount
	for i := range t.ranks {
		s := &t.ranks[i]
		if s.named {
			continue
		}
		p := pausing{s: s}
		from := max(limit, s.typical+limit)
		idle := t.usualIdle(s)
		for k, f := range t.frames {
			e := t.h.at(s.n, f)
			if e == nil || e.flags&entryCompared == 0 {
				continue
			}
			held := s.held(e, idle)
			if lossy && e.flags&entryHollow != 0 {
				held = min(held, e.slow())
			}
			x := e.share(held)
			p.mean += x / float64(s.steps)
			if x > from {
				p.events, p.shares = append(p.events, k), append(p.shares, x)
			}
		}
		out = append(out, p)
	}
	return out
}

// alone returns for how much longer than any other the rank was held up, s, in each step
// in which it was: the rest would be lost without it, too.
func (t *trial) alone(p *pausing) map[int64]float64 {
	out := make(map[int64]float64, len(p.events))
	for _, k := range p.events {
		f, most := t.frames[k], 0.0
		for i := range t.ranks {
			if o := &t.ranks[i]; o != p.s {
				if e := t.h.at(o.n, f); e != nil && e.flags&entryCompared != 0 {
					most = max(most, e.net())
				}
			}
		}
		out[f.step] = max(0, t.h.at(p.s.n, f).net()-most)
	}
	return out
}

// usualIdle returns how long the rank's host is idle in a typical step, where that is asked.
func (t *trial) usualIdle(s *standing) float64 {
	if !s.m.host.pair {
		return 0
	}
	t.buf = t.buf[:0]
	t.over(s.n, 0, len(t.frames), func(e *entry) { t.buf = append(t.buf, e.idle()) })
	return stats.SelectMedian(t.buf)
}

// held returns by how much a rank was held up in a step. Of two hosts the one that was
// idle longer than it is else was, and for no longer than that: its own past tells them
// apart. Of their devices nothing does.
func (s *standing) held(e *entry, usualIdle float64) float64 {
	if s.m.host.pair {
		return min(e.host(), e.idle()-usualIdle)
	}
	return e.net()
}

// intermittent names ranks that are held up far more often than the others, though not
// in most steps. Of long events it is asked apart.
func (t *trial) intermittent() {
	t.estimate()
	all := t.events()
	levels := [][]pausing{all}
	for long := longer(all, sized*shortest(all)); shortest(long) > 0; long = longer(long, sized*shortest(long)) {
		levels = append(levels, long)
	}
	for _, of := range levels {
		t.heldMore(slices.Clone(of), len(levels))
	}
	t.jitter(all)
}

// shortest returns the share of the shortest event, 0 where there is none.
func shortest(all []pausing) (least float64) {
	for i := range all {
		for _, x := range all[i].shares {
			if least == 0 || x < least {
				least = x
			}
		}
	}
	return least
}

// longer returns only those of the events that are at least so long.
func longer(all []pausing, least float64) []pausing {
	out := slices.Clone(all)
	for i := range out {
		p := &out[i]
		events, shares := p.events, p.shares
		p.events, p.shares = nil, nil
		for k, x := range shares {
			if x >= least {
				p.events, p.shares = append(p.events, events[k]), append(p.shares, x)
			}
		}
	}
	return out
}

// heldMore names the ranks that have far more of the events than the others, which is one
// of so many questions.
func (t *trial) heldMore(all []pausing, questions int) {
	slices.SortStableFunc(all, func(a, b pausing) int { return cmp.Compare(len(b.events), len(a.events)) })
	n, chances := t.heldUp(all, questions)
	for i := range n {
		p := &all[i]
		k := len(p.events)
		if p.s.named || p.mean < t.cfg.MinExcessShare/2 || p.s.m.device.rung == RungHistory || t.heldByWork(p) {
			continue
		}
		p.s.named = true
		t.suspects = append(t.suspects, &suspect{
			standing: p.s, limit: heldAlarm * t.cfg.MaxFalseAlarm, intermittent: true, events: k, class: t.classOfEvents(p), pauses: t.law(all[i : i+1]), held: t.alone(p),
			test: test{
				from: p.events[0], to: min(p.next(), len(t.frames)), steps: p.s.steps, share: p.mean, mean: p.mean,
				chance: chances[i], z: math.Sqrt(float64(k)),
			},
		})
	}
}

// heldUp returns how many of the ranks, which are in order of how often they were held
// up, were so more often than the rest by more than chance. If all were held up alike,
// the events of one rank and of the rest together would be shared out by their steps:
// the exact test of two rates, which needs to know neither. It is corrected for the
// choice of so many ranks out of all. Where a rank's share of the events is remarkable and
// its own come by the clock, both must be chance: events in random steps of random ranks.
func (t *trial) heldUp(all []pausing, questions int) (n int, chances []float64) {
	events, steps := 0, 0
	for i := range all {
		events += len(all[i].events)
		steps += all[i].s.steps
	}
	choices := float64(t.looks * questions)
	for s := 1; s <= min(mostHeld, max(1, len(all)/heldShare)) && s < len(all); s++ {
		p := &all[s-1]
		k := len(p.events)
		if k < leastEvents {
			break
		}
		events, steps = events-k, steps-p.s.steps
		choices *= float64(len(all)-s+1) / float64(s)
		chance := min(1, stats.BinomialTail(k, k+events, float64(p.s.steps)/float64(p.s.steps+steps))*choices)
		if chance <= loneAlarm {
			chance = min(chance, 2*chance*evenly(p.events)) // two questions
		}
		chances = append(chances, chance)
		if chance <= heldAlarm*t.cfg.MaxFalseAlarm {
			n = s
		}
	}
	for i := range n {
		chances[i] = min(chances[i], chances[n-1])
	}
	return n, chances
}

// next returns the frame in which the next event is due: each stands for the frames up to
// the one that follows, else the more would be told the fewer there are.
func (p *pausing) next() int {
	last := p.events[len(p.events)-1]
	return last + max(1, (last-p.events[0])/max(1, len(p.events)-1))
}

// evenly returns the probability that events in random frames, between the first and the
// last of them, lie at intervals as even as these; 1 where these differ by more than a frame.
func evenly(events []int) float64 {
	n := len(events) - 1
	if n < 2 {
		return 1
	}
	span := events[n] - events[0]
	for i := range n {
		if gap := events[i+1] - events[i]; gap < span/n || gap > span/n+1 {
			return 1
		}
	}
	return choose(n, span%n) / choose(span-1, n-1)
}

// choose returns in how many ways k of n can be chosen.
func choose(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= k; i++ {
		ways *= float64(n-k+i) / float64(i)
	}
	return ways
}

func (t *trial) classOfEvents(p *pausing) string {
	var device, host float64
	for _, k := range p.events {
		e := t.h.at(p.s.n, t.frames[k])
		device, host = device+e.slow(), host+e.host()
	}
	if host > device {
		return model.ClassHost
	}
	return model.ClassCompute
}

// regular is by how much intervals between pauses may deviate for them to have a period.
const regular = 0.2

// law describes the pauses of ranks.
func (t *trial) law(of []pausing) *evidence.Pauses {
	var lengths, gaps []float64
	l := &evidence.Pauses{}
	steps := 0
	for i := range of {
		p := &of[i]
		steps += p.s.steps
		if len(p.events) > 0 {
			l.Ranks++
		}
		for k, at := range p.events {
			e := t.h.at(p.s.n, t.frames[at])
			lengths = append(lengths, max(float64(e.pause), e.host()))
			if k > 0 {
				gaps = append(gaps, float64(t.frames[at].step-t.frames[p.events[k-1]].step))
			}
		}
	}
	if len(lengths) == 0 {
		return nil
	}
	slices.Sort(lengths)
	l.Median, l.P95 = stats.MedianHigh(lengths), stats.QuantileHigh(lengths, 0.95)
	l.PerRank = float64(len(lengths)) / float64(max(1, steps))
	if len(gaps) >= leastEvents {
		if mid, sigma := stats.Spread(gaps); mid > 0 && sigma <= regular*mid {
			l.Period = mid
		}
	}
	return l
}

// Pauses that rotate are told where they hit so many of the ranks, in so many of the
// steps.
const (
	jitterRanks = 0.1
	jitterLeast = 3
	jitterSteps = 0.1
)

// jitter tells of pauses of hosts that rotate over the ranks.
func (t *trial) jitter(all []pausing) {
	worst := make([]float64, len(t.frames))
	held, from := map[int64]float64{}, math.Inf(1)
	paused, rest, named := 0, all[:0:0], map[int32]bool{}
	for i := range t.ranks {
		if s := &t.ranks[i]; s.named {
			named[s.n] = true
		}
	}
	for i := range all {
		p := &all[i]
		if p.s.named {
			continue
		}
		q := pausing{s: p.s}
		for _, k := range p.events {
			e := t.h.at(p.s.n, t.frames[k])
			if e.host() < e.slow() {
				continue
			}
			q.events = append(q.events, k)
			worst[k] = max(worst[k], e.share(e.host()))
			held[t.frames[k].step] += e.host()
			from = min(from, e.host())
		}
		if len(q.events) > 0 {
			paused++
		}
		rest = append(rest, q)
	}
	hit, mean := 0, 0.0
	for _, x := range worst {
		if x > 0 {
			hit++
		}
		mean += x / float64(len(worst))
	}
	if paused < jitterLeast || float64(paused) < jitterRanks*float64(len(all)) ||
		float64(hit) < jitterSteps*float64(len(worst)) || mean < t.cfg.MinExcessShare/2 {
		return
	}
	c := Conclusion{Class: model.ClassJitter, Rank: -1, Stage: -1, Peer: -1, Intermittent: true, Pauses: t.law(rest), Held: held, HeldFrom: from}
	c.Share, c.Steps, c.Peers = mean, len(t.frames), len(all)-1
	c.First, c.Last = t.frames[0].step, t.frames[len(t.frames)-1].step
	c.Rung = RungRole
	c.Mean = mean * t.level()
	c.Excess = c.Mean
	t.placeOf(&c, 0, len(t.frames), func(d *detail) bool { return d.sort == detailHost && !named[d.row] })
	c.Numbers = map[string]float64{"steps_hit": float64(hit) / float64(len(worst)), "ranks_paused": float64(paused)}
	c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare / 2, limit: 1})
	t.out = append(t.out, c)
}

// level returns the typical own time of ranks.
func (t *trial) level() float64 {
	t.buf = t.buf[:0]
	for i := range t.ranks {
		t.buf = append(t.buf, t.ranks[i].level)
	}
	return stats.SelectMedian(t.buf)
}
