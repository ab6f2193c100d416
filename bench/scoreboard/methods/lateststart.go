// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// latestStart is the vote of Holistic Trace Analysis' get_potential_stragglers (Meta,
// MIT, v0.6.0), from its description:
//
//   - of communication kernels, per stream and name, the last of each rank and iteration;
//   - names that take less than 1 % of the mean iteration are left out;
//   - of the rest that (stream, name) whose durations differ most over the ranks, by the
//     standard deviation, averaged over the iterations;
//   - in each iteration it votes for the ranks that started it latest.
//
// Its prefix "ncclKernel" fits no kernel of today's NCCL; here all communication counts.
// It has no threshold and needs one clock. It names its num_candidates (2) ranks on
// every job: here the first is what it accuses, and the second a suspect, which favours it.
type latestStart struct {
	ranks int
	tally map[laneName]*startTally
	steps []float64 // durations of the present step, by rank seen
}

type laneName struct {
	stream int64
	name   string
}

// startTally is one (stream, name).
type startTally struct {
	votes      []float64 // by rank
	spread     float64   // standard deviations, summed over iterations
	iterations int
	// Of the present step, by rank; seen holds the ranks.
	start       []int64
	took, total []float64 // s: the last, and all
	seen        []int
}

// Constants of the published tool.
const (
	minCommShare  = 0.01
	numCandidates = 2
)

// forLatest decides between ranks of equally many votes: who was the very last more often.
const forLatest = 1e-6

// maxNames bounds the distinct names that a baseline keeps.
const maxNames = 4096

func newLatestStart() Method { return &latestStart{tally: map[laneName]*startTally{}} }

func (m *latestStart) Begin(ranks []model.Rank) { m.ranks = len(ranks) }

func (m *latestStart) Add(rank int, ops []model.Op) {
	for i := range ops {
		o := &ops[i]
		switch {
		case o.Kind == model.KindStep:
			m.steps = append(m.steps, seconds(o))
		case o.Kind.IsComm():
			if t := m.of(laneName{o.Lane(), o.Name}); t != nil {
				t.add(rank, o)
			}
		}
	}
}

func (m *latestStart) of(key laneName) *startTally {
	t := m.tally[key]
	if t == nil && len(m.tally) < maxNames {
		t = &startTally{
			votes: make([]float64, m.ranks), start: make([]int64, m.ranks),
			took: make([]float64, m.ranks), total: make([]float64, m.ranks),
		}
		m.tally[key] = t
	}
	return t
}

func (t *startTally) add(rank int, o *model.Op) {
	if t.total[rank] == 0 && !slices.Contains(t.seen[max(0, len(t.seen)-1):], rank) {
		t.seen = append(t.seen, rank)
		t.start[rank] = math.MinInt64
	}
	t.total[rank] += seconds(o)
	if o.Start >= t.start[rank] {
		t.start[rank], t.took[rank] = o.Start, seconds(o)
	}
}

func (m *latestStart) Close(int64) {
	iteration := mean(m.steps)
	m.steps = m.steps[:0]
	for _, t := range m.tally {
		t.vote(iteration)
	}
}

// vote counts the present step and forgets it.
func (t *startTally) vote(iteration float64) {
	var took []float64
	var total float64
	for _, r := range t.seen {
		took = append(took, t.took[r])
		total += t.total[r]
	}
	if n := len(t.seen); n >= 2 && total/float64(n) >= minCommShare*iteration {
		t.spread += deviation(took)
		t.iterations++
		slices.SortStableFunc(t.seen, func(a, b int) int {
			switch {
			case t.start[a] > t.start[b]:
				return -1
			case t.start[a] < t.start[b]:
				return 1
			}
			return a - b
		})
		for _, r := range t.seen[:min(numCandidates, n)] {
			t.votes[r]++
		}
		t.votes[t.seen[0]] += forLatest
	}
	for _, r := range t.seen {
		t.total[r] = 0
	}
	t.seen = t.seen[:0]
}

// widest returns the tally whose durations differ most, nil where there is none.
func (m *latestStart) widest() *startTally {
	var best *startTally
	var key laneName
	for k, t := range m.tally {
		switch {
		case t.iterations == 0:
		case best == nil, t.mean() > best.mean(), t.mean() == best.mean() && (k.name < key.name || k.name == key.name && k.stream < key.stream):
			best, key = t, k
		}
	}
	return best
}

func (t *startTally) mean() float64 { return t.spread / float64(t.iterations) }

func (m *latestStart) Named() []Accusation {
	all := m.End()
	return all[:min(1, len(all))]
}

func (m *latestStart) End() (out []Accusation) {
	t := m.widest()
	if t == nil {
		return nil
	}
	for i, r := range strongest(t.votes, numCandidates) {
		out = append(out, rankAccusation(r, t.votes[r], i == 0))
	}
	return out
}
