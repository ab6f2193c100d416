// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report"
)

func finding(id string, revision int64, cost float64) model.Finding {
	return model.Finding{
		ID: id, Revision: revision, Kind: model.FindingStraggler, Class: model.ClassHost, Time: 1,
		Rank: model.Some(int64(5)), CostSeconds: model.Some(cost), Confidence: 0.9,
	}
}

func TestTapKeepsTheLatestRevision(t *testing.T) {
	seen := newTap()
	for _, f := range []model.Finding{finding("a", 1, 0.1), finding("b", 0, 0.5), finding("a", 0, 0.9)} {
		seen.noteFinding(f)
	}
	got, _, _ := seen.result()
	require.Len(t, got, 2)
	assert.EqualValues(t, 1, got[1].Revision, "late news of an older revision change nothing")
}

func TestTapCountsOperationsAndRanks(t *testing.T) {
	seen, sink := newTap(), new(consumertest.TracesSink)
	traces := &tappedTraces{Traces: sink, tap: seen}
	for rank := range int64(3) {
		r := slowJob.rank(rank)
		for step := range int64(2) {
			require.NoError(t, traces.ConsumeTraces(t.Context(), otelmap.OpsToTraces(&r, slowJob.ops(rank, step))))
		}
	}
	_, spans, ranks := seen.result()
	assert.EqualValues(t, 3*2*3, spans)
	assert.Equal(t, 3, ranks)
	assert.Equal(t, 3*2*3, sink.SpanCount(), "all of it is passed on")
}

func TestConclude(t *testing.T) {
	var out strings.Builder
	seen := newTap()
	seen.shown = component.MustNewIDWithName("report", "at_end")
	require.ErrorIs(t, seen.conclude(&out, report.Style{}, true), statusError(exitFailed), "a replay of nothing")
	require.NoError(t, seen.conclude(&out, report.Style{}, false), "a collector that was stopped before data came")
	assert.Contains(t, out.String(), "Nothing was read")

	out.Reset()
	seen.spans = 7
	require.NoError(t, seen.conclude(&out, report.Style{}, true))
	assert.Contains(t, out.String(), "No finding")

	out.Reset()
	seen.noteFinding(finding("a", 0, 0.1))
	seen.noteFinding(finding("b", 0, 0.5))
	require.NoError(t, seen.conclude(&out, report.Style{}, true))
	assert.Contains(t, words(out.String()), "500 ms per step is all that")
	assert.Less(t, strings.Index(out.String(), "500 ms"), strings.Index(out.String(), "100 ms"), "most costly first")
}

// TestFactoriesAreTapped drives the real factories, so that a change of the
// collector that would pass the tap by is seen.
func TestFactoriesAreTapped(t *testing.T) {
	seen := newTap()
	seen.shown = component.MustNewID("report")
	f, err := components(seen)
	require.NoError(t, err)

	exporter := f.Exporters[component.MustNewType("report")]
	set := exportertest.NewNopSettings(exporter.Type())
	set.ID = seen.shown
	logs, err := exporter.CreateLogs(t.Context(), set, exporter.CreateDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), nil))
	require.NoError(t, logs.ConsumeLogs(t.Context(), otelmap.FindingsToLogs([]model.Finding{finding("a", 0, 1)})))
	require.NoError(t, logs.Shutdown(context.Background()))
	got, _, _ := seen.result()
	assert.Len(t, got, 1)

	otlp := f.Receivers[component.MustNewType("otlp")]
	assert.IsType(t, &tappedReceiver{}, otlp)
	_, err = otlp.CreateTraces(t.Context(), receivertest.NewNopSettings(otlp.Type()), otlp.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)

	assert.Contains(t, f.Exporters, component.MustNewType("otlp"), "the deprecated name of otlp_grpc still works")
}
