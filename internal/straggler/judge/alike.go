// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// unevenWork tells of work that is more on another rank in every step and that nobody
// counted, by what it does to both passes.
func (t *trial) unevenWork(fixed map[int32]bool) {
	a, ok := t.passesAlike(func(s *standing) bool {
		return s.named || fixed[s.n] || s.m.device.rung == RungHistory
	})
	if !ok || a.steps < leastSteps || a.share < t.cfg.MinExcessShare || a.leader > rotates {
		return
	}
	on := t.h.members[a.first].device
	c := Conclusion{
		Class: model.ClassWorkImbalance, Rank: -1, Stage: -1, Peer: -1, Rung: on.rung, Peers: on.peers,
		Steps: a.steps, Share: a.share, Chance: t.alikeChance(&a),
		Numbers: map[string]float64{"correlation": a.correlation, "memory": a.memory, "leader": a.leader},
	}
	if c.Chance > t.cfg.MaxFalseAlarm {
		return
	}
	t.spread(&c, c.Share*t.level())
	t.place(&c, nil, 0, len(t.frames))
	c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: t.cfg.MaxFalseAlarm})
	t.out = append(t.out, c)
}

// alikeChance returns how often chance would make the passes go together as well. A step's
// ranks have peers in common, so that only steps count.
func (t *trial) alikeChance(a *alike) float64 {
	n := float64(a.steps) / inflation(a.steps, max(0, a.memory))
	z := math.Atanh(min(0.99, a.correlation)) * math.Sqrt(n)
	return min(1, stats.StudentTail(z, n)*float64(t.looks))
}

// alike says how the passes of ranks went together over steps.
type alike struct {
	correlation float64 // of forward and backward, each without what is typical of its rank
	memory      float64 // of what a rank had more to do, from step to step
	share       float64 // that who leads a step has more, typically
	leader      float64 // share of the steps that are worth telling in which the most frequent of them leads
	first       int32   // the number of that rank
	steps       int
}

// alikeRanks is by how many ranks it is asked whether the passes of any go together.
const alikeRanks = 32

// passesAlike compares the passes of ranks that are not left out; false where they do not
// go together.
func (t *trial) passesAlike(skip func(*standing) bool) (a alike, ok bool) {
	var of []int32
	for i := range t.ranks {
		if s := &t.ranks[i]; s.n < passRanks && !skip(s) {
			of = append(of, s.n)
		}
	}
	var forward, backward []float64
	for i := 0; i < len(of); i += 1 + len(of)/alikeRanks {
		forward, backward, _ = t.passesOf(of[i], forward, backward)
	}
	if a.correlation = correlationOf(forward, backward, &t.buf); a.correlation < workCorrelation {
		return a, false
	}
	a.follow(t, of)
	return a, true
}

// passesOf adds a rank's passes without what is typical of them, which it returns.
func (t *trial) passesOf(rank int32, f, b []float64) (forward, backward []float64, typical float64) {
	from := len(f)
	for _, fr := range t.frames {
		if p, ok := t.h.passesAt(rank, fr); ok {
			f, b = append(f, float64(p.forward)), append(b, float64(p.backward))
		}
	}
	return f, b, centre(f[from:], &t.buf) + centre(b[from:], &t.buf)
}

// follow fills what the ranks had more to do in the steps, one after the other.
func (a *alike) follow(t *trial, of []int32) {
	var now, before, f, b []float64
	tops := make([]leader, len(t.frames))
	for _, rank := range of {
		var typical float64
		f, b, typical = t.passesOf(rank, f[:0], b[:0])
		last, at := 0.0, -2
		for k, fr := range t.frames {
			p, ok := t.h.passesAt(rank, fr)
			if !ok {
				continue
			}
			more := p.both() - typical
			if more > tops[k].share {
				tops[k] = leader{n: rank, share: more}
			}
			if at == k-1 {
				now, before = append(now, more), append(before, last)
			}
			last, at = more, k
		}
	}
	a.memory = correlationOf(now, before, &t.buf)
	a.lead(tops, t.cfg.MinExcessShare)
}

// lead fills who had most to do in each step, and by how much; and how often the same rank had
// it by what is worth telling. Of one rank that has more in every second step it is all that is.
func (a *alike) lead(tops []leader, least float64) {
	worst := make([]float64, 0, len(tops))
	leads := map[int32]int{}
	most, told := 0, 0
	for _, l := range tops {
		if l.share <= 0 {
			continue
		}
		worst = append(worst, l.share)
		if l.share >= least {
			leads[l.n]++
			told++
		}
	}
	for rank, n := range leads {
		if n > most || (n == most && rank < a.first) {
			most, a.first = n, rank
		}
	}
	a.steps = len(worst)
	a.share, a.leader = stats.SelectMedian(worst), float64(most)/float64(max(1, told))
}

// centre takes the median out of the values, and returns it.
func centre(v []float64, buf *[]float64) float64 {
	*buf = append((*buf)[:0], v...)
	mid := stats.SelectMedian(*buf)
	for i := range v {
		v[i] -= mid
	}
	return mid
}

// farthest is how many standard deviations a value counts for at most in a correlation:
// one operation that took long says nothing of the others.
const farthest = 3

// correlationOf returns the correlation of values around zero; 0 where there is none.
func correlationOf(x, y []float64, buf *[]float64) float64 {
	limit := func(v []float64) float64 {
		*buf = append((*buf)[:0], v...)
		_, sigma := stats.Spread(*buf)
		return farthest * sigma
	}
	lx, ly := limit(x), limit(y)
	var xx, yy, xy float64
	for i := range x {
		a, b := max(-lx, min(x[i], lx)), max(-ly, min(y[i], ly))
		xx, yy, xy = xx+a*a, yy+b*b, xy+a*b
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}
