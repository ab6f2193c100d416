package ks

// An outline says what a row reaches beside a pivot in spans of two words. Two outlines
// tell how far the rows can be apart in a quarter of the time that the distance takes,
// and are off by no more than rows move within a span.

const (
	outlined = 2 // words of a span
	// perLook is how many looks at outlines cost what a distance does.
	perLook = 4
)

// outline makes the outlines of all rows, each beside its own pivot.
func (c *crowd) outline() {
	c.outlines = make([]uint64, 0, c.rows()*c.outlineWords())
	for i := range c.rows() {
		c.outlines = c.trace(c.outlines, i, int(c.of[i]), false)
	}
}

func (c *crowd) outlineWords() int { return (c.words + 2*outlined - 1) / (2 * outlined) }

// trace appends the outline of a row. A word has two spans, and of each the most and
// the least with its sign turned, or where it is turned, the other way round: so that the
// cells of one outline and those of a turned one sum to what rows can be apart.
func (c *crowd) trace(to []uint64, row, pivot int, turned bool) []uint64 {
	a, from := c.at(row), c.pivots[pivot]
	for first := 0; first < c.words; first += 2 * outlined {
		word := uint64(0)
		for k := range 2 {
			begin := first + k*outlined
			if begin >= c.words {
				break
			}
			end := min(begin+outlined, c.words)
			low, high := reach(a[begin:end], from[begin:end])
			x, y := halved(high), halved(-low)
			if turned {
				x, y = y, x
			}
			word |= (x | y<<cellBits) << (2 * k * cellBits)
		}
		to = append(to, word)
	}
	return to
}

// halved stores a difference in a cell, rounded up: the sum of two stays below the
// highest bit.
func halved(d int) uint64 { return uint64(d+Full+1) / 2 }

// apart returns what the distance of two rows cannot exceed, by their outlines; the
// distance is known to be at least floor, and the word where most is expected is looked
// at first.
func apart(a, b []uint64, peak int, floor uint64) uint64 {
	b = b[:len(a)]
	top := max(Full+(floor+1)/2, highest(a[peak]+b[peak]))
	room := roomAbove(top)
	for len(a) >= 4 && len(b) >= 4 {
		s0, s1, s2, s3 := a[0]+b[0], a[1]+b[1], a[2]+b[2], a[3]+b[3]
		if ((s0+room)|(s1+room)|(s2+room)|(s3+room))&carry != 0 {
			top = max(top, highest(s0), highest(s1), highest(s2), highest(s3))
			room = roomAbove(top)
		}
		a, b = a[4:], b[4:]
	}
	for i, p := range a {
		top = max(top, highest(p+b[i]))
	}
	return 2 * (top - Full)
}

// highest returns the largest cell of a word.
func highest(w uint64) uint64 {
	return max(w&cellMask, w>>cellBits&cellMask, w>>(2*cellBits)&cellMask, w>>(3*cellBits))
}

// beyond returns, for each stretch of rows, what the distances of row i from all workers
// of these rows and of those after cannot exceed; none where they cannot reach least.
func (c *crowd) beyond(i int, least uint64, rest []uint64) ([]uint64, bool) {
	words := c.outlineWords()
	turned, peaks := make([][]uint64, len(c.pivots)), make([]int, len(c.pivots))
	for p := range c.pivots {
		turned[p] = c.trace(nil, i, p, true)
		for w, cells := range turned[p] {
			if highest(cells) > highest(turned[p][peaks[p]]) {
				peaks[p] = w
			}
		}
	}
	far := c.from(i)
	rest = rest[:0]
	sum := uint64(0)
	for from := 0; from < c.rows(); from += stretch {
		if sum+c.upper(i, from) < least {
			return rest, false
		}
		rest = append(rest, sum)
		to := min(from+stretch, c.rows())
		for k := from; k < to; k++ {
			p, own := c.of[k], c.own[k]
			d := apart(turned[p], c.outlines[k*words:(k+1)*words], peaks[p], max(far[p], own)-min(far[p], own))
			if k != i {
				sum += c.weighs[k] * min(d, far[p]+own)
			}
		}
	}
	for s := range rest {
		rest[s] = sum - rest[s]
	}
	return rest, sum >= least
}
