// SPDX-License-Identifier: Apache-2.0

package ks

import (
	"math"
	"math/bits"
	"math/rand/v2"
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
	far, order := make([]uint64, 0, n*m), make([]uint64, n)
	for i, w := range workers {
		row := t.row(int(w[0]))
		for _, p := range pivots {
			far = append(far, distance(row, p, 0))
		}
		own := far[i*m+nearest(far[i*m:])]
		order[i] = (Full-own)<<32 | uint64(i)
	}
	slices.Sort(order)
	c := &crowd{Table: t, cells: make([]uint64, 0, n*t.words), workers: make([][]int32, n), weighs: make([]uint64, n)}
	c.pivots, c.far, c.of, c.own = pivots, make([]uint64, 0, n*m), make([]uint8, n), make([]uint64, n)
	for i, o := range order {
		row := int(o & math.MaxUint32)
		c.workers[i] = workers[row]
		c.weighs[i] = uint64(len(c.workers[i]))
		c.cells = append(c.cells, t.row(int(c.workers[i][0]))...)
		c.far = append(c.far, far[row*m:(row+1)*m]...)
		at := nearest(c.from(i))
		c.of[i], c.own[i] = uint8(at), c.from(i)[at]
	}
	c.add()
	return c
}

// add sums what upper needs of the rows from each on.
func (c *crowd) add() {
	n := c.rows()
	c.rest, c.weight = make([]uint64, n+1), make([]uint64, (n+1)*len(c.pivots))
	for i := n - 1; i >= 0; i-- {
		copy(c.weights(i), c.weights(i+1))
		c.weights(i)[c.of[i]] += c.weighs[i]
		c.rest[i] = c.rest[i+1] + c.weighs[i]*c.own[i]
	}
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
	n := t.Workers()
	slots := make([]int32, 1<<bits.Len(uint(2*n))) // the first worker of a row, and one
	mask := uint64(len(slots) - 1)
	first, size := make([]int32, n), make([]int32, n)
	groups := 0
	for i := range n {
		row := t.row(i)
		at := hash(row) & mask
		for slots[at] != 0 && !slices.Equal(row, t.row(int(slots[at]-1))) {
			at = (at + 1) & mask
		}
		if slots[at] == 0 {
			slots[at] = int32(i) + 1
			groups++
		}
		first[i] = slots[at] - 1
		size[first[i]]++
	}
	// All groups lie in one list, each with room for its own workers.
	list, out := make([]int32, n), make([][]int32, 0, groups)
	group := make([]int32, n) // by first worker
	for i, f := range first {
		if int(f) == i {
			group[i] = int32(len(out))
			out = append(out, list[:0:size[i]])
			list = list[size[i]:]
		}
		out[group[f]] = append(out[group[f]], int32(i))
	}
	return out
}

// chosen keeps who sends rows from choosing hashes that fall on one another.
var chosen = rand.Uint64() //nolint:gosec // who guesses it makes a search slow, no more

func hash(row []uint64) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 by the golden ratio
	h := chosen
	for _, w := range row {
		h = (h ^ w) * odd
		h ^= h >> 29
	}
	return h
}
