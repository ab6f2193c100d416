package torchtracereceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/receiver/torchtracereceiver/internal/metadata"
)

// Reasons in receiver_torch_trace_files_failed.
const (
	reasonUnreadable = "unreadable"
	reasonPartial    = "partial" // what was readable is emitted
	reasonNoRank     = "no_rank"
	reasonRankTaken  = "rank_taken"
	reasonEmpty      = "empty"
)

// maxLoggedProblems bounds the log lines of one file; the rest is counted.
const maxLoggedProblems = 20

// reader reads one file after the other and hands its operations on. One
// goroutine uses it.
type reader struct {
	cfg       *Config
	options   kineto.Options
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	obs       *receiverhelper.ObsReport
	next      consumer.Traces
	claims    *claims
	worlds    *worlds // nil while watching
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
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "file", LongLivedCtx: true, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, fmt.Errorf("create telemetry of received spans: %w", err)
	}
	return &reader{
		cfg: cfg, options: options, log: set.Logger,
		telemetry: telemetry, obs: obs, next: next, claims: newClaims(),
	}, nil
}

// readOnce reads every file there is and ends.
func (rd *reader) readOnce(ctx context.Context, health *health) {
	l := rd.list()
	rd.note(ctx, l.problems)
	rd.telemetry.ReceiverTorchTraceFilesIgnored.Add(ctx, int64(l.ignored))
	if len(l.files) == 0 {
		health.failed(l.nothing(rd.cfg.Include))
		return
	}
	rd.worlds = rd.countWorlds(l.files)
	readable := 0
	for _, f := range l.files {
		if rd.read(ctx, f.Path) {
			readable++
		}
		if ctx.Err() != nil {
			return
		}
	}
	if readable == 0 {
		health.failed(fmt.Errorf("read traces: got %d files, none of them readable; the log says why for each", len(l.files)))
	}
}

// read reads one file and hands on what is readable of it. It reports whether
// anything was.
func (rd *reader) read(ctx context.Context, path string) bool {
	trace, err := kineto.ParseFile(ctx, path, rd.options)
	if ctx.Err() != nil {
		return false
	}
	if trace == nil {
		rd.fail(ctx, path, reasonUnreadable, err)
		return false
	}
	rd.countEvents(ctx, trace)
	rd.note(ctx, trace.Problems())
	rank, reason, refused := rd.identify(path, trace)
	if refused != nil {
		if err != nil && reason != reasonRankTaken {
			reason, refused = reasonUnreadable, err // the cause of what is missing
		}
		rd.fail(ctx, path, reason, refused)
		return false
	}
	emitted := rd.deliver(ctx, &rank, trace)
	if err != nil {
		rd.fail(ctx, path, reasonPartial, err)
		return true
	}
	rd.telemetry.ReceiverTorchTraceFilesRead.Add(ctx, 1)
	rd.log.Debug("Read trace", zap.String("file", path), zap.Int64("rank", rank.Rank), zap.Int("operations", emitted))
	return true
}

// identify says which rank the file speaks for, or why for none.
func (rd *reader) identify(path string, trace *kineto.Trace) (rank model.Rank, reason string, err error) {
	job := rd.jobOf(path)
	rank = trace.Rank()
	if !trace.HasRank() {
		if !rd.worlds.alone(job) {
			return rank, reasonNoRank, fmt.Errorf("find rank: got none in distributedInfo and none in the file's name by rank_pattern %q; want one", rd.cfg.RankPattern)
		}
		rank.Rank, rank.ClockID = 0, "" // the clock is named after the rank
	}
	rd.worlds.settle(job, &rank)
	trace.SetRank(rank)
	rank = trace.Rank()
	covered := extentOf(trace)
	if !covered.any {
		return rank, reasonEmpty, fmt.Errorf("find operations of rank %d: got none; want at least one", rank.Rank)
	}
	if holder, ok := rd.claims.take(path, &rank, covered); !ok {
		return rank, reasonRankTaken, fmt.Errorf("claim rank %d: got it from %s, which comes first and covers the same steps or time; want one file", rank.Rank, holder)
	}
	return rank, "", nil
}

func (rd *reader) fail(ctx context.Context, path, reason string, err error) {
	rd.telemetry.ReceiverTorchTraceFilesFailed.Add(ctx, 1, reasonOf(reason))
	rd.telemetry.ReceiverTorchTraceProblems.Add(ctx, 1)
	rd.log.Warn("Trace file not read whole", zap.String("file", path), zap.String("reason", reason), zap.Error(err))
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
