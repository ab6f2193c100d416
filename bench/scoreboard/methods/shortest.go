// SPDX-License-Identifier: Apache-2.0

package methods

import (
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// shortestCollective is the vote of msprof-analyze's slow_rank (Huawei Ascend, Mulan
// PSL v2), from its description: in each collective whose shortest communication time
// is an outlier among its members', it votes for that member, since who comes last does
// not wait. Up to 100 members the test is Dixon's, one-sided at 99.5 %; above, more
// than three standard deviations below the mean. It knows no class.
//
// The published tool prints all votes, and leaves to its reader who is meant. Here the
// rank with the most is named once it has 3 votes and more than half of all, which
// favours it on healthy jobs; the others are suspects.
type shortestCollective struct {
	votes    []float64
	total    float64
	meetings map[model.RendezvousKey]*meeting
	free     []*meeting
	ranks    []model.Rank
}

type meeting struct {
	ranks []int
	took  []float64
}

// Constants of the published tool, but for the last two, which are ours.
const (
	dixonMost    = 100
	dixonTail    = 0.005
	lowSigmas    = 3
	minVotes     = 3
	minVoteShare = 0.5
)

func newShortestCollective() Method {
	return &shortestCollective{meetings: map[model.RendezvousKey]*meeting{}}
}

func (m *shortestCollective) Begin(ranks []model.Rank) {
	m.ranks, m.votes = ranks, make([]float64, len(ranks))
}

func (m *shortestCollective) Add(rank int, ops []model.Op) {
	for i := range ops {
		o := &ops[i]
		if o.Kind != model.KindCollective || o.EndInferred {
			continue
		}
		key, ok := model.Rendezvous(&m.ranks[rank], o)
		if !ok {
			continue
		}
		at := m.meetings[key]
		if at == nil {
			at = m.fresh()
			m.meetings[key] = at
		}
		at.ranks, at.took = append(at.ranks, rank), append(at.took, seconds(o))
	}
}

func (m *shortestCollective) fresh() *meeting {
	if n := len(m.free); n > 0 {
		at := m.free[n-1]
		m.free = m.free[:n-1]
		return at
	}
	return &meeting{}
}

func (m *shortestCollective) Close(int64) {
	for _, at := range m.meetings {
		if i := lowOutlier(at.took); i >= 0 {
			m.votes[at.ranks[i]]++
			m.total++
		}
		at.ranks, at.took = at.ranks[:0], at.took[:0]
		m.free = append(m.free, at)
	}
	clear(m.meetings)
}

// lowOutlier returns the index of the smallest value where it is an outlier, else -1.
func lowOutlier(values []float64) int {
	n := len(values)
	if n < 3 {
		return -1
	}
	lowest := slices.Index(values, slices.Min(values))
	if n > dixonMost {
		if values[lowest] < mean(values)-lowSigmas*deviation(values) {
			return lowest
		}
		return -1
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	if dixon(sorted) > dixonLimit(n) {
		return lowest
	}
	return -1
}

func (m *shortestCollective) Named() []Accusation {
	return slices.DeleteFunc(m.End(), func(a Accusation) bool { return !a.Decided })
}

func (m *shortestCollective) End() (out []Accusation) {
	for _, r := range strongest(m.votes, maxSuspects) {
		v := m.votes[r]
		out = append(out, rankAccusation(r, v, v >= minVotes && v > minVoteShare*m.total))
	}
	return out
}
