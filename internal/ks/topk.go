// SPDX-License-Identifier: Apache-2.0

package ks

import (
	"cmp"
	"math"
	"slices"
	"sort"
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
	Pairs     int64 // distances computed, those from pivots too
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
	within := c.bounds() // by the pivots that Bounds has
	top, effort := c.top(k, pairs)
	return top, within, effort
}

func (c *crowd) top(k int, pairs int64) ([]Score, Effort) {
	k = min(k, c.Workers())
	if k <= 0 {
		return nil, Effort{}
	}
	effort := Effort{Rows: c.rows(), Pairs: int64(c.rows() * len(c.pivots))}
	best := leaders{k: k}
	open := make([]candidate, c.rows())
	for i := range open {
		open[i] = candidate{i, c.upper(i, 0)}
	}
	byUpper(open)
	tried := 0 // since there are k
	for len(open) > 0 {
		if best.full() && open[0].below(best.least()) {
			break
		}
		if effort.Pairs >= pairs {
			effort.CutShort = true
			break
		}
		if best.full() {
			tried++
		}
		if tried == seed {
			var pairs int64
			open, pairs = c.narrow(open, best.least())
			effort.Pairs += pairs
			continue
		}
		sum, whole, pairs := c.score(open[0].row, &best)
		effort.Pairs += pairs
		if whole {
			effort.Scored++
			for _, w := range c.workers[open[0].row] {
				best.add(leader{sum, w})
			}
		} else {
			effort.Abandoned++
		}
		open = open[1:]
	}
	out := make([]Score, len(best.list))
	for i, l := range best.list {
		out[i] = Score{Worker: int(l.worker), Score: c.mean(l.sum)}
	}
	return out, effort
}

// candidate is a row whose score may be among the best, and what it cannot exceed.
type candidate struct {
	row   int
	upper uint64
}

// below reports whether the row cannot reach least: one that ties may come first by number.
func (o candidate) below(least uint64) bool { return o.upper < least }

// byUpper sorts candidates, the highest bound first.
func byUpper(c []candidate) {
	slices.SortFunc(c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.upper, a.upper), cmp.Compare(a.row, b.row))
	})
}

const (
	// seed is how many rows are tried after the first k before candidates are narrowed,
	// which needs to know about how high the k-th score is.
	seed = 16
	// few is how many candidates are scored without a look at spans, which costs as much.
	few = 64
)

// narrow returns the candidates whose score may reach least by closer bounds, and how many
// pairs it computed for these.
func (c *crowd) narrow(open []candidate, least uint64) ([]candidate, int64) {
	open = reaching(open, least)
	if len(open) <= few || least == 0 {
		return open, 0
	}
	more, pairs := c.refine(rowsOf(open))
	if more {
		open = lowered(open, least, func(i int) uint64 { return c.upper(open[i].row, 0) })
	}
	if len(open) > few {
		upper := c.tighten(rowsOf(open), least, few)
		open = lowered(open, least, func(i int) uint64 { return upper[i] })
	}
	return open, pairs
}

// lowered returns the candidates that may reach least by other bounds as well.
func lowered(open []candidate, least uint64, upper func(i int) uint64) []candidate {
	for i := range open {
		open[i].upper = min(open[i].upper, upper(i))
	}
	byUpper(open)
	return reaching(open, least)
}

func rowsOf(open []candidate) []int {
	out := make([]int, len(open))
	for i, o := range open {
		out[i] = o.row
	}
	return out
}

// reaching returns those of sorted candidates that may reach least.
func reaching(open []candidate, least uint64) []candidate {
	return open[:sort.Search(len(open), func(i int) bool { return open[i].below(least) })]
}

// stretch is how many pairs are computed between two looks at the bound.
const stretch = 64

// score sums the distances of a row from all workers; not whole where it was given up
// because it cannot be among the best any more. The rows farthest from the pivot come
// first: with them the triangle leaves most open.
func (c *crowd) score(i int, best *leaders) (sum uint64, whole bool, pairs int64) {
	a, far, peaks := c.at(i), c.from(i), c.peaks(i)
	for from := 0; from < c.rows(); from += stretch {
		if best.full() && sum+c.upper(i, from) < best.least() {
			return 0, false, pairs
		}
		to := min(from+stretch, c.rows())
		for k := from; k < to; k++ {
			p, own, b := c.of[k], c.own[k], c.at(k)
			floor := max(far[p], own) - min(far[p], own)
			floor = max(floor, largest(a[peaks[p]], b[peaks[p]]))
			sum += c.weighs[k] * distance(a, b, floor)
		}
		pairs += int64(to - from)
	}
	return sum, true, pairs
}

// peaks returns, by pivot, in which word the row is farthest from it: there it is far from
// most that are near the pivot, and little is left for other words to add.
func (c *crowd) peaks(i int) []int {
	a, out := c.at(i), make([]int, len(c.pivots))
	for p, pivot := range c.pivots {
		most := uint64(0)
		for w := range a {
			if d := largest(a[w], pivot[w]); d > most {
				most, out[p] = d, w
			}
		}
	}
	return out
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
