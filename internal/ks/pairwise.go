// SPDX-License-Identifier: Apache-2.0

package ks

import "fmt"

// Pairwise returns every worker's score from all pairs of workers: half the square
// of their number times the windows. It is what TopK is measured by.
func (t *Table) Pairwise() []float64 {
	sums := t.pairwise()
	out := make([]float64, len(sums))
	for i, s := range sums {
		out[i] = t.mean(s)
	}
	return out
}

func (t *Table) pairwise() []uint64 {
	sums := make([]uint64, t.Workers())
	for i := range sums {
		a := t.row(i)
		for k := range i {
			d := distance(a, t.row(k), 0)
			sums[i] += d
			sums[k] += d
		}
	}
	return sums
}

// Matrix returns the distances of all pairs, worker after worker. More than limit
// workers are refused: 16,384 have 268 million pairs.
func (t *Table) Matrix(limit int) ([]float32, error) {
	n := t.Workers()
	if n > limit {
		return nil, fmt.Errorf("compare all pairs: got %d workers; want at most %d", n, limit)
	}
	out := make([]float32, n*n)
	for i := range n {
		for k := range i {
			d := float32(t.Distance(i, k))
			out[i*n+k], out[k*n+i] = d, d
		}
	}
	return out, nil
}
