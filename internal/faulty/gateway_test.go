// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/connector/clocksconnector"
	"github.com/lockstep-otel/lockstep/connector/desyncconnector"
	"github.com/lockstep-otel/lockstep/connector/epochconnector"
	"github.com/lockstep-otel/lockstep/connector/findingsconnector"
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// settings are those of a gateway that decides soon, by component.
var settings = map[string]map[string]any{
	"straggler": {"deadline": "2s", "flush_interval": "500ms", "repeat_interval": "2s"},
	"desync":    {"limit_floor": "1s", "start_limit": "1s", "forget": "15s", "check_interval": "250ms", "flush_interval": "1s", "repeat_interval": "2s"},
	"clocks":    {"solve_interval": "500ms", "forget_after": "15s"},
	"epoch": {
		"settle": "1s", "silent": "8s", "check_interval": "250ms", "flush_interval": "1s", "repeat_interval": "2s",
		"fleet": map[string]any{"settle": "4s", "silent": "8s"}, "resume": map[string]any{"silent": "8s"},
		"replicas": map[string]any{"silent": "8s"}, "log_lines": map[string]any{"silent": "8s"},
	},
	"findings": {"flush_interval": "500ms", "close_after": "1m"},
}

// gateway has the connectors that open findings, wired as in a collector.
type gateway struct {
	t       *testing.T
	out     consumertest.LogsSink
	traces  []consumer.Traces
	logs    []consumer.Logs
	running []component.Component
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{t: t}
	found := add(g, "findings", findingsconnector.NewFactory(), connector.Factory.CreateLogsToLogs, &g.out)
	// One factory knows that both instances have one configuration.
	desync := desyncconnector.NewFactory()
	cfg := g.config("desync", desync)
	g.traces = []consumer.Traces{
		add(g, "straggler", stragglerconnector.NewFactory(), connector.Factory.CreateTracesToLogs, found),
		addWith(g, desync, cfg, connector.Factory.CreateTracesToLogs, found),
	}
	g.logs = []consumer.Logs{
		addWith(g, desync, cfg, connector.Factory.CreateLogsToLogs, found),
		add(g, "clocks", clocksconnector.NewFactory(), connector.Factory.CreateLogsToLogs, found),
		add(g, "epoch", epochconnector.NewFactory(), connector.Factory.CreateLogsToLogs, found),
	}
	return g
}

// create is how a factory creates a connector that gives out logs.
type create[C component.Component] func(connector.Factory, context.Context, connector.Settings, component.Config, consumer.Logs) (C, error)

func add[C component.Component](g *gateway, name string, f connector.Factory, create create[C], next consumer.Logs) C {
	g.t.Helper()
	return addWith(g, f, g.config(name, f), create, next)
}

func addWith[C component.Component](g *gateway, f connector.Factory, cfg component.Config, create create[C], next consumer.Logs) C {
	g.t.Helper()
	c, err := create(f, g.t.Context(), connector.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}, cfg, next)
	require.NoError(g.t, err)
	require.NoError(g.t, c.Start(g.t.Context(), componenttest.NewNopHost()))
	g.running = append([]component.Component{c}, g.running...)
	return c
}

func (g *gateway) config(name string, f connector.Factory) component.Config {
	g.t.Helper()
	cfg := f.CreateDefaultConfig()
	require.NoError(g.t, confmap.NewFromStringMap(settings[name]).Unmarshal(cfg), name)
	require.NoError(g.t, confmap.Validate(cfg), name)
	return cfg
}

// send gives the gateway telemetry that it may keep.
func (g *gateway) send(td ptrace.Traces, ld plog.Logs) {
	g.t.Helper()
	for _, c := range g.traces {
		require.NoError(g.t, c.ConsumeTraces(g.t.Context(), td))
	}
	for _, c := range g.logs {
		require.NoError(g.t, c.ConsumeLogs(g.t.Context(), ld))
	}
}

func (g *gateway) stop() {
	g.t.Helper()
	for _, c := range g.running {
		require.NoError(g.t, c.Shutdown(context.Background()))
	}
}

// findings returns all revisions in the order in which they came.
func (g *gateway) findings() (all []model.Finding) {
	g.t.Helper()
	for _, ld := range g.out.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					if f, ok := otelmap.LogToFinding(lr, nil); ok {
						all = append(all, f)
					}
				}
			}
		}
	}
	return all
}
