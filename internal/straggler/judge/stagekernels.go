// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// stageSlow is by what share kernels of a stage took longer than the same kernels in
// other stages.
type stageSlow struct {
	stage   int32
	slow    float32 // of what was compared
	covered float32 // share of the device's time that was compared
}

// stageSample is how many rows of a stage stand for it.
const stageSample = 4

// stageKernels compares kernels of the same name and shape between stages, by a few
// rows of each.
func (c *comparer) stageKernels(into []stageSlow) []stageSlow {
	counts := map[int32]int{}
	for _, r := range c.rows {
		if r.PP >= 0 && !r.Given {
			counts[r.PP]++
		}
	}
	if len(counts) < 2 {
		return into
	}
	sample := cohort{rung: RungKernel}
	taken := map[int32]int{}
	seen := map[int32]int{}
	for i, r := range c.rows {
		n, ok := counts[r.PP]
		if !ok || r.Given {
			continue
		}
		// Rows spread evenly over the stage.
		if seen[r.PP]*stageSample >= taken[r.PP]*n && taken[r.PP] < stageSample {
			sample.members = append(sample.members, int32(i))
			taken[r.PP]++
		}
		seen[r.PP]++
	}
	c.gather(&sample)
	for _, u := range c.units {
		c.between(&sample, u)
	}
	type sum struct{ slow, covered []float64 }
	rows := make([][3]float64, len(sample.members))
	for i := range c.works {
		w := &c.works[i]
		rows[w.row][2] += w.total()
		if w.compared {
			rows[w.row][0] += float64(w.slow)
			rows[w.row][1] += w.total()
		}
	}
	by := map[int32]*sum{}
	for m, i := range sample.members {
		s := by[c.rows[i].PP]
		if s == nil {
			s = &sum{}
			by[c.rows[i].PP] = s
		}
		x := rows[m]
		s.slow = append(s.slow, x[0]/max(leastBase, x[1]-x[0]))
		s.covered = append(s.covered, x[1]/max(leastBase, x[2]))
	}
	for stage, s := range by {
		into = append(into, stageSlow{stage, float32(stats.SelectMedianLow(s.slow)), float32(stats.SelectMedian(s.covered))})
	}
	slices.SortFunc(into, func(a, b stageSlow) int { return int(a.stage) - int(b.stage) })
	c.forget()
	return into
}

// between compares a unit's typical durations with those of rows of other stages.
func (c *comparer) between(co *cohort, u int32) {
	type of struct {
		stage int32
		at    int32
		x     float64
	}
	var v []of
	for p := c.lastWork[u]; p != 0; p = c.works[p-1].prev {
		w := &c.works[p-1]
		if !w.exact || w.count() == 0 {
			continue
		}
		v = append(v, of{c.rows[co.members[w.row]].PP, p - 1, w.robust() / w.count()})
	}
	stages := map[int32][]float64{}
	for _, x := range v {
		stages[x.stage] = append(stages[x.stage], x.x)
	}
	if len(stages) < 2 {
		return
	}
	typical := map[int32]float64{}
	for s, xs := range stages {
		typical[s] = stats.SelectMedianLow(xs)
	}
	for _, x := range v {
		c.u = c.u[:0]
		for s, y := range typical {
			if s != x.stage {
				c.u = append(c.u, y)
			}
		}
		w := &c.works[x.at]
		other := stats.SelectMedian(c.u)
		// Durations of which one is next to nothing are as many times the other as no number holds.
		slow := float32(w.total() * (1 - other/x.x))
		if other > 0 && x.x > 0 && !math.IsInf(x.x, 1) && math.Abs(float64(slow)) <= math.MaxFloat32 {
			w.compared, w.slow = true, slow
		}
	}
}
