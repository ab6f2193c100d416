// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// floods are spans. Each span makes the engine keep something new that is as large as possible.
var floods = map[string]func(e *Engine, n int64) Span{
	"communicators": func(e *Engine, n int64) Span {
		return floodSpan(e, n, func(_ *model.Rank, op *model.Op) {
			op.Comm.ID, op.Comm.Digest, op.Collective.Name = novel(n), novel(-n), model.AllReduce
		})
	},
	"ranks of high numbers": func(e *Engine, n int64) Span {
		return floodSpan(e, n, func(r *model.Rank, op *model.Op) { r.Rank, op.Collective.Seq = maxRank-1-n%8, model.Some(n/8) })
	},
	"many ranks of high numbers": func(e *Engine, n int64) Span {
		return floodSpan(e, n, func(r *model.Rank, op *model.Op) { r.Rank, op.Collective.Seq = maxRank-1-n%80, model.Some(n/80) })
	},
	"jobs": func(e *Engine, n int64) Span {
		s := floodSpan(e, n, func(r *model.Rank, _ *model.Op) { r.JobID, r.Incarnation = novel(n), novel(n) })
		s.Job = e.Job(strings.Repeat("x", 4000) + fmt.Sprint(n))
		return s
	},
}

func novel(n int64) string {
	return fmt.Sprint(n, strings.Repeat("x", cut.MaxName))[:cut.MaxName]
}

func floodSpan(e *Engine, n int64, change func(*model.Rank, *model.Op)) Span {
	r, op := member(model.KindCollective, model.AllReduce, 0, 0)
	change(r, op)
	return Span{
		Ref: model.SpanRef{Trace: traceID(uint64(n)), Span: spanID(uint64(n))}, Is: Operation, Meet: MeetOf(r, op),
		Clock: e.Clock(fmt.Sprint("clock", n%4)), Job: e.Job("flood"), Begin: base, Until: base + 1,
	}
}

// The engine bounds, in bytes, the names of collectives and the ranks in them. It still finds the calls
// of other jobs.
func TestEngine_Flood_IsBoundedAndLeavesOthersAlone(t *testing.T) {
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig()
			cfg.MaxSpans = 1024
			e := New(cfg, &fakeClocks{})
			relations, most := e.Stats().Relations, int64(0)
			for n := range int64(64) {
				b := &Batch{}
				for i := range int64(64) {
					b.Spans = append(b.Spans, flood(e, n*64+i))
				}
				e.Run(b)
				require.LessOrEqual(t, e.meetings.bytes, int64(cfg.MaxSpans)*perSide)
				most = max(most, e.meetings.bytes)
				id := uint64(1<<40 + 2*n)
				run(e, span(e, id, id, 0, "a", 0))
				run(e, span(e, id, id+1, id, "b", 1e5))
				require.Greater(t, e.Stats().Relations, relations, "a call in two batches")
				relations = e.Stats().Relations
			}
			total := int64(0)
			for _, m := range e.meetings.order {
				total += m.size()
			}
			assert.Equal(t, total, e.meetings.bytes, "nothing is counted twice, or not at all")
			for name := range e.jobs.byName {
				assert.LessOrEqual(t, len(name), cut.MaxLabel)
			}
		})
	}
}

// The estimate is no less than half of what the heap shows, and the heap does not grow.
func TestEngine_Flood_HeapStaysFlat(t *testing.T) {
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig()
			cfg.MaxSpans = 512
			before := liveHeap()
			e := New(cfg, &fakeClocks{})
			n := int64(0)
			more := func(batches int) int64 {
				for range batches {
					b := &Batch{}
					for range 256 {
						b.Spans = append(b.Spans, flood(e, n))
						n++
					}
					e.Run(b)
				}
				return liveHeap() - before
			}
			first := more(8)
			second := more(16)
			t.Logf("heap %d KiB, then %d KiB; meetings %d KiB", first>>10, second>>10, e.meetings.bytes>>10)
			assert.Less(t, second-first, int64(256<<10))
			assert.Less(t, second, 2*int64(cfg.MaxSpans)*perSide+(1<<20))
			runtime.KeepAlive(e)
		})
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRankSet(t *testing.T) {
	var r rankSet
	for rank := int64(0); rank < 3*fewRanks; rank += 3 {
		r.add(rank)
		r.add(rank)
	}
	assert.LessOrEqual(t, len(r.few), fewRanks)
	for _, rank := range []int64{-1, maxRank, maxRank + 1} {
		r.add(rank)
		assert.False(t, r.has(rank))
	}
	r.add(maxRank - 1)
	for rank := range int64(3*fewRanks + 10) {
		assert.Equal(t, rank%3 == 0 && rank < 3*fewRanks, r.has(rank), rank)
	}
	assert.True(t, r.has(maxRank-1))
	assert.LessOrEqual(t, r.bytes(), int64(256<<10))
}
