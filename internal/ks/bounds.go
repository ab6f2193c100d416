package ks

import (
	"cmp"
	"slices"
)

// crowd is a table without repetitions: the rows that differ, the farthest from the
// pivot first, each with the number of workers that have it.
type crowd struct {
	*Table
	cells   []uint64
	workers [][]int32 // by row, in order
	d       []uint64  // distance from the pivot, falling
	rest    []uint64  // rest[i] sums weight times d over rows i and after
	weight  []uint64  // weight[i] counts the workers of rows i and after
}

func (c *crowd) rows() int { return len(c.workers) }

func (c *crowd) at(i int) []uint64 { return c.cells[i*c.words : (i+1)*c.words] }

func (c *crowd) weighs(i int) uint64 { return uint64(len(c.workers[i])) }

// gather joins equal rows and sorts them by their distance from the pivot.
func (t *Table) gather() *crowd {
	workers := t.distinct()
	pivot := t.pivot(workers)
	type at struct {
		d       uint64
		workers []int32
	}
	order := make([]at, len(workers))
	for i, w := range workers {
		order[i] = at{distance(t.row(int(w[0])), pivot, 0), w}
	}
	slices.SortFunc(order, func(a, b at) int {
		return cmp.Or(cmp.Compare(b.d, a.d), cmp.Compare(a.workers[0], b.workers[0]))
	})
	n := len(order)
	c := &crowd{
		Table: t, cells: make([]uint64, 0, n*t.words), workers: workers, d: make([]uint64, n),
		rest: make([]uint64, n+1), weight: make([]uint64, n+1),
	}
	for i, o := range order {
		c.workers[i], c.d[i] = o.workers, o.d
		c.cells = append(c.cells, t.row(int(o.workers[0]))...)
	}
	for i := n - 1; i >= 0; i-- {
		c.weight[i] = c.weight[i+1] + c.weighs(i)
		c.rest[i] = c.rest[i+1] + c.weighs(i)*c.d[i]
	}
	return c
}

// distinct groups the workers by their row.
func (t *Table) distinct() [][]int32 {
	var groups [][]int32
	byHash := make(map[uint64][]int32, t.Workers()) // groups
next:
	for i := range t.Workers() {
		row := t.row(i)
		h := hash(row)
		for _, g := range byHash[h] {
			if slices.Equal(row, t.row(int(groups[g][0]))) {
				groups[g] = append(groups[g], int32(i))
				continue next
			}
		}
		byHash[h] = append(byHash[h], int32(len(groups)))
		groups = append(groups, []int32{int32(i)})
	}
	return groups
}

func hash(row []uint64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	h := uint64(odd)
	for _, w := range row {
		h = (h ^ w) * odd
		h ^= h >> 29
	}
	return h
}

// pivotSample is how many rows the pivot is the median of. The bounds hold for any
// pivot; one in the midst of the crowd makes them narrow.
const pivotSample = 511

// pivot returns the median of a sample of workers, window by window.
func (t *Table) pivot(groups [][]int32) []uint64 {
	n := t.Workers()
	sample := make([]int, 0, pivotSample)
	if n <= pivotSample {
		for _, g := range groups {
			for _, w := range g {
				sample = append(sample, int(w))
			}
		}
	} else {
		for i := range pivotSample {
			sample = append(sample, i*n/pivotSample)
		}
	}
	out := make([]uint64, t.words)
	if len(sample) == 0 {
		return out
	}
	column := make([]uint16, len(sample))
	for w := range t.windows {
		for i, s := range sample {
			column[i] = cell(t.row(s), w)
		}
		slices.Sort(column)
		out[w/perWord] |= uint64(column[len(column)/2]) << (w % perWord * cellBits)
	}
	return out
}

// Interval is where a score lies for certain.
type Interval struct{ Lower, Upper float64 }

// Mid is the middle of the interval, which is off by half its width at most.
func (i Interval) Mid() float64 { return (i.Lower + i.Upper) / 2 }

// Bounds returns where each worker's score lies, from the distances to one pivot: in
// time proportional to the cells of the table.
func (t *Table) Bounds() []Interval {
	c := t.gather()
	return c.bounds()
}

func (c *crowd) bounds() []Interval {
	out := make([]Interval, c.Workers())
	for i := range c.rows() {
		b := Interval{Lower: c.mean(c.lower(i)), Upper: c.mean(c.upper(i))}
		for _, w := range c.workers[i] {
			out[w] = b
		}
	}
	return out
}

// upper sums d(i)+d(B) over the workers B of other rows.
func (c *crowd) upper(i int) uint64 {
	return c.rest[0] + c.weight[0]*c.d[i] - 2*c.weighs(i)*c.d[i]
}

// lower sums |d(i)-d(B)| over all workers B: as d falls, those before lie above.
func (c *crowd) lower(i int) uint64 {
	before, sumBefore := c.weight[0]-c.weight[i], c.rest[0]-c.rest[i]
	return (sumBefore - before*c.d[i]) + (c.weight[i]*c.d[i] - c.rest[i])
}
