// SPDX-License-Identifier: Apache-2.0

package ks

// bracket narrows what the scores of rows cannot exceed.
type bracket struct {
	*crowd
	least   uint64 // what matters is whether they can reach it
	rows    []int
	spare   []float64 // by row: how far the allowance lies below the bound that is wanted, as a share of the mean distance of rows from their pivot
	upper   []uint64
	by      []uint64 // upper by pivot, row after row
	near    []flock  // by pivot
	above   ramp
	below   ramp
	column  []uint64 // a word of the rows near a pivot
	mine    []uint64 // and of the rows in question
	table   []uint64 // what each number of a window comes to
	allowed []int    // by row in question
	sums    []uint64
}

// flock are rows near one pivot.
type flock struct {
	rows    []int
	weights []uint64
	weight  uint64 // of all
	far     uint64 // sum of weight times distance from the pivot
}

// lengths returns of how many words spans are, one after the other; 0 stands for single
// windows. Long spans suit rhythms that drift, and are far apart in many windows at once;
// single windows suit those whose windows have little to do with each other.
func (c *crowd) lengths() []int { return []int{(c.words + 1) / 2, (c.words + 3) / 4, 0} }

// tighten returns what the scores of rows cannot exceed, and stops when no more than
// few of them can reach least. A cut that a trial expects to decide on no more than few
// is left out.
func (c *crowd) tighten(rows []int, least uint64, few int) []uint64 {
	b := c.bracket(rows, 1, least)
	open := b.open(upTo(len(rows)))
	for _, words := range c.lengths() {
		if len(open) <= few {
			break
		}
		spare, part := b.try(open, words)
		if part*float64(len(open)) <= float64(few) {
			continue
		}
		for k := range b.spare {
			b.spare[k] = spare
		}
		open = b.cut(open, words)
	}
	return b.upper
}

// bracket returns what the pivots say of the distances of rows from all rows, or of those
// from one in so many.
func (c *crowd) bracket(rows []int, every int, least uint64) *bracket {
	n, m := len(rows), len(c.pivots)
	b := &bracket{
		crowd: c, least: least, rows: rows, spare: make([]float64, n), upper: make([]uint64, n),
		by: make([]uint64, 0, n*m), near: make([]flock, m),
	}
	for i := 0; i < c.rows(); i += every {
		f, w := &b.near[c.of[i]], c.weighs[i]
		f.rows, f.weights = append(f.rows, i), append(f.weights, w)
		f.weight += w
		f.far += w * c.own[i]
	}
	for _, i := range rows {
		for p, far := range c.from(i) {
			b.by = append(b.by, b.near[p].weight*far+b.near[p].far)
		}
	}
	return b
}

// open sums the bounds by pivot, and returns which rows can still reach the least.
func (b *bracket) open(which []int) (out []int) {
	m := len(b.pivots)
	for _, k := range which {
		sum := uint64(0)
		for _, u := range b.by[k*m : (k+1)*m] {
			sum += u
		}
		b.upper[k] = sum
		if sum >= b.least {
			out = append(out, k)
		}
	}
	return out
}

// cut bounds the distances of open rows by spans of so many words, and returns which can
// still reach the least.
func (b *bracket) cut(open []int, words int) []int {
	for p := range b.near {
		b.lower(p, open, words)
	}
	return b.open(open)
}

// lower bounds the distances of the open rows from those near a pivot.
func (b *bracket) lower(pivot int, open []int, words int) {
	near, m := &b.near[pivot], len(b.pivots)
	if near.weight == 0 {
		return
	}
	own := float64(near.far) / float64(near.weight)
	b.allowed, b.sums = b.allowed[:0], b.sums[:0]
	for _, k := range open {
		// What would do if the bounds by all pivots fell short alike.
		wanted := float64(b.by[k*m+pivot]) / float64(near.weight) * float64(b.least) / float64(max(1, b.upper[k]))
		c := max(0, int(wanted-b.spare[k]*own))
		b.allowed = append(b.allowed, c)
		b.sums = append(b.sums, near.weight*uint64(c))
	}
	if words == 0 {
		b.windows(pivot, open)
	} else {
		for first := 0; first < b.words; first += words {
			b.span(pivot, open, first, min(first+words, b.words))
		}
	}
	for j, k := range open {
		b.by[k*m+pivot] = min(b.by[k*m+pivot], b.sums[j])
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
