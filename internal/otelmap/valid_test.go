// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// What can not be true is left out and told once per kind of fault, and costs
// nothing else.
func TestImpossibleSpansAreLeftOut(t *testing.T) {
	const late = uint64(math.MaxInt64) + 1
	for name, tc := range map[string]struct {
		spoil   func(res pcommon.Resource, s ptrace.Span)
		problem string
		noRank  bool
	}{
		"unknown kind": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.Attributes().PutStr(semconv.OpKind, "warp") },
			problem: `attribute lockstep.op.kind: got Str "warp"; want one of compute, `, noRank: true,
		},
		"empty kind": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.Attributes().PutStr(semconv.OpKind, "") },
			problem: `attribute lockstep.op.kind: got Str ""; want one of compute, `, noRank: true,
		},
		"negative rank": {
			spoil:   func(r pcommon.Resource, _ ptrace.Span) { r.Attributes().PutInt(semconv.Rank, -1) },
			problem: "attribute lockstep.rank of the resource: got -1; want an integer of at least 0", noRank: true,
		},
		"rank of text": {
			spoil:   func(r pcommon.Resource, _ ptrace.Span) { r.Attributes().PutStr(semconv.Rank, "1") },
			problem: `attribute lockstep.rank of the resource: got Str "1"; want an integer of at least 0`, noRank: true,
		},
		"end before start": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.SetEndTimestamp(99) },
			problem: "end: got 99 with start 100; want an end that is not before the start",
		},
		"start beyond int64": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.SetStartTimestamp(pcommon.Timestamp(late)) },
			problem: "start: got 9223372036854775808; want nanoseconds since 1970, at most 9223372036854775807",
		},
		"end beyond int64": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.SetEndTimestamp(pcommon.Timestamp(math.MaxUint64)) },
			problem: "end: got 18446744073709551615; want nanoseconds since 1970, at most 9223372036854775807",
		},
		"negative step": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.Attributes().PutInt(semconv.Step, -7) },
			problem: "attribute lockstep.step: got -7; want an integer of at least 0",
		},
		"step of text": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.Attributes().PutStr(semconv.Step, strings.Repeat("7", 99)) },
			problem: `attribute lockstep.step: got Str "` + strings.Repeat("7", maxShown) + `..."; want an integer of at least 0`,
		},
		"fractional step": {
			spoil:   func(_ pcommon.Resource, s ptrace.Span) { s.Attributes().PutDouble(semconv.Step, 1.5) },
			problem: `attribute lockstep.step: got Double "1.5"; want an integer of at least 0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := model.Op{Kind: model.KindCopy, Name: "copy", Step: model.Some(int64(0)), Start: 100, End: 100}
			td := OpsToTraces(&model.Rank{Rank: 5}, []model.Op{good, good})
			for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				tc.spoil(td.ResourceSpans().At(0).Resource(), s)
			}
			AppendOps(td, &model.Rank{Rank: 6}, []model.Op{good})
			got, problems := TracesToOps(td)
			assert.Equal(t, []model.RankOps{{Rank: model.Rank{Rank: 6}, Ops: []model.Op{good}}}, got)
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0].What, "leave out span: "+tc.problem)
			assert.Contains(t, problems[0].What, " (2 times)")
			if !tc.noRank {
				require.NotNil(t, problems[0].Rank)
				assert.Equal(t, int64(5), *problems[0].Rank, "the rank does not vanish")
			}
		})
	}
}

// Equal faults of different values are one problem.
func TestFaultsOfOneKind(t *testing.T) {
	td := OpsToTraces(&model.Rank{}, []model.Op{{Kind: model.KindHost, Start: 9, End: 3}, {Kind: model.KindHost, Start: 8, End: 1}})
	got, problems := TracesToOps(td)
	assert.Empty(t, got)
	require.Len(t, problems, 1)
	assert.Equal(t, "leave out span: end: got 3 with start 9; want an end that is not before the start (2 times)", problems[0].What)
}

func TestRankWithoutSteps(t *testing.T) {
	inStep := model.Op{Kind: model.KindCompute, Step: model.Some(int64(3))}
	outside := model.Op{Kind: model.KindCompute}
	td := OpsToTraces(&model.Rank{Rank: 0}, []model.Op{outside, inStep})
	AppendOps(td, &model.Rank{Rank: 1}, []model.Op{outside, outside})
	got, problems := TracesToOps(td)
	assert.Len(t, got, 2)
	rank := int64(1)
	assert.Equal(t, []model.Problem{{
		Offset: -1, Rank: &rank, What: "compare rank 1: got no lockstep.step on any of 2 operations; want it on those in a step",
	}}, problems)

	_, problems = TracesToOps(OpsToTraces(&model.Rank{Rank: 1}, []model.Op{outside}))
	assert.Empty(t, problems, "a batch of what lies outside of steps")
}
