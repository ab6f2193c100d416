// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jaegertracing/jaeger/cmd/query/app/querysvc/v2/adjuster"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/bench/skewfloor"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/processor/clockskewprocessor"
)

// jaeger corrects each trace by itself, as Jaeger does when it is looked at. It is
// off by default; an hour lets it do all that it wants.
func jaeger(traces []ptrace.Traces) {
	a := adjuster.CorrectClockSkew(time.Hour)
	for _, td := range traces {
		a.Adjust(td)
	}
}

// ours is clock_skew as a pipeline has it, without probes.
type ours struct {
	p         processor.Traces
	telemetry *componenttest.Telemetry
}

func newOurs(ctx context.Context) (*ours, error) {
	f := clockskewprocessor.NewFactory()
	o := &ours{telemetry: componenttest.NewTelemetry()}
	set := processortest.NewNopSettings(f.Type())
	set.TelemetrySettings = o.telemetry.NewTelemetrySettings()
	p, err := f.CreateTraces(ctx, set, f.CreateDefaultConfig(), consumertest.NewNop())
	if err != nil {
		return nil, fmt.Errorf("make clock_skew: %w", err)
	}
	o.p = p
	return o, p.Start(ctx, componenttest.NewNopHost())
}

func (o *ours) run(ctx context.Context, batches []ptrace.Traces) error {
	for _, td := range batches {
		if err := o.p.ConsumeTraces(ctx, td); err != nil {
			return err
		}
	}
	return nil
}

// verdicts are the relations by verdict.
func (o *ours) verdicts() (map[string]int64, error) {
	m, err := o.telemetry.GetMetric(semconv.MetricCausalityViolations)
	if err != nil {
		return nil, err
	}
	sum, ok := m.Data.(metricdata.Sum[int64])
	if !ok {
		return nil, fmt.Errorf("read %s: got %T; want a sum", semconv.MetricCausalityViolations, m.Data)
	}
	out := map[string]int64{}
	for _, p := range sum.DataPoints {
		v, _ := p.Attributes.Value(semconv.PointVerdict)
		out[v.AsString()] += p.Value
	}
	return out, nil
}

func (o *ours) close(ctx context.Context) error {
	if err := o.p.Shutdown(ctx); err != nil {
		return err
	}
	return o.telemetry.Shutdown(ctx)
}

// floors are what clock_skew wrote, batch by batch.
func floors(before, after []ptrace.Traces) []skewfloor.Floor {
	out := make([]skewfloor.Floor, len(before))
	for i := range out {
		out[i].Record(before[i], after[i])
	}
	return out
}

// floor writes the same to the same spans.
func floor(batches []ptrace.Traces, fs []skewfloor.Floor) {
	for i, td := range batches {
		fs[i].Write(td)
	}
}
