// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// severalSteps is what an agent sends that was held up: each step of each rank is a resource of its own.
func severalSteps(steps, ranks, ops int) ptrace.Traces {
	td := ptrace.NewTraces()
	for range steps {
		for r := range ranks {
			AppendOps(td, &model.Rank{JobID: "j", Incarnation: "i", Rank: int64(r)}, typicalOps(ops))
		}
	}
	return td
}

// allocated returns how many bytes a call allocates.
func allocated(call func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A rank is given room for its operations once, however many resources it has.
func TestReadOps_SeveralStepsOfARank_AreNotCopied(t *testing.T) {
	one, five := severalSteps(1, 8, 700), severalSteps(5, 8, 140)
	var ranks []model.RankOps
	read := func(td ptrace.Traces) int64 {
		return allocated(func() { ranks = ReadOps(td, nil) })
	}
	least, got := read(one), read(five)
	require.Len(t, ranks, 8)
	for i := range ranks {
		assert.Len(t, ranks[i].Ops, 700)
		assert.Equal(t, 700, cap(ranks[i].Ops))
	}
	assert.Less(t, float64(got), 1.1*float64(least), "bytes")
}

// Room is made for what can be an operation: not for the spans of other programs.
func TestReadOps_ForeignSpans_TakeNoRoom(t *testing.T) {
	td := severalSteps(1, 1, 10)
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range 7 {
		spans.At(i).Attributes().Remove(semconv.OpKind)
	}
	foreign := severalSteps(1, 1, 10).ResourceSpans().At(0)
	for _, s := range foreign.ScopeSpans().At(0).Spans().All() {
		s.Attributes().Remove(semconv.OpKind)
	}
	foreign.CopyTo(td.ResourceSpans().AppendEmpty())
	var p Problems
	ranks := ReadOps(td, &p)
	require.Len(t, ranks, 1)
	assert.Len(t, ranks[0].Ops, 3)
	assert.Equal(t, 3, cap(ranks[0].Ops))
	assert.EqualValues(t, 17, p.Count())
}

// Problems of resources and of their spans are listed as they come, each once.
func TestReadOps_ProblemsOfResources_AreInOrderOfTheInput(t *testing.T) {
	td := severalSteps(2, 1, 1)
	broken := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	broken.SetEndTimestamp(0)
	broken.SetStartTimestamp(1)
	td.ResourceSpans().At(1).Resource().Attributes().PutStr(semconv.WorldSize, "eight")
	homeless := td.ResourceSpans().AppendEmpty()
	td.ResourceSpans().At(1).CopyTo(homeless)
	homeless.Resource().Attributes().Remove(semconv.Rank)
	ranks, problems := TracesToOps(td)
	require.Len(t, ranks, 1)
	assert.Len(t, ranks[0].Ops, 1)
	var what []string
	for i := range problems {
		what = append(what, problems[i].What)
	}
	assert.Equal(t, []string{
		"leave out span: end: got 0 with start 1; want an end that is not before the start (1 times)",
		"read attribute " + semconv.WorldSize + ": got type Str (1 times)",
		"leave out span: attribute lockstep.rank of the resource: got none; want an integer of at least 0 (1 times)",
	}, what)
}
