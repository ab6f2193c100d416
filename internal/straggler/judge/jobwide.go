// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// A change of the whole job is told where the step became longer by so much, and so
// many steps on both sides show it.
const (
	wideShare = 0.05
	wideSteps = 8
	// widePart is how much of the change the moved part must explain.
	widePart = 0.5
	// wideZ is how many standard errors the change must be: steps are no independent
	// draws, so that a table of chance would promise too much.
	wideZ = 8
)

// parts of a step that may have changed.
const (
	partDevice   = "compute"
	partHost     = "host"
	partTransfer = "communication"
)

// jobWide tells of a step that became longer for all ranks at once.
func (t *trial) jobWide() {
	h := t.h
	long := append(slices.Clone(h.long[h.longAt:]), h.long[:h.longAt]...)
	best := change{}
	for _, n := range []int{t.h.window / 2, 2 * t.h.window, longMemory} {
		if n = min(n, len(long)); n < 2*wideSteps {
			continue
		}
		if c := changeOf(long[len(long)-n:]); c.z > best.z {
			best = c
		}
	}
	if best.z < wideZ || best.share < wideShare {
		return
	}
	part, moved := best.part()
	if part == "" || t.explained(&best) {
		return
	}
	c := Conclusion{
		Class: model.ClassJobWide, Rank: -1, Stage: -1, Peer: -1, Op: part, OpSec: moved, Rung: RungHistory,
		First: best.at, Last: best.last, Steps: best.after, Excess: best.seconds, Mean: best.seconds,
		Share: best.share, Steadiness: best.z,
		Chance: min(1, stats.StudentTail(best.z, wideSteps)*float64(len(long)*t.looks)),
		Numbers: map[string]float64{
			"before_seconds": best.was, "after_seconds": best.was + best.seconds,
			"compute_change": best.device, "host_change": best.host, "communication_change": best.moved,
		},
	}
	c.Confidence = confidence(&c, &features{gate: wideShare, limit: t.cfg.MaxFalseAlarm}) / RungConfidence(RungHistory) * RungConfidence(RungKernel)
	t.out = append(t.out, c)
}

// explained reports whether somebody who was named explains the change.
func (t *trial) explained(c *change) bool {
	for i := range t.out {
		o := &t.out[i]
		switch o.Class {
		case model.ClassCompute, model.ClassHost, model.ClassNode, model.ClassKernelChoice, model.ClassLink:
			if o.Excess >= widePart*c.seconds {
				return true
			}
		}
	}
	return false
}

// change is a point at which steps became longer.
type change struct {
	at, last            int64
	after               int
	share, seconds      float64
	was, z              float64
	device, host, moved float64 // change of the ranks' medians, s
	ran                 bool    // something is known of what devices did
}

// part returns which part of the step moved, and by how much.
func (c *change) part() (string, float64) {
	if !c.ran { // all is idleness, whatever it was
		return model.OpOther, c.seconds
	}
	type part struct {
		name string
		s    float64
	}
	parts := []part{{partDevice, c.device}, {partHost, c.host}, {partTransfer, c.moved}}
	worst := slices.MaxFunc(parts, func(a, b part) int { return cmp.Compare(a.s, b.s) })
	if worst.s < widePart*c.seconds {
		return "", 0
	}
	return worst.name, worst.s
}

// changeOf finds the point at which the steps changed most, by ranks (Pettitt 1979):
// nothing needs to be known of how steps scatter. How sure it is, the medians of both
// sides say.
func changeOf(steps []longStep) change {
	n := len(steps)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(steps[a].seconds, steps[b].seconds) })
	rank := make([]float64, n)
	for i := 0; i < n; {
		k := i
		for k < n && steps[order[k]].seconds == steps[order[i]].seconds {
			k++
		}
		for m := i; m < k; m++ {
			rank[order[m]] = float64(i+k-1)/2 + 1
		}
		i = k
	}
	sum, most, at := 0.0, 0.0, 0
	for i := 0; i < n-wideSteps; i++ {
		sum += float64(n+1)/2 - rank[i]
		// Divided by its spread, so that changes near either end count as much.
		k := float64(i + 1)
		if u := sum / math.Sqrt(k*(float64(n)-k)); i+1 >= wideSteps && u > most {
			most, at = u, i+1
		}
	}
	if at == 0 {
		return change{}
	}
	before, after := steps[:at], steps[at:]
	logs := func(of []longStep) (mid, variance float64) {
		v := make([]float64, len(of))
		for i := range of {
			v[i] = math.Log(float64(of[i].seconds))
		}
		mid, sigma := stats.Spread(slices.Clone(v))
		return mid, sq(stats.MedianError*max(sigma, leastSpread)) * batched(v, mid, sigma) / float64(len(v))
	}
	mid := func(of []longStep, f func(*longStep) float32) float64 {
		v := make([]float64, len(of))
		for i := range of {
			v[i] = float64(f(&of[i]))
		}
		return stats.SelectMedian(v)
	}
	diff := func(f func(*longStep) float32) float64 { return mid(after, f) - mid(before, f) }
	m0, v0 := logs(before)
	m1, v1 := logs(after)
	c := change{
		at: after[0].step, last: steps[n-1].step, after: len(after), share: math.Exp(m1-m0) - 1,
		z: (m1 - m0) / math.Sqrt(v0+v1), was: math.Exp(m0),
		device: diff(func(l *longStep) float32 { return l.device }),
		host:   diff(func(l *longStep) float32 { return l.host }),
		moved:  diff(func(l *longStep) float32 { return l.waited }),
		ran:    mid(after, func(l *longStep) float32 { return l.device }) > 0,
	}
	c.seconds = math.Exp(m1) - math.Exp(m0)
	return c
}
