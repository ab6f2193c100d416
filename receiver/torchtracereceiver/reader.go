// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/intake"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver/internal/metadata"
)

// maxLoggedProblems bounds the log lines of one file; the rest is counted.
const maxLoggedProblems = 20

// reader reads one file after the other and hands its operations on. One
// goroutine uses it.
type reader struct {
	cfg       *Config
	options   kineto.Options
	intake    *intake.Intake
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	next      *deliver.Sender[ptrace.Traces]
}

func newReader(set receiver.Settings, cfg *Config, next consumer.Traces) (*reader, error) {
	options, err := cfg.options()
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{
		Transport: "file", Format: "chrome_trace", Retry: cfg.RetryOnFailure, Retried: telemetry.ReceiverTorchTraceDeliveryRetries.Add,
	})
	if err != nil {
		return nil, err
	}
	to := out.Traces(next, &deliver.Counts{
		What: "Operations", Emitted: telemetry.ReceiverTorchTraceOperationsEmitted.Add, Dropped: telemetry.ReceiverTorchTraceOperationsDropped.Add,
	})
	return &reader{
		cfg: cfg, options: options, intake: intake.New(options, cfg.MaxFiles), log: set.Logger,
		telemetry: telemetry, out: out, next: to,
	}, nil
}

// readOnce reads every file there is and ends.
func (rd *reader) readOnce(ctx context.Context, s *status) {
	l := rd.list()
	rd.note(ctx, l.problems)
	rd.telemetry.ReceiverTorchTraceFilesIgnored.Add(ctx, int64(l.ignored))
	if len(l.files) == 0 {
		s.failed(l.nothing(rd.cfg.Include))
		return
	}
	rd.intake.Expect(l.paths())
	readable := 0
	for _, f := range l.files {
		if rd.read(ctx, f.Path) == nil {
			readable++
		}
		if ctx.Err() != nil {
			return
		}
	}
	if readable == 0 {
		s.failed(fmt.Errorf("read traces: got %d files, none of them readable; the log says why for each", len(l.files)))
	}
}

// read reads one file and hands it on, if it is whole and of a rank of its own. The error says
// why it was not, and has been counted and logged.
func (rd *reader) read(ctx context.Context, path string) error {
	trace, reason, err := rd.intake.Read(ctx, path, nil)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if trace != nil {
		rd.countEvents(ctx, trace)
	}
	if err != nil {
		rd.fail(ctx, path, reason, err, faultFields(trace, err)...)
		return err
	}
	rd.note(ctx, trace.Problems())
	rank, reason, err := rd.intake.Identify(path, trace)
	if err != nil {
		rd.fail(ctx, path, reason, err)
		return err
	}
	emitted := rd.deliver(ctx, &rank, trace)
	rd.telemetry.ReceiverTorchTraceFilesRead.Add(ctx, 1)
	rd.log.Debug("Read trace", zap.String("file", path), zap.Int64("rank", rank.Rank), zap.Int("operations", emitted))
	return nil
}

// faultFields are the place of a fault and the rank that is missing for it, as
// far as either is known.
func faultFields(trace *kineto.Trace, err error) (fields []zap.Field) {
	if pe := (*kineto.ParseError)(nil); errors.As(err, &pe) {
		fields = append(fields, zap.Int64("offset", pe.Offset))
	}
	if trace != nil && trace.HasRank() {
		fields = append(fields, zap.Int64("rank", trace.Rank().Rank))
	}
	return fields
}

func (rd *reader) fail(ctx context.Context, path string, reason intake.Reason, err error, fields ...zap.Field) {
	rd.telemetry.ReceiverTorchTraceFilesFailed.Add(ctx, 1, reasonOf(string(reason)))
	rd.telemetry.ReceiverTorchTraceProblems.Add(ctx, 1)
	fields = append(fields, zap.String("file", path), zap.String("reason", string(reason)), zap.Error(err))
	rd.log.Warn("Trace file left out", fields...)
}

// note logs and counts what was wrong with the input.
func (rd *reader) note(ctx context.Context, problems []model.Problem) {
	rd.telemetry.ReceiverTorchTraceProblems.Add(ctx, int64(len(problems)))
	for i := range problems {
		if i == maxLoggedProblems {
			rd.log.Warn("Further problems of trace files", zap.Int("count", len(problems)-i))
			return
		}
		p := &problems[i]
		fields := []zap.Field{zap.String("file", p.File), zap.String("problem", p.What)}
		if p.Offset >= 0 {
			fields = append(fields, zap.Int64("offset", p.Offset))
		}
		if p.Rank != nil {
			fields = append(fields, zap.Int64("rank", *p.Rank))
		}
		rd.log.Warn("Problem of a trace file", fields...)
	}
}

func reasonOf(reason string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", reason)))
}

func (rd *reader) countEvents(ctx context.Context, trace *kineto.Trace) {
	stats := trace.Stats()
	rd.telemetry.ReceiverTorchTraceEventsRead.Add(ctx, stats.Events)
	for _, skipped := range []struct {
		reason string
		n      int64
	}{
		{"not_needed", stats.NotNeeded},
		{"not_an_event", stats.NotEvents},
		{"bad_time", stats.BadTime},
		{"too_long", stats.TooLong},
		{"too_deep", stats.TooDeep},
		{"over_limit", stats.OverLimit},
		{"nested", stats.Nested},
	} {
		if skipped.n > 0 {
			rd.telemetry.ReceiverTorchTraceEventsSkipped.Add(ctx, skipped.n, reasonOf(skipped.reason))
		}
	}
}
