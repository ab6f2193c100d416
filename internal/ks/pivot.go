// SPDX-License-Identifier: Apache-2.0

package ks

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const (
	// pivotSample is how many workers pivots are chosen by. The bounds hold for any
	// pivot; one in the midst of those that are alike makes them narrow.
	pivotSample = 255
	// maxPivots bounds what all rows are compared with, and so how many clusters of
	// workers the bounds are narrow for.
	maxPivots = 4
	// rounds is how often the sample is shared out among pivots that move to its midst.
	rounds = 2
)

// pivots returns the medians of the clusters of a sample of workers. One more cluster
// counts where the pivots come nearer to the sample by two fifths.
func (t *Table) pivots() [][]uint64 {
	sample := t.sample()
	best := [][]uint64{t.median(sample)}
	_, far := share(sample, best)
	for far > 0 && len(best) < maxPivots {
		more, now := t.split(sample, best)
		if 5*now > 3*far {
			break
		}
		best, far = more, now
	}
	return best
}

// sample returns rows of workers spread evenly over the table.
func (t *Table) sample() [][]uint64 {
	n := t.Workers()
	out := make([][]uint64, min(n, pivotSample))
	for i := range out {
		out[i] = t.row(i * n / len(out))
	}
	return out
}

// split returns the pivots and one more, moved to the midst of what is nearest to each,
// and the sum of the distances from them.
func (t *Table) split(sample, pivots [][]uint64) ([][]uint64, uint64) {
	pivots = spread(sample, pivots, len(pivots)+1)
	t.settle(sample, pivots)
	_, far := share(sample, pivots)
	return pivots, far
}

// spread returns the pivots and more, n in all. A new one is a row that is farther away
// than nine tenths, so that few that stand out are no cluster.
func spread(sample, pivots [][]uint64, n int) [][]uint64 {
	pivots = slices.Clone(pivots)
	order := make([]int, len(sample))
	for len(pivots) < n {
		of, _ := share(sample, pivots)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(of[a].far) - int(of[b].far) })
		pivots = append(pivots, sample[stats.QuantileHigh(order, 0.9)])
	}
	return pivots
}

// settle moves pivots to the midst of what is nearest to each.
func (t *Table) settle(sample, pivots [][]uint64) {
	for range rounds {
		of, _ := share(sample, pivots)
		for p := range pivots {
			var near [][]uint64
			for i, row := range sample {
				if of[i].pivot == p {
					near = append(near, row)
				}
			}
			if len(near) > 0 {
				pivots[p] = t.median(near)
			}
		}
	}
}

type shared struct {
	pivot int
	far   uint64
}

// share returns the nearest pivot of each row, and the sum of the distances.
func share(sample, pivots [][]uint64) (of []shared, sum uint64) {
	of = make([]shared, len(sample))
	far := make([]uint64, len(pivots))
	for i, row := range sample {
		for p := range pivots {
			far[p] = distance(row, pivots[p], 0)
		}
		at := nearest(far)
		of[i] = shared{at, far[at]}
		sum += far[at]
	}
	return of, sum
}

// median returns the median of rows, window by window.
func (t *Table) median(rows [][]uint64) []uint64 {
	out := make([]uint64, t.words)
	if len(rows) == 0 {
		return out
	}
	column := make([]uint16, len(rows))
	for w := range t.windows {
		for i, row := range rows {
			column[i] = cell(row, w)
		}
		out[w/perWord] |= uint64(stats.SelectMedianHigh(column)) << (w % perWord * cellBits)
	}
	return out
}
