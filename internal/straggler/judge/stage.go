// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// stageValue is the own compute of one stage.
type stageValue struct {
	stage   int32
	ranks   []*standing
	seconds float64 // typical over ranks and steps
	noise   float64 // of the stage's value, from step to step
	slow    float64 // share by which the same kernels took longer than in other stages
	covered float64
	hosts   map[string]int
}

// kernelShare is how much of a stage's excess slower kernels must be for its devices
// to be at fault, not the stage's amount of work.
const kernelShare = 0.5

// stageAlarm is what part of the false alarms may come from stages, which accuse nobody: of
// a few of them, each of few ranks, nobody knows how they differ by chance.
const stageAlarm = 0.1

// stages tells of stages that have more to do than others. It is asked of ranks that
// are not named, so that one slow rank makes no stage slow: of a stage of two the
// faster counts.
func (t *trial) stages() {
	all := t.stageValues()
	if len(all) < 2 {
		return
	}
	for i := range all {
		s := &all[i]
		t.buf = t.buf[:0]
		for k := range all {
			if k != i {
				t.buf = append(t.buf, all[k].seconds)
			}
		}
		other := stats.SelectMedian(t.buf)
		excess := s.seconds - other
		share := excess / max(other, leastBase)
		z := excess / max(s.noise, timerFloor, leastSpread*other)
		chance := min(1, stats.StudentTail(z, float64(len(t.frames)+priorSteps))*float64(len(all)*t.looks))
		if share < t.cfg.MinExcessShare || chance > stageAlarm*t.cfg.MaxFalseAlarm {
			continue
		}
		c := Conclusion{
			Class: model.ClassStageImbalance, Rank: -1, Stage: s.stage, Peer: -1, Rung: RungMembers, Peers: len(all) - 1,
			Steps: len(t.frames), First: t.frames[0].step, Last: t.frames[len(t.frames)-1].step,
			Excess: excess, Mean: excess, Share: share, Chance: chance, Steadiness: z,
			Numbers: map[string]float64{
				"stage_seconds": s.seconds, "stages_seconds": other, "kernels_slower": s.slow, "kernels_compared": s.covered,
			},
		}
		for _, r := range s.ranks {
			c.Ranks = append(c.Ranks, r.m.seat.Rank)
		}
		slices.Sort(c.Ranks)
		if s.covered >= kernelCover && s.slow >= kernelShare*share {
			t.slowStage(s, &c, len(all))
			continue
		}
		if len(s.ranks) == 1 && s.ranks[0].named {
			continue
		}
		if s.covered < kernelCover {
			c.Host = t.coincides(s)
		}
		c.Confidence = confidence(&c, &features{gate: t.cfg.MinExcessShare, limit: stageAlarm * t.cfg.MaxFalseAlarm})
		t.out = append(t.out, c)
	}
}

// slowStage tells of a stage whose kernels take longer than the same ones elsewhere: a
// host, where it holds all of the stage and nothing else, and stands out by more than
// hosts do. Else nobody is told.
func (t *trial) slowStage(s *stageValue, c *Conclusion, stages int) {
	host := t.coincides(s)
	if host == "" || s.slow < t.cfg.MinExcessShare || len(s.ranks) < 2 {
		return
	}
	size, _ := t.hostCounts()
	z := s.slow / math.Sqrt(sq(workerSpread)+sq(s.noise/max(s.seconds, leastBase)))
	chance := min(1, stats.StudentTail(z, float64(priorWorkers+len(t.ranks)))*float64(len(size)*t.looks))
	pair := stages == 2
	if chance > stageHostAlarm*t.cfg.MaxFalseAlarm || (pair && (s.slow < pairShare || z < pairZ)) {
		return
	}
	c.Class, c.Host, c.Stage, c.Rung = model.ClassNode, host, -1, RungKernel
	c.Chance, c.Steadiness = max(c.Chance, chance), z
	c.Share, c.Excess, c.Mean = s.slow, s.slow*s.seconds/(1+s.slow), s.slow*s.seconds/(1+s.slow)
	c.Confidence = confidence(c, &features{gate: t.cfg.MinExcessShare, limit: stageHostAlarm * t.cfg.MaxFalseAlarm, pair: pair})
	t.out = append(t.out, *c)
}

// coincides returns the host that holds all of the stage and nothing else, "" for none:
// unless kernels tell them apart, the one may be slow or the other have more to do.
func (t *trial) coincides(s *stageValue) string {
	if len(s.hosts) != 1 {
		return ""
	}
	size, _ := t.hostCounts()
	for host, n := range s.hosts {
		if size[host] == n {
			return host
		}
	}
	return ""
}

// stageValues measures the stages.
func (t *trial) stageValues() []stageValue {
	var all []stageValue
	at := map[int32]int{}
	for i := range t.ranks {
		s := &t.ranks[i]
		pp := s.m.seat.PP
		if pp < 0 {
			continue
		}
		k, ok := at[pp]
		if !ok {
			k = len(all)
			at[pp] = k
			all = append(all, stageValue{stage: pp, hosts: map[string]int{}})
		}
		all[k].hosts[s.m.seat.Host]++
		all[k].ranks = append(all[k].ranks, s)
	}
	slices.SortFunc(all, func(a, b stageValue) int { return int(a.stage) - int(b.stage) })
	for i := range all {
		t.measureStage(&all[i])
	}
	return all
}

func (t *trial) measureStage(s *stageValue) {
	var typical, noise []float64
	for _, r := range s.ranks {
		if (r.named || r.divided) && len(s.ranks) > 2 {
			continue
		}
		t.buf = t.buf[:0]
		for _, f := range t.frames {
			if e := t.h.at(r.n, f); e != nil {
				t.buf = append(t.buf, float64(e.device))
			}
		}
		if len(t.buf) == 0 {
			continue
		}
		mid, sigma := stats.Spread(t.buf)
		typical = append(typical, mid)
		noise = append(noise, sigma)
	}
	s.seconds = stats.SelectMedianLow(typical)
	s.noise = stats.SelectMedian(noise) * stats.MedianError / math.Sqrt(float64(len(t.frames)))
	t.buf, t.buf2 = t.buf[:0], t.buf2[:0]
	for _, f := range t.frames {
		for _, k := range f.stages {
			if k.stage == s.stage {
				t.buf = append(t.buf, float64(k.slow))
				t.buf2 = append(t.buf2, float64(k.covered))
			}
		}
	}
	s.slow, s.covered = stats.SelectMedian(t.buf), stats.SelectMedian(t.buf2)
}
