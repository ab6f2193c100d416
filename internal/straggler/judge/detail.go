// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

// detail is where a row that stands out spent its excess.
type detail struct {
	row    int32 // of the step, later the rank's number
	place  PlaceID
	sort   detailSort
	excess float32
}

type detailSort uint8

const (
	detailSlow detailSort = iota
	detailHost
	detailWork
	detailChoice
)

// Of how many rows of a cohort, and of how many places of each, it is kept where the
// excess lies: those who lead. A rank at fault leads in most of its steps.
const (
	topRows   = 8
	topShare  = 16 // or one of so many
	topMost   = 64
	topPlaces = 4
)

// top keeps where the cohort's leading rows spent their excess.
func (c *comparer) top(co *cohort) {
	keep := max(topRows, min(topMost, len(co.judged)/topShare))
	c.tops = c.tops[:0]
	lead := func(of func(o *outcome) float64) {
		c.v = c.v[:0]
		for _, i := range co.judged {
			c.v = append(c.v, of(&c.out[i]))
		}
		limit := 0.0
		if n := len(c.v); n > keep {
			limit = max(0, stats.Select(c.v, n-keep))
		}
		for _, i := range co.judged {
			if of(&c.out[i]) > limit && !slices.Contains(c.tops, i) && len(c.tops) < 2*topMost {
				c.tops = append(c.tops, i)
			}
		}
	}
	lead((*outcome).net)
	lead(func(o *outcome) float64 { return o.pause })
	c.detail(co)
	for _, i := range co.judged {
		o := &c.out[i]
		if o.choice > 0 {
			c.details = append(c.details, detail{i, o.choicePlace, detailChoice, float32(o.choice)})
		}
		if o.work > sameAmount*o.base {
			c.details = append(c.details, detail{i, o.workPlace, detailWork, float32(o.work)})
		}
	}
}

// detail keeps the leading places of the rows in tops.
func (c *comparer) detail(co *cohort) {
	if len(c.tops) == 0 {
		return
	}
	local := make(map[int32]int32, len(c.tops))
	for t, i := range c.tops {
		local[i] = int32(t)
	}
	best := make([][]detail, len(c.tops))
	for i := range c.works {
		w := &c.works[i]
		t, ok := local[co.members[w.row]]
		if ok && w.slow > 0 {
			best[t] = append(best[t], detail{co.members[w.row], w.place, detailSlow, w.slow})
		}
	}
	for t, i := range c.tops {
		best[t] = append(best[t], c.hostPlaces(co, i)...)
		slices.SortFunc(best[t], func(a, b detail) int {
			switch {
			case a.excess > b.excess:
				return -1
			case a.excess < b.excess:
				return 1
			}
			return int(a.place) - int(b.place)
		})
		c.details = append(c.details, best[t][:min(len(best[t]), topPlaces)]...)
	}
}

// hostPlaces returns where the row's host was idle beyond the cohort's others.
func (c *comparer) hostPlaces(co *cohort, row int32) (out []detail) {
	r := c.rows[row]
	for j := range r.Cells {
		cell := &r.Cells[j]
		in, ok := c.places.info(cell.Place)
		if !ok || in.kind != Host {
			continue
		}
		x := float64(cell.Own) - c.usualAt(co, row, cell.Place)
		if x > 0 {
			out = append(out, detail{row, cell.Place, detailHost, float32(x)})
		}
	}
	return out
}

// usualSample is how many others are asked how long they are idle in a place: their
// median is no secret that takes all of them.
const usualSample = 31

// usualAt returns the median of the others' time in a place, of at most usualSample of
// them.
func (c *comparer) usualAt(co *cohort, row int32, place PlaceID) float64 {
	c.u = c.u[:0]
	stride := max(1, len(co.members)/usualSample)
	for m := 0; m < len(co.members); m += stride {
		i := co.members[m]
		if i == row {
			continue
		}
		x := 0.0
		cells := c.rows[i].Cells
		for j := range cells {
			if cells[j].Place == place {
				x = float64(cells[j].Own)
				break
			}
		}
		c.u = append(c.u, x)
	}
	return stats.SelectMedian(c.u)
}
