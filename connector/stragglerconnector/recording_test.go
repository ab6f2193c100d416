// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// feed sends a recording through the wire, rank by rank, and stops.
func feed(t *testing.T, dir string) *rig {
	t.Helper()
	r := newRig(t, nil)
	files, problems := kineto.Discover([]string{dir}, kineto.DefaultOptions())
	require.Empty(t, problems)
	require.NotEmpty(t, files)
	for _, f := range files {
		trace, err := kineto.ParseFile(t.Context(), f.Path, kineto.DefaultOptions())
		require.NoError(t, err)
		rank := trace.Rank()
		r.consume(t, otelmap.OpsToTraces(&rank, slices.Collect(trace.Ops())))
	}
	r.stop(t)
	return r
}

func TestSlowedRecording(t *testing.T) {
	dir := testdata.Recording(t, "slow")
	var truth struct {
		Rank  int64  `json:"slow_rank"`
		Class string `json:"class"`
	}
	text, err := os.ReadFile(dir + ".expected.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &truth))

	r := feed(t, dir)
	found := r.findings()
	require.Len(t, found, 1)
	assert.Equal(t, model.Some(truth.Rank), found[0].Rank)
	assert.Equal(t, truth.Class, found[0].Class)
	assert.Equal(t, 8, points(t, r, "lockstep.wait.caused").Len())

	// The evidence that the finding points at is in a story.
	require.NotEmpty(t, found[0].Links)
	told := map[model.SpanRef]bool{}
	for _, td := range r.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				told[model.SpanRef{Trace: model.TraceID(s.TraceID()), Span: model.SpanID(s.SpanID())}] = true
			}
		}
	}
	for _, ref := range found[0].Links {
		assert.True(t, told[ref], "%v", ref)
	}
}

func TestHealthyRecording(t *testing.T) {
	r := feed(t, testdata.Recording(t, "healthy"))
	assert.Empty(t, r.findings())
	assert.NotZero(t, r.traces.SpanCount(), "a healthy step has a story too")
}
