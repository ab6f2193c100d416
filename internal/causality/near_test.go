// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// allOf returns what pairs visits, from the definition: every receiver is held against every sender.
func (m *meeting) allOf() (out [][2]*side) {
	all := len(m.receivers.list) <= 8 && len(m.senders.list) <= 8
	for i := range m.receivers.list {
		for j := range m.senders.list {
			r, s := &m.receivers.list[i], &m.senders.list[j]
			if r.span.Clock.gone || s.span.Clock.gone {
				continue
			}
			if r.batch != m.touched && s.batch != m.touched || r.span.Ref == s.span.Ref {
				continue
			}
			d := r.span.Clock.index - s.span.Clock.index
			if all || bits.OnesCount(uint(max(d, -d))) <= 1 {
				out = append(out, [2]*side{s, r})
			}
		}
	}
	return out
}

// worstOf returns the last start and the first end of all sides.
func (m *meeting) worstOf() (first, second *side) {
	for i := range m.senders.list {
		if s := &m.senders.list[i]; !s.span.Clock.gone && (first == nil || s.span.Begin > first.span.Begin) {
			first = s
		}
	}
	for i := range m.receivers.list {
		if r := &m.receivers.list[i]; !r.span.Clock.gone && (second == nil || r.span.Until < second.span.Until) {
			second = r
		}
	}
	return first, second
}

// randomClocks have indices with gaps, as those of a job beside others.
func randomClocks(rng *rand.Rand, n int) []*Clock {
	out := make([]*Clock, n)
	index := rng.IntN(100)
	for i := range out {
		out[i] = &Clock{ID: fmt.Sprint(i), index: index}
		index += 1 + rng.IntN(1+rng.IntN(4))
	}
	rng.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// randomSpans come from some of the clocks, as members of one collective.
func randomSpans(rng *rand.Rand, clocks []*Clock, rank *int64) []Span {
	out := make([]Span, 1+rng.IntN(1+rng.IntN(2*len(clocks))))
	sends, receives := rng.IntN(8), rng.IntN(8)
	for i := range out {
		*rank++
		out[i] = Span{
			Ref: model.SpanRef{Span: spanID(uint64(*rank))}, Clock: clocks[rng.IntN(len(clocks))],
			Begin: base + rng.Int64N(50), Until: base + 100 + rng.Int64N(50), Epoch: rng.Int64N(30),
			Meet: &Meet{Rank: *rank, Sends: rng.IntN(8) <= sends, Receives: rng.IntN(8) <= receives},
		}
	}
	return out
}

func TestMeetings_RandomMembers_PairsAreThoseOfAllReceiversAndSenders(t *testing.T) {
	pairs, large := 0, 0
	for seed := range tier.N(t, 300, 3000) {
		rng := rand.New(rand.NewPCG(uint64(seed), 0))
		ms := newMeetings(1 << 20)
		clocks := randomClocks(rng, []int{3, 9, 20, 40, 300}[seed%5])
		rank := int64(0)
		for range 12 {
			ms.number++
			var m *meeting
			for i, s := range randomSpans(rng, clocks, &rank) {
				if touched := ms.add(&s, i); touched != nil {
					require.Nil(t, m, "one meeting")
					m = touched
				}
			}
			if rng.IntN(3) == 0 {
				clocks[rng.IntN(len(clocks))].gone = true
			}
			var got [][2]*side
			ms.pairs(m, func(first, second *side) { got = append(got, [2]*side{first, second}) })
			require.Equal(t, places(m, m.allOf()), places(m, got), "seed %d", seed)
			pairs += len(got)
			requireFresh(t, m)
			if m.few() {
				continue
			}
			large++
			first, second := m.worst()
			wantFirst, wantSecond := m.worstOf()
			require.True(t, first == wantFirst && second == wantSecond, "seed %d", seed)
		}
	}
	assert.Greater(t, pairs, 10_000)
	assert.Greater(t, large, 1000)
}

// places are the numbers of the clocks of pairs, which a person can compare.
func places(m *meeting, pairs [][2]*side) (out []string) {
	for _, p := range pairs {
		s, r := m.senders.of(p[0].span.Clock), m.receivers.of(p[1].span.Clock)
		out = append(out, fmt.Sprint(s, "<", r))
	}
	return out
}

// requireFresh holds the places of new sides against a look at all sides.
func requireFresh(t *testing.T, m *meeting) {
	t.Helper()
	for _, ss := range [...]*sides{&m.senders, &m.receivers} {
		seen := map[int]bool{}
		for i := range ss.fresh(m.touched) {
			require.False(t, seen[i], "each once")
			seen[i] = true
		}
		for i := range ss.list {
			require.Equal(t, ss.list[i].batch == m.touched, seen[i])
		}
	}
}

// In a collective of 2,048 nodes, a node bounds itself and those whose indices are a power of two apart. The
// others are not looked at.
func TestMeetings_LargeJob_OtherSidesAreNotLookedAt(t *testing.T) {
	const nodes = 2048
	ms := newMeetings(1 << 20)
	clocks := make([]Clock, nodes)
	var m *meeting
	rank := int64(0)
	add := func(node int) {
		ms.number++
		rank++
		clocks[node].index = node
		m = ms.add(&Span{
			Ref: model.SpanRef{Span: spanID(uint64(rank))}, Clock: &clocks[node], Begin: base + rank, Until: base + 1e9 + rank,
			Meet: &Meet{Rank: rank, Sends: true, Receives: true},
		}, 0)
	}
	for node := range nodes {
		add(node)
	}
	m.senders.list[1000], m.receivers.list[1000] = side{}, side{} // without a clock: a look at it panics
	add(0)                                                        // it starts later than before, and its first end stays
	found := 0
	ms.pairs(m, func(_, _ *side) { found++ })
	assert.Equal(t, 12, found, "nodes 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 and 1024")
}
