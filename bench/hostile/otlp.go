// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

// message is one request.
type message struct {
	traces ptrace.Traces
	logs   plog.Logs
	isLogs bool
}

func ofTraces(td ptrace.Traces) message { return message{traces: td} }
func ofLogs(ld plog.Logs) message       { return message{logs: ld, isLogs: true} }

// client sends OTLP over gRPC and repeats nothing.
type client struct {
	traces exporter.Traces
	logs   exporter.Logs
}

func configured(cfg component.Config, settings map[string]any) (component.Config, error) {
	return cfg, confmap.NewFromStringMap(settings).Unmarshal(cfg)
}

func newClient(ctx context.Context, endpoint string) (*client, error) {
	f := otlpexporter.NewFactory()
	cfg, err := configured(f.CreateDefaultConfig(), map[string]any{
		"endpoint": endpoint, "tls": map[string]any{"insecure": true}, "timeout": "30s", "compression": "none",
		"sending_queue": map[string]any{"enabled": false}, "retry_on_failure": map[string]any{"enabled": false},
	})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	set := exporter.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	c := &client{}
	if c.traces, err = f.CreateTraces(ctx, set, cfg); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if c.logs, err = f.CreateLogs(ctx, set, cfg); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	host := componenttest.NewNopHost()
	for _, part := range []component.Component{c.traces, c.logs} {
		if err := part.Start(ctx, host); err != nil {
			return nil, fmt.Errorf("start client: %w", err)
		}
	}
	return c, nil
}

func (c *client) send(ctx context.Context, m message) error {
	if m.isLogs {
		return c.logs.ConsumeLogs(ctx, m.logs)
	}
	return c.traces.ConsumeTraces(ctx, m.traces)
}

func (c *client) close() {
	_ = c.traces.Shutdown(context.Background())
	_ = c.logs.Shutdown(context.Background())
}

// sink takes OTLP, as a tracing backend does.
type sink struct{ receiver receiver.Traces }

func startSink(ctx context.Context, endpoint string) (*sink, error) {
	f := otlpreceiver.NewFactory()
	cfg, err := configured(f.CreateDefaultConfig(), map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": endpoint}}})
	if err != nil {
		return nil, fmt.Errorf("create tracing backend: %w", err)
	}
	set := receiver.Settings{ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	r, err := f.CreateTraces(ctx, set, cfg, consumertest.NewNop())
	if err != nil {
		return nil, fmt.Errorf("create tracing backend: %w", err)
	}
	if err := r.Start(ctx, componenttest.NewNopHost()); err != nil {
		return nil, fmt.Errorf("start tracing backend: %w", err)
	}
	return &sink{r}, nil
}

func (s *sink) stop() error { return s.receiver.Shutdown(context.Background()) }

// size returns the bytes of the message on the wire.
func (m message) size() int {
	if m.isLogs {
		return (&plog.ProtoMarshaler{}).LogsSize(m.logs)
	}
	return (&ptrace.ProtoMarshaler{}).TracesSize(m.traces)
}
