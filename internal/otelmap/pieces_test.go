// SPDX-License-Identifier: Apache-2.0

package otelmap_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// resources builds traces whose resource i has two scopes, of spans[i][0] and
// spans[i][1] spans. Each span's name says where it belongs.
func resources(spans ...[2]int) ptrace.Traces {
	td := ptrace.NewTraces()
	for i, scopes := range spans {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutInt("resource", int64(i))
		rs.SetSchemaUrl(fmt.Sprintf("schema %d", i))
		for j, n := range scopes {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName(fmt.Sprintf("scope %d", j))
			ss.SetSchemaUrl(fmt.Sprintf("schema %d %d", i, j))
			for k := range n {
				ss.Spans().AppendEmpty().SetName(fmt.Sprintf("%d/%d/%d", i, j, k))
			}
		}
	}
	return td
}

// listed returns the spans in order, each with all that it stands under.
func listed(td ptrace.Traces) (all []string) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				all = append(all, fmt.Sprint(rs.Resource().Attributes().AsRaw(), rs.SchemaUrl(), ss.Scope().Name(), ss.SchemaUrl(), s.Name()))
			}
		}
	}
	return all
}

func TestPiecesAreBoundedAndLoseNothing(t *testing.T) {
	few := slices.Repeat([][2]int{{1, 1}}, 7)
	for name, c := range map[string]struct {
		td   ptrace.Traces
		want []int // spans of each piece
	}{
		"nothing":                     {ptrace.NewTraces(), nil},
		"no spans":                    {resources([2]int{}, [2]int{}), nil},
		"fewer":                       {resources([2]int{1, 2}), []int{3}},
		"as many as fit":              {resources([2]int{2, 2}), []int{4}},
		"an exact multiple":           {resources([2]int{4, 0}, [2]int{0, 4}, [2]int{2, 2}), []int{4, 4, 4}},
		"one resource, many spans":    {resources([2]int{11, 0}), []int{4, 4, 3}},
		"a scope over a limit":        {resources([2]int{3, 6}), []int{4, 4, 1}},
		"many resources, few spans":   {resources(few...), []int{4, 4, 4, 2}},
		"resources without spans too": {resources([2]int{}, [2]int{5, 0}, [2]int{}), []int{4, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			want := listed(c.td)
			var sizes []int
			var got []string
			for piece := range otelmap.Pieces(c.td, 4) {
				sizes = append(sizes, piece.SpanCount())
				got = append(got, listed(piece)...)
				for _, rs := range piece.ResourceSpans().All() {
					require.Positive(t, rs.ScopeSpans().Len(), "a resource of a piece has spans")
				}
			}
			assert.Equal(t, c.want, sizes)
			assert.Equal(t, want, got, "every span once, in order, under its resource and scope")
		})
	}
}

func TestPiecesOfOneResourceShareIt(t *testing.T) {
	for piece := range otelmap.Pieces(resources([2]int{2, 2}, [2]int{1, 0}), 4) {
		assert.Equal(t, 1, piece.ResourceSpans().Len(), "copied once a piece, not once a scope")
	}
}

func TestPiecesStopWhenAsked(t *testing.T) {
	n := 0
	for range otelmap.Pieces(resources([2]int{9, 0}), 4) {
		n++
		break
	}
	assert.Equal(t, 1, n)
}
