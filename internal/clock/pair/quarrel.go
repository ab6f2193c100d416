// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// quarrelsome is the share of neighbouring samples of both directions that has to
	// contradict one another before the stamps are called wrong: one in eight. A step or
	// a change of frequency makes one of them do so, and stamps that lie now and then
	// (1 %) one in 50. Where only every second exchange is told an old time it is one in
	// four.
	quarrelsome = 8
	// fewNeighbours is of how many such a share is taken, and fewQuarrels how many of
	// them have to quarrel.
	fewNeighbours = 32
	fewQuarrels   = 4
	// maxQuarrels bounds how many sizes are kept for the median.
	maxQuarrels = 1024
)

// quarrel follows whether samples contradict their neighbours in time. Those of one
// exchange, and of two in a row, do where a host stamps what it receives too early, or
// tells old stamps again: throughout, and not where the clocks change.
type quarrel struct {
	neighbours int
	by         []float64 // by how much those that contradict one another do, ns
	last       struct {  // verdict on the last neighbours that were enough for one
		by  int64
		yes bool
	}
}

// look goes through the samples of a window in their order.
func (q *quarrel) look(up, low []sample, maxDrift float64) {
	if q.neighbours >= fewNeighbours {
		q.neighbours, q.by = 0, q.by[:0]
	}
	if !slices.IsSortedFunc(up, byTime) || !slices.IsSortedFunc(low, byTime) {
		up, low = slices.SortedStableFunc(slices.Values(up), byTime), slices.SortedStableFunc(slices.Values(low), byTime)
	}
	for i, j := 0, 0; i < len(up) && j < len(low); {
		// Of each run of one direction the last, beside the first of the next run.
		switch {
		case up[i].t <= low[j].t && i+1 < len(up) && up[i+1].t <= low[j].t:
			i++
		case up[i].t > low[j].t && j+1 < len(low) && low[j+1].t < up[i].t:
			j++
		default:
			q.judge(up[i], low[j], maxDrift)
			if up[i].t <= low[j].t {
				i++
			} else {
				j++
			}
		}
	}
	if q.neighbours < fewNeighbours {
		return
	}
	n := len(q.by)
	q.last.yes = n >= fewQuarrels && n*quarrelsome >= q.neighbours
	if q.last.yes {
		slices.Sort(q.by)
		q.last.by = int64(math.Ceil(stats.MedianHigh(q.by)))
	}
}

func (q *quarrel) judge(up, low sample, maxDrift float64) {
	q.neighbours++
	by := float64(low.v-up.v) - maxDrift*math.Abs(float64(low.t-up.t))
	if by > 0 && len(q.by) < maxQuarrels {
		q.by = append(q.by, by)
	}
}

func (q *quarrel) verdict() (by int64, yes bool) { return q.last.by, q.last.yes }

// quarrelling is the estimate of a window whose samples contradict one another: all
// that any of them says.
func (e *Estimator) quarrelling(a, by int64) []Estimate {
	span := int64(e.cfg.Window)
	up, low := e.upper.between(a-span, a), e.lower.between(a-span, a)
	if len(up) == 0 || len(low) == 0 {
		return nil
	}
	from, until := min(up[0].t, low[0].t), max(up[len(up)-1].t, low[len(low)-1].t)
	est := Estimate{
		From: from, Until: until, At: from + (until-from)/2,
		HasLower: true, HasUpper: true, Lower: model.NoUpper, Upper: model.NoLower,
		DriftBound: e.cfg.MaxDrift, Growth: e.cfg.MaxDrift,
		Samples: int64(len(up) + len(low)), Provisional: true, Contradicted: max(by, 1),
	}
	for _, s := range slices.Concat(up, low) {
		more := e.cfg.MaxDrift * (float64(until-from)/2 + math.Abs(float64(s.t-est.At)))
		est.Lower, est.Upper = min(est.Lower, downwards(s.v, -more)), max(est.Upper, upwards(s.v, more))
	}
	est.centre()
	e.known = false
	return []Estimate{est}
}
