package ks

// A step is cut into spans of windows. What a row reaches in a span, the least and the
// most by which it differs from a pivot there, says how far two rows can be apart in it:
// the most of the one less the least of the other. For any allowance c
//
//	D(A,B) <= c + sum over spans of what A and B can be apart there beyond c
//
// and each of these terms depends on one number of A and one of B. Summed over all B it
// is a function of A's number alone, which one pass over the table gives for all A.

// cut is how a step is cut into spans.
type cut struct {
	words int // of a span; 0 stands for single windows
	// spare is how far the allowance lies below the bound that is wanted, as a share of
	// the mean distance of rows from their pivot: the more spans are summed the less, for
	// the sum to be small. Off the mark it makes bounds wider, not wrong.
	spare float64
}

// cuts returns how the step is cut, one after the other. Long spans suit rhythms that
// drift, and are far apart in many windows at once; single windows suit those whose
// windows have little to do with each other.
func (c *crowd) cuts() []cut {
	return []cut{{(c.words + 1) / 2, 0.6}, {min(2, c.words), 0.6}, {0, 0.2}}
}

// bracket narrows what the scores of rows cannot exceed.
type bracket struct {
	*crowd
	least   uint64 // what matters is whether they can reach it
	rows    []int
	upper   []uint64
	by      []uint64 // upper by pivot, row after row
	near    []flock  // by pivot
	above   ramp
	below   ramp
	column  []uint64 // a word of the rows near a pivot
	mine    []uint64 // and of the rows in question
	allowed []int    // by row in question
	sums    []uint64
}

// flock are the rows near one pivot.
type flock struct {
	rows    []int
	weights []uint64
	weight  uint64 // of all
	far     uint64 // sum of weight times distance from the pivot
}

// tighten returns what the scores of rows cannot exceed, and stops when no more than
// few of them can reach least.
func (c *crowd) tighten(rows []int, least uint64, few int) []uint64 {
	m := len(c.pivots)
	b := &bracket{crowd: c, least: least, rows: rows, upper: make([]uint64, len(rows)), by: make([]uint64, 0, len(rows)*m), near: make([]flock, m)}
	for i := range c.rows() {
		f, w := &b.near[c.of[i]], c.weighs[i]
		f.rows, f.weights = append(f.rows, i), append(f.weights, w)
		f.weight += w
		f.far += w * c.own[i]
	}
	open := make([]int, len(rows)) // of rows
	for k, i := range rows {
		open[k] = k
		for p, far := range c.from(i) {
			b.by = append(b.by, b.near[p].weight*far+b.near[p].far)
		}
	}
	open = b.open(open)
	for _, cut := range c.cuts() {
		if len(open) <= few {
			break
		}
		for p := range b.near {
			b.lower(p, open, cut)
		}
		open = b.open(open)
	}
	return b.upper
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

// lower bounds the distances of the open rows from those near a pivot.
func (b *bracket) lower(pivot int, open []int, how cut) {
	near, m := &b.near[pivot], len(b.pivots)
	if near.weight == 0 {
		return
	}
	spare := int(how.spare * float64(near.far) / float64(near.weight))
	b.allowed, b.sums = b.allowed[:0], b.sums[:0]
	for _, k := range open {
		// What would do if the bounds by all pivots fell short alike.
		wanted := float64(b.by[k*m+pivot]) / float64(near.weight) * float64(b.least) / float64(b.upper[k])
		c := max(0, int(wanted)-spare)
		b.allowed = append(b.allowed, c)
		b.sums = append(b.sums, near.weight*uint64(c))
	}
	if how.words == 0 {
		b.windows(pivot, open)
	} else {
		for first := 0; first < b.words; first += how.words {
			b.span(pivot, open, first, min(first+how.words, b.words))
		}
	}
	for j, k := range open {
		b.by[k*m+pivot] = min(b.by[k*m+pivot], b.sums[j])
	}
}

// span adds what the rows can be apart beyond the allowance in a span of words.
func (b *bracket) span(pivot int, open []int, first, end int) {
	from := b.pivots[pivot][first:end]
	for i, row := range b.near[pivot].rows {
		low, high := reach(b.at(row)[first:end], from)
		b.above.add(low, b.near[pivot].weights[i])
		b.below.add(-high, b.near[pivot].weights[i])
	}
	b.above.sum()
	b.below.sum()
	for j, k := range open {
		low, high := reach(b.at(b.rows[k])[first:end], from)
		b.sums[j] += b.above.at(high-b.allowed[j]) + b.below.at(-low-b.allowed[j])
	}
	b.above.clear()
	b.below.clear()
}

// windows adds what the rows can be apart beyond the allowance in each window.
func (b *bracket) windows(pivot int, open []int) {
	near := &b.near[pivot]
	for w := range b.Table.windows {
		if w%perWord == 0 {
			b.column, b.mine = b.column[:0], b.mine[:0]
			for _, row := range near.rows {
				b.column = append(b.column, b.at(row)[w/perWord])
			}
			for _, k := range open {
				b.mine = append(b.mine, b.at(b.rows[k])[w/perWord])
			}
		}
		shift := w % perWord * cellBits
		for i, word := range b.column {
			v := int(word >> shift & Full)
			b.above.add(v, near.weights[i])
			b.below.add(-v, near.weights[i])
		}
		b.above.sum()
		b.below.sum()
		for j, word := range b.mine {
			v := int(word >> shift & Full)
			b.sums[j] += b.above.at(v-b.allowed[j]) + b.below.at(-v-b.allowed[j])
		}
		b.above.clear()
		b.below.clear()
	}
}

// reach returns the least and the most by which the words of a row differ from those of
// a pivot.
func reach(row, pivot []uint64) (low, high int) {
	low, high = Full, -Full
	pivot = pivot[:len(row)]
	for i, p := range row {
		q := pivot[i]
		d0, d1 := int(p&Full)-int(q&Full), int(p>>cellBits&Full)-int(q>>cellBits&Full)
		d2, d3 := int(p>>(2*cellBits)&Full)-int(q>>(2*cellBits)&Full), int(p>>(3*cellBits))-int(q>>(3*cellBits))
		low, high = min(low, d0, d1, d2, d3), max(high, d0, d1, d2, d3)
	}
	return low, high
}

// ramp sums by how much a number exceeds each of a set of numbers, all within -Full and
// Full.
type ramp struct {
	sums      []uint64 // by number, from -Full on
	low, high int      // where they begin, and the first number above all
	weight    uint64   // of all
}

// add takes a number, before sum is called.
func (r *ramp) add(v int, weight uint64) {
	if r.sums == nil {
		r.sums = make([]uint64, 2*Full+2)
		r.low, r.high = 2*Full+1, 0
	}
	v += Full + 1
	r.low, r.high = min(r.low, v), max(r.high, v)
	r.sums[v] += weight
}

// sum serves what was added.
func (r *ramp) sum() {
	r.weight = 0
	sum := uint64(0)
	for i := r.low; i <= r.high; i++ {
		r.weight += r.sums[i]
		sum += r.weight
		r.sums[i] = sum
	}
}

// at returns by how much v exceeds the numbers below it, in all.
func (r *ramp) at(v int) uint64 {
	v += Full
	if v < r.low {
		return 0
	}
	if v > r.high {
		return r.sums[r.high] + uint64(v-r.high)*r.weight
	}
	return r.sums[v]
}

// clear forgets what was added.
func (r *ramp) clear() {
	clear(r.sums[r.low : r.high+1])
	r.low, r.high = 2*Full+1, 0
}
