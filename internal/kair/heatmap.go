// SPDX-License-Identifier: Apache-2.0

package kair

import "github.com/lockstep-otel/lockstep/internal/stats"

// Heatmap is how far the rhythm of ranks was from that of their peers in the latest
// step: ranks by windows. Where there are many ranks, neighbours of one role share a
// row, which shows the one of them that diverges most.
type Heatmap struct {
	Windows int       `json:"windows"`
	Rows    []HeatRow `json:"rows"` // by role, then by rank
	// LeftOut counts the ranks of roles for which there was no row.
	LeftOut int `json:"left_out"`
}

// HeatRow is one rank, or several of one role.
type HeatRow struct {
	Role  int   `json:"role"` // numbered from 0
	First int64 `json:"first_rank"`
	Last  int64 `json:"last_rank"`
	Ranks int   `json:"ranks"`
	Worst int64 `json:"worst_rank"`
	// Score is the divergence of the worst in this step.
	Score float64 `json:"score"`
	// Ahead is, for each window, by how much the worst was ahead of the median of its
	// role: a share of its operations, or a number; negative where it was behind.
	Ahead []float32 `json:"ahead"`
}

// Heatmap returns that of the latest step, in at most so many rows.
func (r *Rhythm) Heatmap(rows int) Heatmap {
	h := Heatmap{Windows: r.windows}
	ranks := 0
	for _, b := range r.latest {
		ranks += len(b.ranks)
	}
	fold := 1
	for fold < ranks && folded(r.latest, fold) > rows {
		fold *= 2
	}
	for role, b := range r.latest {
		median := b.median()
		for i := 0; i < len(b.ranks); i += fold {
			if len(h.Rows) >= rows {
				h.LeftOut += len(b.ranks) - i
				break
			}
			h.Rows = append(h.Rows, b.row(role, i, min(i+fold, len(b.ranks)), median))
		}
	}
	return h
}

// folded is how many rows so many ranks of each row make.
func folded(beats []beat, fold int) (n int) {
	for _, b := range beats {
		n += (len(b.ranks) + fold - 1) / fold
	}
	return n
}

func (b *beat) row(role, from, to int, median []float64) HeatRow {
	worst := from
	for i := from; i < to && b.scores != nil; i++ {
		if b.scores[i] > b.scores[worst] {
			worst = i
		}
	}
	row := HeatRow{
		Role: role, First: b.ranks[from], Last: b.ranks[to-1], Ranks: to - from,
		Worst: b.ranks[worst], Ahead: make([]float32, len(median)),
	}
	if b.scores != nil {
		row.Score = b.scores[worst]
	}
	for w, m := range median {
		row.Ahead[w] = float32(b.table.Share(worst, w) - m)
	}
	return row
}

// medianSample is how many workers of a large cohort a median is of.
const medianSample = 511

// median returns the median rhythm of the cohort.
func (b *beat) median() []float64 {
	out := make([]float64, b.table.Windows())
	n := b.table.Workers()
	column := make([]float64, min(n, medianSample))
	for w := range out {
		for i := range column {
			column[i] = b.table.Share(i*n/len(column), w)
		}
		out[w] = stats.SelectMedianHigh(column)
	}
	return out
}
