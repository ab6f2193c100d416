package ks

import (
	"cmp"
	"math"
	"slices"
)

// Score is the mean distance of a worker from all others.
type Score struct {
	Worker int
	Score  float64
}

// Effort says what TopK took.
type Effort struct {
	Rows      int   // that differ
	Scored    int   // computed to the end
	Abandoned int   // begun, and given up as too low
	Pairs     int64 // distances computed, those from the pivot too
	CutShort  bool  // more pairs were not allowed
}

// TopK returns the k workers of the highest score, the highest first and of equals
// the one of the lowest number first, exactly as Pairwise would have them.
func (t *Table) TopK(k int) ([]Score, Effort) {
	c := t.gather()
	return c.top(k, math.MaxInt64)
}

// Leaders returns what TopK does, and where each worker's score lies, but begins no
// further score once so many pairs were computed. Cut short, the leaders are the
// highest of those that were computed.
func (t *Table) Leaders(k int, pairs int64) ([]Score, []Interval, Effort) {
	c := t.gather()
	top, effort := c.top(k, pairs)
	return top, c.bounds(), effort
}

func (c *crowd) top(k int, pairs int64) ([]Score, Effort) {
	k = min(k, c.Workers())
	if k <= 0 {
		return nil, Effort{}
	}
	effort := Effort{Rows: c.rows(), Pairs: int64(c.rows())}
	best := leaders{k: k}
	for _, i := range c.byUpper() {
		if best.full() && c.upper(i) < best.least() {
			break
		}
		if effort.Pairs >= pairs {
			effort.CutShort = true
			break
		}
		sum, whole, pairs := c.score(i, &best)
		effort.Pairs += pairs
		if !whole {
			effort.Abandoned++
			continue
		}
		effort.Scored++
		for _, w := range c.workers[i] {
			best.add(leader{sum, w})
		}
	}
	out := make([]Score, len(best.list))
	for i, l := range best.list {
		out[i] = Score{Worker: int(l.worker), Score: c.mean(l.sum)}
	}
	return out, effort
}

// byUpper returns the rows, the highest upper bound first.
func (c *crowd) byUpper() []int {
	order := make([]int, c.rows())
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.upper(b), c.upper(a)) })
	return order
}

// stretch is how many pairs are computed between two looks at the bound.
const stretch = 64

// score sums the distances of a row from all workers; not whole where it was given up
// because it cannot be among the best any more. The rows farthest from the pivot come
// first: with them the triangle leaves most open.
func (c *crowd) score(i int, best *leaders) (sum uint64, whole bool, pairs int64) {
	a, own := c.at(i), c.d[i]
	for from := 0; from < c.rows(); from += stretch {
		rest := c.rest[from] + c.weight[from]*own
		if from <= i { // the row itself is no other
			rest -= 2 * c.weighs(i) * own
		}
		if best.full() && sum+rest < best.least() {
			return 0, false, pairs
		}
		to := min(from+stretch, c.rows())
		for b := from; b < to; b++ {
			floor := max(own, c.d[b]) - min(own, c.d[b])
			sum += c.weighs(b) * distance(a, c.at(b), floor)
		}
		pairs += int64(to - from)
	}
	return sum, true, pairs
}

// leaders are the best k workers so far, the best first.
type leaders struct {
	k    int
	list []leader
}

type leader struct {
	sum    uint64
	worker int32
}

func (l *leaders) full() bool { return len(l.list) == l.k }

func (l *leaders) least() uint64 { return l.list[len(l.list)-1].sum }

func (l *leaders) add(x leader) {
	at, _ := slices.BinarySearchFunc(l.list, x, func(a, b leader) int {
		return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.worker, b.worker))
	})
	if at == l.k {
		return
	}
	l.list = slices.Insert(l.list[:min(len(l.list), l.k-1)], at, x)
}
