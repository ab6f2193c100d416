// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// begin is when the collector was started first, in fake time.
var begin time.Time

// recordConfig configures an exporter that appends what it gets to a file.
type recordConfig struct {
	Path string `mapstructure:"path"`
}

// recorded is a line of that file.
type recorded struct {
	After float64         `json:"after_seconds"` // since the collector's first start
	Data  json.RawMessage `json:"data"`          // as OTLP/JSON
}

func newRecord() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("record"), func() component.Config { return &recordConfig{} },
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, cfg component.Config) (exporter.Traces, error) {
			return &record{path: cfg.(*recordConfig).Path}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, cfg component.Config) (exporter.Logs, error) {
			return &record{path: cfg.(*recordConfig).Path}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithMetrics(func(_ context.Context, _ exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			return &record{path: cfg.(*recordConfig).Path}, nil
		}, component.StabilityLevelDevelopment))
}

// record is the exporter, with all its signals.
type record struct {
	component.StartFunc
	component.ShutdownFunc
	consumerCapabilities
	path string
	mu   sync.Mutex
}

func (r *record) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	data, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	return r.write(data, err)
}

func (r *record) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	data, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	return r.write(data, err)
}

func (r *record) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	data, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	return r.write(data, err)
}

func (r *record) write(data []byte, err error) error {
	if err != nil {
		return fmt.Errorf("marshal request: %w", err)
	}
	line, err := json.Marshal(recorded{After: time.Since(begin).Seconds(), Data: data})
	if err != nil {
		return fmt.Errorf("marshal request: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
