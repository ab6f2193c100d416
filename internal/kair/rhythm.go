// SPDX-License-Identifier: Apache-2.0

package kair

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/ks"
)

// Grid cuts a step into windows.
type Grid struct {
	Windows int
	from    int64
	per     float64 // windows per ns
}

// NewGrid returns a grid over the time between two instants, ns.
func NewGrid(windows int, from, to int64) Grid {
	g := Grid{Windows: max(1, windows), from: from}
	if to > from {
		length := to - from
		if length < 0 { // beyond what 64 bits hold
			length = math.MaxInt64
		}
		g.per = float64(g.Windows) / float64(length)
	}
	return g
}

// Window returns the window of an instant; what lies outside counts in the first or
// the last. An instant between two windows belongs to the earlier, so that what ends
// with the step ends in its last window.
func (g *Grid) Window(at int64) int {
	if at <= g.from {
		return 0
	}
	past := at - g.from - 1
	if past < 0 {
		return g.Windows - 1
	}
	return int(min(float64(past)*g.per, float64(g.Windows-1)))
}

// Cohort are the counts of workers that are compared in one step: windows of each
// worker, worker after worker.
type Cohort struct {
	Role   uint64
	Ranks  []int64
	Counts []uint32
}

// Rhythm keeps the divergence of ranks over the recent steps, and the rhythms of the
// latest.
type Rhythm struct {
	windows int
	raw     bool
	span    int
	steps   int // of the span that is being filled
	scores  [2]map[int64]tally
	latest  []beat
}

// tally sums the scores of a rank.
type tally struct {
	sum float64
	n   int
}

// beat is a cohort of the latest step.
type beat struct {
	role   uint64
	ranks  []int64
	table  *ks.Table
	scores []float64
}

// NewRhythm returns an empty rhythm; raw compares numbers instead of shares.
func NewRhythm(windows, span int, raw bool) *Rhythm {
	return &Rhythm{windows: max(1, windows), raw: raw, span: max(1, span), scores: [2]map[int64]tally{{}, {}}}
}

// Hear takes a step, and keeps nothing of what it is given. A rank that is alone in its
// cohort has no score.
func (r *Rhythm) Hear(cohorts []Cohort) {
	if r.steps == r.span {
		r.scores[1], r.scores[0], r.steps = r.scores[0], make(map[int64]tally, len(r.scores[0])), 0
	}
	r.steps++
	r.latest = r.latest[:0]
	for _, c := range cohorts {
		b := beat{role: c.Role, ranks: slices.Clone(c.Ranks)}
		if r.raw {
			b.table = ks.Counted(c.Counts, r.windows)
		} else {
			b.table = ks.Normalised(c.Counts, r.windows)
		}
		if len(c.Ranks) > 1 {
			b.scores = scores(b.table)
			for i, rank := range c.Ranks {
				t := r.scores[0][rank]
				r.scores[0][rank] = tally{t.sum + b.scores[i], t.n + 1}
			}
		}
		r.latest = append(r.latest, b)
	}
}

// exactly is the number of workers up to which all pairs are computed: more would
// cost as much as everything else that is done for a step.
const exactly = 64

// Of a larger cohort the highest scores are exact, as far as pairs of so many workers
// with all others show which these are.
const (
	surely  = 8
	against = 64
)

// scores returns the score of each worker. In a large cohort all but the highest are
// the middle of where they can lie, and not above these.
func scores(t *ks.Table) []float64 {
	if t.Workers() <= exactly {
		return t.Pairwise()
	}
	top, within, _ := t.Leaders(surely, against*int64(t.Workers()))
	out := make([]float64, len(within))
	least := top[len(top)-1].Score
	for i, b := range within {
		out[i] = min(b.Mid(), least)
	}
	for _, s := range top {
		out[s.Worker] = s.Score
	}
	return out
}

// Score is a rank's divergence from its cohort, mean over the recent steps in which it
// was seen.
type Score struct {
	Rank  int64
	Score float64
	Steps int
}

// Score returns the recent divergence of a rank; false where it has none.
func (r *Rhythm) Score(rank int64) (score float64, ok bool) {
	now, old := r.scores[0][rank], r.scores[1][rank]
	if now.n+old.n == 0 {
		return 0, false
	}
	return (now.sum + old.sum) / float64(now.n+old.n), true
}

// Scores returns the recent divergence of all ranks, the highest first.
func (r *Rhythm) Scores() []Score {
	out := make([]Score, 0, len(r.scores[0]))
	for rank, t := range r.scores[0] {
		old := r.scores[1][rank]
		out = append(out, Score{rank, (t.sum + old.sum) / float64(t.n+old.n), t.n + old.n})
	}
	for rank, t := range r.scores[1] {
		if _, seen := r.scores[0][rank]; !seen {
			out = append(out, Score{rank, t.sum / float64(t.n), t.n})
		}
	}
	slices.SortFunc(out, func(a, b Score) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Rank, b.Rank))
	})
	return out
}
