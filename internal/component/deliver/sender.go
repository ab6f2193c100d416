// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
)

// Adder is the Add of a counter.
type Adder = func(context.Context, int64, ...metric.AddOption)

// Receiver is how a receiver delivers: behind one gate, with the receiver's retries, and with the
// collector's own telemetry of receivers. A [Sender] of it delivers one kind of data.
type Receiver struct {
	*Gate
	cfg ReceiverConfig
	obs *receiverhelper.ObsReport
}

// ReceiverConfig is how a receiver delivers.
type ReceiverConfig struct {
	// Transport and Format name what is received in the collector's own telemetry.
	Transport, Format string
	// Retry is how refused data are given again; the zero value gives everything once.
	Retry configretry.BackOffConfig
	// Retried counts retries; nil where there are none.
	Retried Adder
}

// NewReceiver returns how a receiver delivers.
func NewReceiver(set receiver.Settings, cfg ReceiverConfig) (*Receiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: cfg.Transport, LongLivedCtx: true, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, fmt.Errorf("create telemetry of what is received: %w", err)
	}
	return &Receiver{Gate: NewGate(set.Logger), cfg: cfg, obs: obs}, nil
}

// Counts name the data of a receiver, and count what becomes of them.
type Counts struct {
	// What the data are, in log lines: "Operations".
	What string
	// Emitted and Dropped count items that the next component took, and those that are given up; nil
	// counts nothing.
	Emitted, Dropped Adder
	// Again: the receiver gives what was refused later, as it is then, unless it was refused for good or the
	// receiver stops. Such data do not count as dropped.
	Again bool
	// Keeps replaces that rule.
	Keeps func(error) bool
	// LogEvery is how long no refusal is logged after one that was.
	LogEvery time.Duration
}

// RepeatEvery is how often to log that what is given each interval is still refused.
const RepeatEvery = time.Minute

// Outcome is what came of a delivery.
type Outcome struct {
	// Left is how many items the next component did not take.
	Left int
	// Kept: those that it refused are the receiver's, or its source's, and do not count as dropped.
	Kept bool
	Err  error // nil where everything was taken
}

// Sender delivers data of one kind to one next component. Nil stands for no next component: it takes
// everything, and counts nothing. A Sender is safe for concurrent use.
type Sender[T any] struct {
	of     *Receiver
	counts Counts
	signal signal[T]

	mu     sync.Mutex
	logged time.Time
}

// Traces returns a sender of spans; nil where next is nil.
func (r *Receiver) Traces(next consumer.Traces, c *Counts) *Sender[ptrace.Traces] {
	if next == nil {
		return nil
	}
	return &Sender[ptrace.Traces]{of: r, counts: *c, signal: tracesTo(r.Gate.Traces(next), r.obs)}
}

// Logs returns a sender of log records; nil where next is nil.
func (r *Receiver) Logs(next consumer.Logs, c *Counts) *Sender[plog.Logs] {
	if next == nil {
		return nil
	}
	return &Sender[plog.Logs]{of: r, counts: *c, signal: logsTo(r.Gate.Logs(next), r.obs)}
}

// Metrics returns a sender of series; nil where next is nil. Series are cumulative or repeated: what is
// refused is not given again, and the next ones have it.
func (r *Receiver) Metrics(next consumer.Metrics) *Sender[pmetric.Metrics] {
	if next == nil {
		return nil
	}
	series := Counts{What: "Metrics", Keeps: func(error) bool { return true }, LogEvery: RepeatEvery}
	return &Sender[pmetric.Metrics]{of: r, counts: series, signal: metricsTo(r.Gate.Metrics(next), r.obs)}
}

// Send delivers what build returns, n items, and again what is refused for now, within the receiver's retries;
// while the receiver stops, once. It counts and logs what comes of it. Each attempt builds its own
// data: the next component owns what it is given. Fields are those of the log line.
func (s *Sender[T]) Send(ctx context.Context, n int, build func() T, fields ...zap.Field) Outcome {
	if s == nil {
		return Outcome{}
	}
	cfg := &s.of.cfg
	r := Retry{Config: cfg.Retry, Once: s.of.stopping.Load(), Retried: func(ctx context.Context, _ error) { add(ctx, cfg.Retried, 1) }}
	return s.send(ctx, r, n, build, fields)
}

func (s *Sender[T]) send(ctx context.Context, r Retry, n int, build func() T, fields []zap.Field) Outcome {
	if n == 0 {
		return Outcome{}
	}
	op := s.signal.start(ctx)
	left, err := deliver(op, r, n, build, &s.signal)
	if err != nil && !s.keeps(err) && isAnalysed(err) {
		if s.mayLog(err) {
			s.of.log.Warn(s.counts.What+" were analysed, and what came of that was refused by the component behind", s.fields(left, err, fields)...)
		}
		left, err = 0, nil
	}
	s.signal.end(op, s.of.cfg.Format, n, err)
	add(ctx, s.counts.Emitted, n-left)
	switch {
	case err == nil:
		return Outcome{}
	case !s.keeps(err):
		s.drop(ctx, left, err, fields)
		return Outcome{Left: left, Err: err}
	}
	if s.mayLog(err) {
		s.of.log.Warn(s.counts.What+" refused by the next component: they are kept, and given later", s.fields(left, err, fields)...)
	}
	return Outcome{Left: left, Kept: true, Err: err}
}

func (s *Sender[T]) keeps(err error) bool {
	if s.counts.Keeps != nil {
		return s.counts.Keeps(err)
	}
	return s.counts.Again && !IsPermanent(err) && !s.of.stopping.Load()
}

// Once is Send for data that are built already, which are given once.
func (s *Sender[T]) Once(ctx context.Context, data T, fields ...zap.Field) Outcome {
	if s == nil {
		return Outcome{}
	}
	return s.send(ctx, Retry{}, s.signal.count(data), func() T { return data }, fields)
}

// Drop counts items that the receiver gives up without a delivery, and logs why.
func (s *Sender[T]) Drop(ctx context.Context, n int, why error, fields ...zap.Field) {
	if s != nil && n > 0 {
		s.drop(ctx, n, why, fields)
	}
}

func (s *Sender[T]) drop(ctx context.Context, left int, err error, fields []zap.Field) {
	add(ctx, s.counts.Dropped, left)
	if s.mayLog(err) {
		s.of.log.Error(s.counts.What+" refused by the next component", s.fields(left, err, fields)...)
	}
}

func (*Sender[T]) fields(left int, err error, more []zap.Field) []zap.Field {
	return append(more, zap.Int("items", left), zap.Error(err))
}

// mayLog reports whether to log a refusal. What a closed gate refuses is logged once, at the end.
func (s *Sender[T]) mayLog(err error) bool {
	if errors.Is(err, ErrClosed) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.logged.IsZero() && now.Sub(s.logged) < s.counts.LogEvery {
		return false
	}
	s.logged = now
	return true
}

func add(ctx context.Context, to Adder, n int) {
	if to != nil && n > 0 {
		to(ctx, int64(n))
	}
}
