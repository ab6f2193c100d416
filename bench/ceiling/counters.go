// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

// own begin the names of the parts' own metrics. Others, of jobs, say what was found.
const own = "otelcol_"

// harmless are counters of work done and levels: they say of nothing that is missing.
var harmless = []string{
	"connector_straggler_bytes_held", "connector_straggler_steps_analysed", "connector_straggler_story_ops_held",
	"connector_desync_bytes_held", "connector_desync_ops", "extension_timeline_clocks", "extension_timeline_edges", "extension_timeline_leads", "extension_timeline_pairs",
	"processor_clock_skew_clocks", "processor_clock_skew_edges", "processor_clock_skew_relations",
	"processor_clock_skew_samples", "processor_clock_skew_spans",
}

// limits are counters of bounds that large jobs reach by design. Each span is judged in spite of them,
// and the output has them.
var limits = map[string]string{
	"processor_clock_skew_partners_forgotten":     "members of collectives not compared by clock_skew",
	"processor_clock_skew_samples_overflow":       "relations of more pairs of clocks than are learned from",
	"extension_timeline_edges_late":               "relations of a window of clocks that was solved before",
	"connector_straggler_steps_forgotten":         "steps that left the window early",
	"connector_straggler_steps_large":             "steps of more operations than may be held",
	"connector_straggler_steps_too_large_to_walk": "steps too large for the whole critical path",
	"connector_straggler_story_ops_dropped":       "operations not held for step traces",
}

// counters reads the own metrics of the parts, without the prefix that all of them have.
func (g *gateway) counters(ctx context.Context) (map[string]int64, error) {
	var rm metricdata.ResourceMetrics
	if err := g.telemetry.Reader.Collect(ctx, &rm); err != nil {
		return nil, fmt.Errorf("read own metrics: %w", err)
	}
	out := map[string]int64{}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			name, mine := strings.CutPrefix(m.Name, own)
			if !mine {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					out[name] += p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					out[name] += p.Value
				}
			}
		}
	}
	return out, nil
}

// check fails where a span was not judged, or the judgement is wrong: the figures would be those of
// an engine that drops its input.
func (g *gateway) check(m *measure, r *recording.Recording) error {
	var errs []error
	for name, want := range map[string]int{
		"connector_straggler_steps_analysed": r.Steps, "connector_desync_ops": r.Spans, "processor_clock_skew_spans": r.Spans,
	} {
		if got := m.counters[name]; got != int64(want) {
			errs = append(errs, fmt.Errorf("check %s: got %d; want %d", name, got, want))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.counters)) {
		if _, known := limits[name]; known || slices.Contains(harmless, name) || m.counters[name] == 0 {
			continue
		}
		errs = append(errs, fmt.Errorf("check %s: got %d; want 0", name, m.counters[name]))
	}
	if g.sink.traces != r.Steps {
		errs = append(errs, fmt.Errorf("check step traces: got %d; want %d", g.sink.traces, r.Steps))
	}
	if !g.sink.found {
		errs = append(errs, fmt.Errorf("check findings: got none of rank %d, which is slow; want one", recording.SlowRank))
	}
	for _, f := range slices.Sorted(maps.Keys(g.sink.wrong)) {
		errs = append(errs, fmt.Errorf("check findings: got %s; want none but of rank %d", f, recording.SlowRank))
	}
	return errors.Join(errs...)
}
