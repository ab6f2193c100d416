// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// world builds a step of n ranks; each meeting's arrivals are given in order.
type world struct{ straggler.StepReport }

func newWorld(ranks int) *world {
	w := &world{straggler.StepReport{Incarnation: "inc", Step: 1}}
	trace := model.StepTraceID("inc", 1)
	for r := range int64(ranks) {
		w.Ranks = append(w.Ranks, straggler.RankStep{
			Rank: model.Rank{Rank: r},
			Span: model.SpanRef{Trace: trace, Span: model.StepSpanID(trace, r)},
		})
	}
	return w
}

// arrival of a rank, ns.
type arrival struct{ rank, at int64 }

// meet adds a collective that ends 10 ns after its last arrival.
func (w *world) meet(seq int64, arrivals ...arrival) {
	last := arrivals[len(arrivals)-1].at
	m := straggler.Meeting{Attributed: true, Size: len(arrivals), LastRank: arrivals[len(arrivals)-1].rank}
	for _, a := range arrivals {
		m.Members = append(m.Members, straggler.Member{
			Rank: a.rank, Span: w.span(a.rank, seq), Enter: a.at, Exit: last + 10, Wait: time.Duration(last - a.at),
		})
		w.Ranks[a.rank].Ops++
	}
	w.Ranks[arrivals[len(arrivals)-1].rank].WaitCaused += m.WaitCaused()
	w.Meetings = append(w.Meetings, m)
}

func (w *world) span(rank, seq int64) model.SpanRef {
	trace := model.StepTraceID("inc", 1)
	return model.SpanRef{Trace: trace, Span: model.OpSpanID(trace, rank, 1, "all_reduce", seq)}
}

func TestBlamePath(t *testing.T) {
	w := newWorld(3)
	w.meet(0, arrival{1, 5}, arrival{0, 100})                   // 0 is late
	w.meet(1, arrival{2, 50}, arrival{1, 60})                   // off the path
	w.meet(2, arrival{2, 80}, arrival{1, 115}, arrival{0, 200}) // 0 again, after 0
	var seqs []model.SpanRef
	for _, m := range blamePath(&w.StepReport) {
		seqs = append(seqs, lastOf(m).Span)
	}
	assert.Equal(t, []model.SpanRef{w.span(0, 2), w.span(0, 0)}, seqs)
}

// Stamps that contradict each other must not make the walk go in circles.
func TestBlamePathEnds(t *testing.T) {
	w := newWorld(2)
	w.meet(0, arrival{0, 100}, arrival{1, 100})
	w.meet(1, arrival{1, 100}, arrival{0, 100})
	for i := range w.Meetings {
		for j := range w.Meetings[i].Members {
			w.Meetings[i].Members[j].Exit = 0
		}
	}
	assert.Len(t, blamePath(&w.StepReport), 1)
	assert.Empty(t, blamePath(&straggler.StepReport{}))
}

func TestSelect_ManyVictims_FiveAreShown(t *testing.T) {
	w := newWorld(40)
	var arrivals []arrival
	for r := range int64(40) {
		arrivals = append(arrivals, arrival{r, 10 * r})
	}
	w.meet(0, arrivals...)
	s := Select(&w.StepReport, nil, nil, 1000)
	assert.Contains(t, s.Spans, w.span(39, 0))
	var victims int
	for r := range int64(39) {
		if _, ok := s.Spans[w.span(r, 0)]; ok {
			victims++
			assert.Less(t, r, int64(5), "who came first waited longest")
		}
	}
	assert.Equal(t, 5, victims)
	assert.Len(t, s.Spans, 40+6)
	assert.Equal(t, int64(34), s.Omitted)
}

func TestSelect_Limit_KeepsWhatMattersMost(t *testing.T) {
	w := newWorld(100)
	for seq := range int64(50) {
		w.meet(seq, arrival{2 * seq, 1000*seq + 1}, arrival{2*seq + 1, 1000*seq + 10 + seq})
	}
	found := model.Finding{Rank: model.Some(int64(3)), Links: []model.SpanRef{w.span(3, 1)}}
	for _, limit := range []int{1, 7, 20, 100, 1000} {
		s := Select(&w.StepReport, []model.Finding{found}, nil, limit)
		assert.LessOrEqual(t, len(s.Spans), limit)
		assert.Equal(t, int64(200-len(s.Spans)), s.Omitted)
		assert.Contains(t, s.Spans, w.Ranks[3].Span, "limit %d: the rank of the finding comes first", limit)
		if limit >= 7 {
			assert.Contains(t, s.Spans, w.span(3, 1), "then its evidence")
			assert.Contains(t, s.Spans, w.span(99, 49), "then the blame path")
		}
		for r := range int64(100) {
			if _, ok := s.Spans[w.span(r, r/2)]; ok {
				assert.Contains(t, s.Spans, w.Ranks[r].Span, "no span without its parent")
			}
		}
	}
}

// In a broadcast all wait for the root, whoever comes after it.
func TestBlameFollowsTheRoot(t *testing.T) {
	w := newWorld(3)
	w.meet(0, arrival{0, 100}, arrival{1, 110})
	w.meet(1, arrival{0, 150}, arrival{2, 200}, arrival{1, 210})
	w.Meetings[1].LastRank = 2
	path := blamePath(&w.StepReport)
	assert.Len(t, path, 1, "rank 2 was in no meeting before")
	assert.Equal(t, int64(2), lastOf(path[0]).Rank)
}

func TestSelect_Context_OfBlamedRanksOnly(t *testing.T) {
	w := newWorld(3)
	w.meet(0, arrival{0, 10}, arrival{2, 15}, arrival{1, 20})
	long := func(rank int64) model.SpanRef { return w.span(rank, 99) }
	context := map[int64][]model.SpanRef{0: {long(0)}, 1: {long(1)}, 2: {long(2)}}
	s := Select(&w.StepReport, []model.Finding{{Rank: model.Some(int64(2))}}, context, 100)
	assert.Contains(t, s.Spans, long(1), "on the blame path")
	assert.Contains(t, s.Spans, long(2), "found")
	assert.NotContains(t, s.Spans, long(0), "a victim")
}

// A path over all operations takes the place of one over meetings, and its operations
// are selected.
func TestSelect_StepWithPath_FollowsIt(t *testing.T) {
	w := newWorld(3)
	w.meet(0, arrival{1, 5}, arrival{0, 100})
	w.meet(1, arrival{1, 115}, arrival{0, 200})
	kernel := w.span(1, 7)
	w.Path = []straggler.PathSegment{{Rank: 0, Start: 110, End: 200}, {Rank: 1, Span: kernel, Start: 0, End: 100}}
	w.PathMeetings = []int{0, 12}
	path := blamePath(&w.StepReport)
	require.Len(t, path, 1, "a place that is not there is left out")
	assert.Same(t, &w.Meetings[0], path[0])
	s := Select(&w.StepReport, nil, nil, 100)
	assert.Contains(t, s.Spans, kernel)
	assert.Contains(t, s.Spans, w.Ranks[1].Span)
	assert.LessOrEqual(t, len(Select(&w.StepReport, nil, nil, 3).Spans), 3)
}
