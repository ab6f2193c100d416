// SPDX-License-Identifier: Apache-2.0

package stragglerconnector_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry"

	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/processor/stragglerprocessor"
)

const pipelines = `yaml:
receivers:
  job:
processors:
  straggler:
    hold:
connectors:
  straggler:
  findings:
exporters:
  sink:
service:
  pipelines:
    traces: {receivers: [job], processors: [straggler], exporters: [straggler]}
    logs/raw: {receivers: [straggler], exporters: [findings]}
    logs: {receivers: [findings], exporters: [sink]}
    metrics: {receivers: [straggler, findings], exporters: [sink]}
    traces/story: {receivers: [straggler, findings], exporters: [sink]}
`

// sinks are an exporter that remembers.
type sinks struct {
	consumertest.TracesSink
	consumertest.LogsSink
	consumertest.MetricsSink
}

// A collector with all faces together, stopped while everything is still open:
// what the real service starts and stops, and in which order, is part of the test.
func TestEverythingIsSaidBeforeTheCollectorStops(t *testing.T) {
	var out sinks
	collector := newCollector(t, &out)
	done := make(chan error, 1)
	go func() { done <- collector.Run(context.Background()) }()
	for collector.GetState() != otelcol.StateRunning {
		select {
		case err := <-done:
			t.Fatalf("run the collector: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	collector.Shutdown()
	require.NoError(t, <-done)

	assert.Equal(t, []string{"open", "closed"}, statuses(&out))
	names := spanNames(&out)
	assert.Equal(t, 1, names["finding straggler"])
	assert.Equal(t, 6*(1+4), names["step"], "six roots, and a step of four ranks each")
	assert.Equal(t, map[string]bool{
		"lockstep.step.duration": true, "lockstep.wait.caused": true, "lockstep.wait.suffered": true,
		"lockstep.straggler.excess": true, "lockstep.op.frequency": true, "lockstep.straggler.divergence": true,
		"lockstep.clock.offset": true, "lockstep.findings": true,
	}, metricNames(&out))
}

func newCollector(t *testing.T, out *sinks) *otelcol.Collector {
	t.Helper()
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: func() (otelcol.Factories, error) { return factories(out), nil },
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{pipelines}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true,
	})
	require.NoError(t, err)
	return c
}

func factories(out *sinks) otelcol.Factories {
	job, sink := component.MustNewType("job"), component.MustNewType("sink")
	straggler := component.MustNewType("straggler")
	noConfig := func() component.Config { return &struct{}{} }
	return otelcol.Factories{
		Telemetry:  telemetry.NewFactory(noConfig),
		Receivers:  map[component.Type]receiver.Factory{job: receiver.NewFactory(job, noConfig, receiver.WithTraces(newJob, component.StabilityLevelDevelopment))},
		Processors: map[component.Type]processor.Factory{straggler: stragglerprocessor.NewFactory()},
		Connectors: map[component.Type]connector.Factory{
			straggler: stragglerconnector.NewFactory(), component.MustNewType("findings"): findingsconnector.NewFactory(),
		},
		Exporters: map[component.Type]exporter.Factory{sink: exporter.NewFactory(sink, noConfig,
			exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
				return struct {
					component.Component
					consumer.Traces
				}{nop{}, &out.TracesSink}, nil
			}, component.StabilityLevelDevelopment),
			exporter.WithLogs(func(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
				return struct {
					component.Component
					consumer.Logs
				}{nop{}, &out.LogsSink}, nil
			}, component.StabilityLevelDevelopment),
			exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
				return struct {
					component.Component
					consumer.Metrics
				}{nop{}, &out.MetricsSink}, nil
			}, component.StabilityLevelDevelopment),
		)},
	}
}

type nop struct {
	component.StartFunc
	component.ShutdownFunc
}

// newJob is a receiver that delivers six steps of four ranks when it starts.
// Rank 2 is slow. Nobody says how large the world is, so that every step stays
// open until the end.
func newJob(_ context.Context, _ receiver.Settings, _ component.Config, next consumer.Traces) (receiver.Traces, error) {
	return nop{StartFunc: func(ctx context.Context, _ component.Host) error {
		for n := range int64(6) {
			for r := range int64(4) {
				if err := next.ConsumeTraces(ctx, rankStep(n, r)); err != nil {
					return err
				}
			}
		}
		return nil
	}}, nil
}

func rankStep(n, r int64) ptrace.Traces {
	const ms = int64(time.Millisecond)
	start := time.Unix(1_700_000_000, 0).UnixNano() + n*100*ms
	compute := 10 * ms
	if r == 2 {
		compute = 30 * ms
	}
	return otelmap.OpsToTraces(&model.Rank{JobID: "job", Incarnation: "inc", Rank: r}, []model.Op{
		{Kind: model.KindCompute, Name: "gemm", Start: start, End: start + compute, Step: model.Some(n), Stream: model.Some(int64(7))},
		{
			Kind: model.KindCollective, Name: "all_reduce", Start: start + compute, End: start + 31*ms, Step: model.Some(n), Stream: model.Some(int64(20)),
			Comm:       model.Comm{ID: "c", Size: model.Some(int64(4))},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
		},
		{Kind: model.KindStep, Name: "step", Start: start, End: start + 31*ms, Step: model.Some(n)},
	})
}

func statuses(out *sinks) (got []string) {
	for _, ld := range out.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				f, _ := otelmap.LogToFinding(lr, nil)
				got = append(got, f.Status)
			}
		}
	}
	return slices.DeleteFunc(got, func(s string) bool { return s == model.StatusUpdated })
}

func spanNames(out *sinks) map[string]int {
	names := map[string]int{}
	for _, td := range out.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				names[s.Name()]++
			}
		}
	}
	return names
}

func metricNames(out *sinks) map[string]bool {
	names := map[string]bool{}
	for _, md := range out.AllMetrics() {
		for _, m := range metricsOf(md).All() {
			names[m.Name()] = true
		}
	}
	return names
}

func metricsOf(md pmetric.Metrics) pmetric.MetricSlice {
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
}
