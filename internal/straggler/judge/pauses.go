package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// pausing is how often one rank was held up.
type pausing struct {
	s      *standing
	events []int // frames
	sum    float64
	mean   float64 // share of excess, over all steps
}

const (
	// wildSteps is how many standard deviations of a step beyond its rank's typical one
	// make it an event.
	wildSteps = 6
	// leastEvents is how often a rank must be held up to be named for it.
	leastEvents = 3
	// heldAlarm is what part of the false alarms may come from ranks that are held up in
	// some steps only: chance makes and unmakes them as the window moves.
	heldAlarm = 0.1
	// mostHeld and heldShare bound how many ranks at once are named for being held up.
	mostHeld  = 8
	heldShare = 4
)

// events finds for each rank that is not named the steps in which it was held up.
func (t *trial) events() []pausing {
	out := make([]pausing, 0, len(t.ranks))
	limit := max(t.cfg.MinExcessShare, wildSteps*t.noise.step)
	for i := range t.ranks {
		s := &t.ranks[i]
		if s.named {
			continue
		}
		p := pausing{s: s}
		from := max(limit, s.typical+limit)
		for k, f := range t.frames {
			e := t.h.at(s.n, f)
			if e == nil || e.flags&entryCompared == 0 {
				continue
			}
			x := e.share(e.net())
			p.mean += x / float64(s.steps)
			if x > from {
				p.events = append(p.events, k)
				p.sum += x
			}
		}
		out = append(out, p)
	}
	return out
}

// intermittent names ranks that are held up far more often than the others, though not
// in most steps.
func (t *trial) intermittent() {
	t.estimate()
	all := t.events()
	slices.SortStableFunc(all, func(a, b pausing) int { return cmp.Compare(len(b.events), len(a.events)) })
	n, chances := t.heldUp(all)
	for i := range n {
		p := &all[i]
		k := len(p.events)
		if p.mean < t.cfg.MinExcessShare/2 || p.s.m.host.pair || p.s.m.device.rung == RungHistory || t.heldByWork(p) {
			continue
		}
		p.s.named = true
		t.suspects = append(t.suspects, &suspect{
			standing: p.s, intermittent: true, class: t.classOfEvents(p), pauses: t.law(all[i : i+1]),
			test: test{
				from: p.events[0], to: p.events[k-1] + 1, steps: p.s.steps, share: p.mean, mean: p.mean,
				chance: chances[i], z: math.Sqrt(float64(k)),
			},
		})
	}
	t.jitter(all)
}

// heldUp returns how many of the ranks, which are in order of how often they were held
// up, were so more often than the rest by more than chance. If all were held up alike,
// the events of one rank and of the rest together would be shared out by their steps:
// the exact test of two rates, which needs to know neither. It is corrected for the
// choice of so many ranks out of all.
func (t *trial) heldUp(all []pausing) (n int, chances []float64) {
	events, steps := 0, 0
	for i := range all {
		events += len(all[i].events)
		steps += all[i].s.steps
	}
	choices := float64(t.looks)
	for s := 1; s <= min(mostHeld, max(1, len(all)/heldShare)) && s < len(all); s++ {
		p := &all[s-1]
		k := len(p.events)
		if k < leastEvents {
			break
		}
		events, steps = events-k, steps-p.s.steps
		choices *= float64(len(all)-s+1) / float64(s)
		chance := min(1, binomialTail(k, k+events, float64(p.s.steps)/float64(p.s.steps+steps))*choices)
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
func (t *trial) law(of []pausing) *Pauses {
	var lengths, gaps []float64
	l := &Pauses{}
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
	l.Median, l.P95 = lengths[len(lengths)/2], lengths[min(len(lengths)-1, len(lengths)*95/100)]
	l.PerRank = float64(len(lengths)) / float64(max(1, steps))
	if len(gaps) >= leastEvents {
		if mid, sigma := spreadOf(gaps); mid > 0 && sigma <= regular*mid {
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
	paused, rest := 0, all[:0:0]
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
	c := Conclusion{Class: model.ClassJitter, Rank: -1, Stage: -1, Peer: -1, Intermittent: true, Pauses: t.law(rest)}
	c.Share, c.Steps, c.Peers = mean, len(t.frames), len(all)-1
	c.First, c.Last = t.frames[0].step, t.frames[len(t.frames)-1].step
	c.Rung = RungRole
	c.Mean = mean * t.level()
	c.Excess = c.Mean
	t.placeOf(&c, 0, len(t.frames), func(d *detail) bool { return d.sort == detailHost })
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
	return medianOf(t.buf)
}
