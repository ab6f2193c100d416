package ks

import (
	"cmp"
	"slices"
)

// crowd is a table without repetitions: the rows that differ, each with the workers that
// have it and its distances from a few pivots. The rows farthest from their pivot come
// first.
type crowd struct {
	*Table
	cells   []uint64
	workers [][]int32 // by row, in order
	pivots  [][]uint64
	of      []uint8  // the pivot nearest to a row
	own     []uint64 // the distance from it
	weighs  []uint64 // how many workers have a row
	far     []uint64 // distances from all pivots, row after row
	rest    []uint64 // rest[i] sums weight times distance from their pivot over rows i and after
	weight  []uint64 // weight of rows i and after by pivot, row after row

	outlines  []uint64 // of the rows, where they are made
	stretches []uint64 // reused by score
}

func (c *crowd) rows() int { return len(c.workers) }

func (c *crowd) at(i int) []uint64 { return c.cells[i*c.words : (i+1)*c.words] }

// from returns the distances of a row from all pivots.
func (c *crowd) from(i int) []uint64 { return c.far[i*len(c.pivots) : (i+1)*len(c.pivots)] }

// weights returns, by pivot, how many workers have a row from i on.
func (c *crowd) weights(i int) []uint64 { return c.weight[i*len(c.pivots) : (i+1)*len(c.pivots)] }

// gather joins equal rows and sorts them by their distance from the nearest pivot.
func (t *Table) gather() *crowd {
	workers := t.distinct()
	pivots := t.pivots()
	n, m := len(workers), len(pivots)
	type place struct {
		own uint64
		row int32
		of  uint8
	}
	far, order := make([]uint64, 0, n*m), make([]place, n)
	for i, w := range workers {
		row := t.row(int(w[0]))
		for _, p := range pivots {
			far = append(far, distance(row, p, 0))
		}
		of := nearest(far[i*m:])
		order[i] = place{far[i*m+of], int32(i), uint8(of)}
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.own, a.own), cmp.Compare(a.row, b.row))
	})
	c := &crowd{
		Table: t, cells: make([]uint64, 0, n*t.words), workers: make([][]int32, n), pivots: pivots,
		of: make([]uint8, n), own: make([]uint64, n), weighs: make([]uint64, n), far: make([]uint64, 0, n*m), rest: make([]uint64, n+1), weight: make([]uint64, (n+1)*m),
	}
	for i, o := range order {
		c.workers[i], c.of[i], c.own[i] = workers[o.row], o.of, o.own
		c.weighs[i] = uint64(len(c.workers[i]))
		c.far = append(c.far, far[int(o.row)*m:(int(o.row)+1)*m]...)
		c.cells = append(c.cells, t.row(int(c.workers[i][0]))...)
	}
	for i := n - 1; i >= 0; i-- {
		copy(c.weights(i), c.weights(i+1))
		c.weights(i)[c.of[i]] += c.weighs[i]
		c.rest[i] = c.rest[i+1] + c.weighs[i]*c.own[i]
	}
	return c
}

// nearest returns where the least of the distances is, the first of equals.
func nearest(far []uint64) int {
	at := 0
	for i, d := range far {
		if d < far[at] {
			at = i
		}
	}
	return at
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
