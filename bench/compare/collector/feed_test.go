// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
)

// feedConfig configures a receiver that sends recorded requests at recorded times.
type feedConfig struct {
	// Path names a file of requests, one JSON object a line, in order of time.
	Path string `mapstructure:"path"`
}

// fed is a line of that file.
type fed struct {
	After  float64         `json:"after_seconds"` // since the collector's first start
	Signal string          `json:"signal"`        // traces or logs
	Data   json.RawMessage `json:"data"`          // as OTLP/JSON
}

func newFeed() receiver.Factory {
	return receiver.NewFactory(component.MustNewType("feed"), func() component.Config { return &feedConfig{} },
		receiver.WithTraces(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			return &feed{path: cfg.(*feedConfig).Path, signal: "traces", log: set.Logger, send: func(ctx context.Context, data []byte) error {
				td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(data)
				if err != nil {
					return err
				}
				return next.ConsumeTraces(ctx, td)
			}}, nil
		}, component.StabilityLevelDevelopment),
		receiver.WithLogs(func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
			return &feed{path: cfg.(*feedConfig).Path, signal: "logs", log: set.Logger, send: func(ctx context.Context, data []byte) error {
				ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
				if err != nil {
					return err
				}
				return next.ConsumeLogs(ctx, ld)
			}}, nil
		}, component.StabilityLevelDevelopment))
}

// feed sends the lines of one signal.
type feed struct {
	path, signal string
	log          *zap.Logger
	send         func(context.Context, []byte) error
	cancel       context.CancelFunc
	done         sync.WaitGroup
}

func (f *feed) Start(context.Context, component.Host) error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("open feed: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.done.Go(func() {
		defer func() { _ = file.Close() }() // it was only read
		if err := f.play(ctx, file); err != nil && ctx.Err() == nil {
			f.log.Error("Feed ended early", zap.Error(err))
		}
	})
	return nil
}

// play sends each line at its time; lines before this start were sent in an earlier life.
func (f *feed) play(ctx context.Context, file io.Reader) error {
	start := time.Since(begin).Seconds()
	lines := bufio.NewReader(file)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read feed: %w", err)
		}
		var line fed
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("read feed: %w", err)
		}
		if line.Signal != f.signal || line.After < start {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(begin.Add(time.Duration(line.After * 1e9)))):
		}
		if err := f.send(ctx, line.Data); err != nil {
			f.log.Error("Request was refused", zap.Float64("after_seconds", line.After), zap.Error(err))
		}
	}
}

func (f *feed) Shutdown(context.Context) error {
	if f.cancel != nil {
		f.cancel()
		f.done.Wait()
	}
	return nil
}
