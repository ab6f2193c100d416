// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// stage is a part of the work on a span.
type stage int

const (
	decode    stage = iota // decompress and unmarshal a request
	skew                   // clock_skew
	straggle               // the connector straggler, with its mapping and step traces
	desync                 // the connector desync, with its mapping
	stepTrace              // marshal and compress step traces
	mapping                // spans to operations once more: both connectors do it for themselves
	stages
)

// times is CPU time of each stage.
type times [stages]time.Duration

// measure is what one run of a gateway has shown.
type measure struct {
	times    times
	total    time.Duration // CPU of the whole run, garbage collection included
	heap     int64         // bytes that live after the run, of the gateway alone
	counters map[string]int64
}

// run sends all requests through a gateway. Staged, it measures each stage, for which it maps once more.
func run(ctx context.Context, cfg *settings, r *recording.Recording, staged bool) (_ *measure, err error) {
	before := heap()
	g, err := newGateway(ctx, cfg)
	if err != nil {
		return nil, err
	}
	running := true
	defer func() {
		if running {
			_ = g.stop(ctx) // the error that ended the run says more
		}
	}()
	if err := g.learn(r); err != nil {
		return nil, err
	}
	in, err := newIntake(g, staged)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	begin := processorTime()
	if err := r.Each(func(packet []byte) error { return in.take(ctx, packet) }); err != nil {
		return nil, err
	}
	m := &measure{total: processorTime() - begin, times: in.times}
	m.heap = heap() - before
	if m.counters, err = g.counters(ctx); err != nil {
		return nil, err
	}
	running = false
	if err := g.stop(ctx); err != nil {
		return nil, fmt.Errorf("stop gateway: %w", err)
	}
	m.times[stepTrace] = g.sink.took
	return m, g.check(m, r)
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// intake takes requests as the receiver does.
type intake struct {
	*gateway
	staged  bool
	times   times
	decoder *zstd.Decoder
}

func newIntake(g *gateway, staged bool) (*intake, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)) // as the receiver's
	if err != nil {
		return nil, fmt.Errorf("make decoder: %w", err)
	}
	return &intake{gateway: g, staged: staged, decoder: decoder}, nil
}

func (in *intake) take(ctx context.Context, packet []byte) error {
	var td ptrace.Traces
	if err := in.timed(decode, func() (err error) {
		td, err = in.decode(packet)
		return err
	}); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	if err := in.timed(skew, func() error { return in.skew.ConsumeTraces(ctx, td) }); err != nil {
		return fmt.Errorf("correct request: %w", err)
	}
	td, in.skewed.td = in.skewed.td, ptrace.Traces{}
	td.MarkReadOnly() // as for all that several consumers take
	if err := in.timed(straggle, func() error { return in.straggler.ConsumeTraces(ctx, td) }); err != nil {
		return fmt.Errorf("analyse request: %w", err)
	}
	if err := in.timed(desync, func() error { return in.desync.ConsumeTraces(ctx, td) }); err != nil {
		return fmt.Errorf("watch request: %w", err)
	}
	if in.staged {
		_ = in.timed(mapping, func() error {
			var problems otelmap.Problems
			otelmap.ReadOps(td, &problems)
			return nil
		})
	}
	return nil
}

// timed adds what a call takes to a stage.
func (in *intake) timed(s stage, call func() error) error {
	if !in.staged {
		return call()
	}
	begin := processorTime()
	err := call()
	in.times[s] += processorTime() - begin
	return err
}

func (in *intake) decode(packet []byte) (ptrace.Traces, error) {
	if err := in.decoder.Reset(bytes.NewReader(packet)); err != nil {
		return ptrace.Traces{}, err
	}
	var raw bytes.Buffer
	if _, err := in.decoder.WriteTo(&raw); err != nil {
		return ptrace.Traces{}, err
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(raw.Bytes()); err != nil {
		return ptrace.Traces{}, err
	}
	return request.Traces(), nil
}
