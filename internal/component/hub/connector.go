// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Connectors make the instances of one type of connector. The collector makes one instance for each pair
// of signals; those of one configuration share a hub, which has one engine.
type Connectors[C any] struct {
	engine func(*C, connector.Settings) (*Engine, error)
	hubs   Map[*C, *Hub]
}

// NewConnectors returns connectors with the engine of a configuration.
func NewConnectors[C any](engine func(*C, connector.Settings) (*Engine, error)) *Connectors[C] {
	return &Connectors[C]{engine: engine}
}

// TracesToTraces makes an instance of that pair of signals.
func (c *Connectors[C]) TracesToTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Traces, error) {
	return c.instance(set, cfg, fromTraces, func(h *Hub) *output { return h.toTraces(set.Logger, next) })
}

// TracesToLogs makes an instance of that pair of signals.
func (c *Connectors[C]) TracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return c.instance(set, cfg, fromTraces, func(h *Hub) *output { return h.toLogs(set.Logger, next) })
}

// TracesToMetrics makes an instance of that pair of signals.
func (c *Connectors[C]) TracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return c.instance(set, cfg, fromTraces, func(h *Hub) *output { return h.toMetrics(set.Logger, next) })
}

// LogsToTraces makes an instance of that pair of signals.
func (c *Connectors[C]) LogsToTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Logs, error) {
	return c.instance(set, cfg, fromLogs, func(h *Hub) *output { return h.toTraces(set.Logger, next) })
}

// LogsToLogs makes an instance of that pair of signals.
func (c *Connectors[C]) LogsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	return c.instance(set, cfg, fromLogs, func(h *Hub) *output { return h.toLogs(set.Logger, next) })
}

// LogsToMetrics makes an instance of that pair of signals.
func (c *Connectors[C]) LogsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Logs, error) {
	return c.instance(set, cfg, fromLogs, func(h *Hub) *output { return h.toMetrics(set.Logger, next) })
}

// source is a signal that a connector takes.
type source int

const (
	fromTraces source = iota
	fromLogs
	sources
)

// String returns the name of the signal.
func (s source) String() string { return [...]string{"traces", "logs"}[s] }

func (c *Connectors[C]) instance(set connector.Settings, cfg component.Config, from source, attach func(*Hub) *output) (*instance, error) {
	of := cfg.(*C)
	handle, err := c.hubs.Acquire(of, func() (*Hub, error) {
		engine, err := c.engine(of, set)
		switch {
		case err != nil:
			return nil, err
		case engine == nil:
			return nil, errors.New("make connector: got no engine; want one, or an error")
		}
		return newHub(engine, set.ID, set.TelemetrySettings), nil
	})
	if err != nil {
		return nil, err
	}
	h := handle.Value
	if h.engine.Sent != nil && !h.engine.Wait {
		handle.Release()
		return nil, errors.New("make connector: got an engine with Sent and without Wait; want both, since what is sent is known to who waits")
	}
	if from == fromTraces && h.engine.Traces == nil || from == fromLogs && h.engine.Logs == nil {
		handle.Release()
		return nil, fmt.Errorf("make connector: got an engine that reads no %s; want a function, or a factory without them", from)
	}
	return &instance{handle: handle, output: attach(h), feeds: h.feed(from)}, nil
}

// instance is one pair of signals. All instances that take one signal get the same data, so that the first
// of them alone feeds the hub. All that emit one signal serve the same pipelines, so that they share an
// output.
type instance struct {
	handle *Handle[*Hub]
	output *output
	feeds  bool
	left   sync.Once
}

// Start implements component.Component.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	return i.handle.Value.start(ctx, host)
}

// Capabilities implements consumer.Traces and consumer.Logs.
func (*instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeTraces implements consumer.Traces.
func (i *instance) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if !i.feeds {
		return nil
	}
	h := i.handle.Value
	return h.consume(ctx, h.engine.Traces(td))
}

// ConsumeLogs implements consumer.Logs.
func (i *instance) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if !i.feeds {
		return nil
	}
	h := i.handle.Value
	return h.consume(ctx, h.engine.Logs(ld))
}

// Shutdown flushes with the last instance that emits its signal: what feeds that instance has stopped, and
// what all of them feed has not.
func (i *instance) Shutdown(ctx context.Context) (err error) {
	i.left.Do(func() {
		err = i.handle.Value.leave(ctx, i.output)
		i.handle.Release()
	})
	return err
}
