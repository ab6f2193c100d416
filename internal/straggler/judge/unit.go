// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// work is what one row did in one unit: operations of one key, name and shape, alone
// and beside communication.
type work struct {
	row, unit, group, name int32
	place                  PlaceID // that holds most of it
	own, typical           [deviceKinds]float32
	n                      [deviceKinds]uint32
	amount                 float64
	slow                   float32 // s beyond peers for the same work
	more                   float32 // s beyond peers for more of it in each operation
	exact, compared        bool
	backward               bool // of the backward pass
	between                uint32
	sent                   float64
	peers                  int32 // it was compared with
	unknown                bool  // how much it was nobody says
	counted                bool  // its amount is known, and another than the peers'
	alone                  bool  // too few did the same work
	goal                   int32 // its purpose
	prev                   int32 // of the same unit, another row
}

// robust returns the time of the operations without those that took unusually long.
func (w *work) robust() (sum float64) {
	for k := range w.own {
		if w.n[k] > 0 {
			sum += float64(w.n[k]) * float64(w.typical[k])
		} else {
			sum += float64(w.own[k])
		}
	}
	return sum
}

func (w *work) total() float64 { return float64(w.own[0]) + float64(w.own[1]) + float64(w.own[2]) }

func (w *work) count() float64 { return float64(w.n[0]) + float64(w.n[1]) + float64(w.n[2]) }

// gather sorts what the cohort's rows did by unit.
func (c *comparer) gather(co *cohort) {
	c.works, c.units = c.works[:0], c.units[:0]
	for m, i := range co.members {
		r := c.rows[i]
		for j := range r.Cells {
			if in, ok := c.places.info(r.Cells[j].Place); ok && in.kind < deviceKinds {
				c.add(int32(m), &r.Cells[j], in)
			}
		}
	}
	c.exchanges()
}

func (c *comparer) add(row int32, cell *Cell, in *placeInfo) {
	for int(in.unit) >= len(c.lastWork) {
		c.lastWork = append(c.lastWork, 0)
	}
	last := c.lastWork[in.unit]
	if last == 0 || c.works[last-1].row != row {
		if last == 0 {
			c.units = append(c.units, in.unit)
		}
		c.works = append(c.works, work{
			row: row, unit: in.unit, group: in.group, name: in.name, exact: in.exact, backward: in.backward, place: cell.Place, prev: last,
		})
		last = int32(len(c.works))
		c.lastWork[in.unit] = last
	}
	w := &c.works[last-1]
	if cell.Own > max(w.own[0], w.own[1], w.own[2]) {
		w.place = cell.Place
	}
	w.own[in.kind] += cell.Own
	w.typical[in.kind] = cell.Typical
	w.n[in.kind] += cell.N
	w.amount += cell.Work
	w.between += cell.Between
	w.sent += cell.Sent
}

// forget makes the scratch ready for the next cohort.
func (c *comparer) forget() {
	for _, u := range c.units {
		c.lastWork[u] = 0
	}
	for _, g := range c.groups {
		c.lastGoal[g] = 0
	}
	c.groups = c.groups[:0]
}

// sameAmount is by how much amounts of work may differ and still be the same: counts of
// operations at the edge of a step, rounding of grids.
const sameAmount = 0.02

func differs(x, y float64) bool { return math.Abs(x-y) > sameAmount*max(math.Abs(x), math.Abs(y)) }

// unit compares what the rows took for the same work.
func (c *comparer) unit(co *cohort, u int32, exactOnly bool) {
	c.at = c.at[:0]
	timed, worked := false, true
	for p := c.lastWork[u]; p != 0; p = c.works[p-1].prev {
		w := &c.works[p-1]
		c.at = append(c.at, p-1)
		timed = timed || w.count() > 0
		worked = worked && w.amount > 0
	}
	if exactOnly && !c.works[c.at[0]].exact {
		return
	}
	if !timed {
		c.untimed(co, exactOnly)
		return
	}
	var by [deviceKinds]stats.Middle
	for k := range by {
		c.v = c.v[:0]
		for _, p := range c.at {
			if w := &c.works[p]; w.n[k] > 0 && w.typical[k] > 0 {
				c.v = append(c.v, float64(w.typical[k]))
			}
		}
		by[k] = stats.SelectMiddle(c.v)
	}
	var each stats.Middle
	if worked {
		c.v = c.v[:0]
		for _, p := range c.at {
			w := &c.works[p]
			c.v = append(c.v, w.amount/max(1, w.count()))
		}
		each = stats.SelectMiddle(c.v)
	}
	alone := len(c.at) < minCohort
	for _, p := range c.at {
		c.works[p].alone = alone
		c.slowness(&c.works[p], &by, &each, worked)
	}
}

// overlapCost is by how much operations take longer beside communication at most.
const overlapCost = 1.4

// theirs returns what one operation of a sort took the others, 0 where that is not known.
// Where too few ran it as this row did, alone or beside communication, those count who
// ran it the other way, in favour of the row: it may be what it came late by that moved
// its operations out of, or into, the others' transfers.
func theirs(by *[deviceKinds]stats.Middle, k Kind, mine float64) float64 {
	switch {
	case by[k].Len() >= minCohort:
		return by[k].Without(mine)
	case k == Compute && by[Overlapped].Len() >= minCohort:
		return min(by[Overlapped].Median(), max(mine, by[Overlapped].Median()/overlapCost))
	case k == Overlapped && by[Compute].Len() >= minCohort:
		return max(by[Compute].Median(), min(mine, overlapCost*by[Compute].Median()))
	}
	return 0
}

// slowness fills by how much the row was slower in the unit than its peers: the ratio
// of typical durations times what it did, so that single operations that took long do
// not count.
func (c *comparer) slowness(w *work, by *[deviceKinds]stats.Middle, each *stats.Middle, worked bool) {
	var mine, usual float64
	for k := range by {
		if w.n[k] == 0 || w.typical[k] <= 0 {
			continue
		}
		other := theirs(by, Kind(k), float64(w.typical[k]))
		if other <= 0 {
			continue
		}
		mine += float64(w.n[k]) * float64(w.typical[k])
		usual += float64(w.n[k]) * other
	}
	if usual <= 0 {
		return
	}
	w.compared, w.peers = true, int32(len(c.at)-1)
	ratio := mine / usual
	took := ratio
	if worked {
		perOp := w.amount / max(1, w.count())
		if other := each.Without(perOp); other > 0 && differs(perOp, other) {
			w.counted = true
			// What goes away per unit of work is work. What a unit costs more because there
			// are fewer of them is no slowness either.
			ratio = min(ratio, ratio*other/perOp)
		}
	}
	w.slow = float32(w.total() * (1 - 1/max(ratio, leastRatio)))
	w.more = float32(w.total()*(1-1/max(took, leastRatio))) - w.slow
}

// leastRatio bounds by how much faster than its peers a row may be: whatever is said of
// an amount of work, a hundredth of their time is no comparison.
const leastRatio = 0.01

// untimed compares the sums of a unit whose operations nobody timed.
func (c *comparer) untimed(co *cohort, exactOnly bool) {
	if exactOnly {
		return
	}
	c.v = grown(c.v, len(co.members))
	clear(c.v)
	for _, p := range c.at {
		c.v[c.works[p].row] = c.works[p].total()
	}
	m := stats.SelectMiddle(c.v)
	for _, p := range c.at {
		w := &c.works[p]
		w.compared, w.peers = true, int32(len(c.at)-1)
		w.slow = float32(w.total() - m.Without(w.total()))
	}
}
