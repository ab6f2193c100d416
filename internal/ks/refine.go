// SPDX-License-Identifier: Apache-2.0

package ks

// finePivots is how many pivots there are where few do not tell enough: each row is then
// bounded by what is like it.
const finePivots = 8

// refine takes more pivots, where these come nearer to a sample by a fifth, and reports
// whether it did and how many pairs it computed. The distances from all pivots are known
// of the given rows alone then; the order of rows stays, and lower has no meaning any more.
func (c *crowd) refine(rows []int) (more bool, pairs int64) {
	sample := c.sample()
	_, was := share(sample, c.pivots)
	pivots := spread(sample, c.pivots, finePivots)
	c.settle(sample, pivots)
	if _, now := share(sample, pivots); 5*now > 4*was {
		return false, 0
	}
	apart := between(pivots)
	for i := range c.rows() {
		row, at := c.at(i), int(c.of[i])
		own := distance(row, pivots[at], 0)
		for p, pivot := range pivots {
			// By the triangle, a pivot is no nearer that is twice as far from the nearest.
			if p == at || apart[at][p] >= 2*own {
				continue
			}
			pairs++
			if within(row, pivot, own-1) {
				at, own = p, distance(row, pivot, 0)
			}
		}
		c.of[i], c.own[i] = uint8(at), own
	}
	c.pivots, c.far = pivots, make([]uint64, c.rows()*len(pivots))
	for _, i := range rows {
		for p := range pivots {
			c.from(i)[p] = distance(c.at(i), pivots[p], 0)
		}
	}
	c.add()
	return true, pairs + int64(c.rows()+len(rows)*len(pivots))
}

// between returns the distances of rows from each other.
func between(rows [][]uint64) [][]uint64 {
	out := make([][]uint64, len(rows))
	for i, a := range rows {
		for _, b := range rows {
			out[i] = append(out[i], distance(a, b, 0))
		}
	}
	return out
}
