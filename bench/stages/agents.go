// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/exporter/partitionedkafkaexporter"
)

// agents sends a job with the exporter that agents have, without its queue, and returns what it used of processors.
// Reading a request is not counted.
func (w *world) agents(ctx context.Context, r *recording.Recording) (cpu time.Duration, err error) {
	f := partitionedkafkaexporter.NewFactory()
	cfg := f.CreateDefaultConfig()
	settings := map[string]any{
		"brokers": []string{w.broker.Address}, "traces::topic": w.topics[operations], "sending_queue::enabled": false,
	}
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return 0, fmt.Errorf("configure the exporter: %w", err)
	}
	e, err := f.CreateTraces(ctx, exportertest.NewNopSettings(f.Type()), cfg)
	if err != nil {
		return 0, fmt.Errorf("make the exporter: %w", err)
	}
	if err := e.Start(ctx, componenttest.NewNopHost()); err != nil {
		return 0, fmt.Errorf("start the exporter: %w", err)
	}
	defer func() { err = errors.Join(err, e.Shutdown(ctx)) }()
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, fmt.Errorf("make decoder: %w", err)
	}
	defer decoder.Close()
	joined := &joining{to: e}
	err = r.Each(func(packet []byte) error {
		data, err := decoder.DecodeAll(packet, nil)
		if err != nil {
			return fmt.Errorf("decompress a request: %w", err)
		}
		request := ptraceotlp.NewExportRequest()
		if err := request.UnmarshalProto(data); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		return joined.add(ctx, request, len(data))
	})
	return joined.cpu, errors.Join(err, joined.flush(ctx))
}

// joining joins requests as the agent's queue does.
type joining struct {
	to    exporter.Traces
	held  ptraceotlp.ExportRequest
	bytes int
	cpu   time.Duration
}

// leastBytes is sending_queue::batch::min_size of the exporter.
const leastBytes = 1_000_000

func (j *joining) add(ctx context.Context, request ptraceotlp.ExportRequest, size int) error {
	if j.bytes == 0 {
		j.held = request
	} else {
		request.Traces().ResourceSpans().MoveAndAppendTo(j.held.Traces().ResourceSpans())
	}
	if j.bytes += size; j.bytes < leastBytes {
		return nil
	}
	return j.flush(ctx)
}

func (j *joining) flush(ctx context.Context) error {
	if j.bytes == 0 {
		return nil
	}
	j.bytes = 0
	before := processorTime()
	err := j.to.ConsumeTraces(ctx, j.held.Traces())
	j.cpu += processorTime() - before
	return err //nolint:wrapcheck // the exporter's
}

// processorTime returns what this process has used of all cores.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for a wrong argument only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
