// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// tap counts what the receivers of a collector read, and gets what its exporter `report` is given. It
// changes nothing that flows.
type tap struct {
	mu    sync.Mutex
	ranks map[rankID]struct{}
	spans int64

	// shown is the exporter that gives the tap its findings in place of writing them.
	shown component.ID
	// journal has those findings, but where onFinding is set.
	journal *journal.Journal
	// onFinding, if set, gets every revision of every finding, one at a time, and must not block. Set it
	// before the collector starts.
	onFinding reportexporter.Sink
	// onOpen, if set, likewise gets the text of each operation that does not end.
	onOpen func(text string)
}

type rankID struct {
	incarnation string
	rank        int64
}

// maxTappedRanks bounds the ranks that the tap remembers: twice those of the engine's limit.
const maxTappedRanks = 1 << 16

func newTap() *tap {
	return &tap{ranks: map[rankID]struct{}{}, journal: journal.New(journal.Config{})}
}

// result returns the latest revision of each finding, most costly first.
func (t *tap) result() (findings []model.Finding, spans int64, ranks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.journal.Entries() {
		findings = append(findings, e.Latest)
	}
	return findings, t.spans, len(t.ranks)
}

// sink returns what gets the findings of an exporter; nil for those that write them.
func (t *tap) sink(id component.ID) reportexporter.Sink {
	if id != t.shown {
		return nil
	}
	return t.noteFinding
}

func (t *tap) noteFinding(f model.Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.onFinding != nil {
		t.onFinding(f)
		return
	}
	t.journal.Note(&f, time.Now())
}

func (t *tap) noteLogs(ld plog.Logs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if o, ok := otelmap.LogToOpen(lr, nil); ok && o.Status != model.StatusClosed {
					t.onOpen(lr.Body().AsString())
				}
			}
		}
	}
}

func (t *tap) noteTraces(td ptrace.Traces) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans += int64(td.SpanCount())
	for _, rs := range td.ResourceSpans().All() {
		attrs := rs.Resource().Attributes()
		rank, ok := attrs.Get(semconv.Rank)
		if !ok || len(t.ranks) >= maxTappedRanks {
			continue
		}
		id := rankID{rank: rank.Int()}
		if inc, ok := attrs.Get(semconv.JobIncarnation); ok {
			id.incarnation = inc.Str()
		}
		t.ranks[id] = struct{}{}
	}
}

// aliased is what a factory must keep offering when it is wrapped, so that
// deprecated names in a configuration still work.
type aliased interface {
	DeprecatedAlias() component.Type
	SetDeprecatedAlias(component.Type)
}

// tappedReceiver is a receiver's factory whose traces the tap counts, and whose open operations it gets.
type tappedReceiver struct {
	receiver.Factory
	aliased
	tap *tap
}

func (t *tap) receiver(f receiver.Factory) receiver.Factory {
	alias, ok := f.(aliased)
	if !ok {
		return f
	}
	return &tappedReceiver{Factory: f, aliased: alias, tap: t}
}

// CreateTraces implements receiver.Factory.
func (f *tappedReceiver) CreateTraces(
	ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces,
) (receiver.Traces, error) {
	return f.Factory.CreateTraces(ctx, set, cfg, &tappedTraces{Traces: next, tap: f.tap})
}

type tappedTraces struct {
	consumer.Traces
	tap *tap
}

// ConsumeTraces implements consumer.Traces.
func (c *tappedTraces) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	c.tap.noteTraces(td)
	return c.Traces.ConsumeTraces(ctx, td)
}

// CreateLogs implements receiver.Factory.
func (f *tappedReceiver) CreateLogs(
	ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs,
) (receiver.Logs, error) {
	if f.tap.onOpen != nil {
		next = &tappedLogs{Logs: next, tap: f.tap}
	}
	return f.Factory.CreateLogs(ctx, set, cfg, next)
}

type tappedLogs struct {
	consumer.Logs
	tap *tap
}

// ConsumeLogs implements consumer.Logs.
func (c *tappedLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	c.tap.noteLogs(ld)
	return c.Logs.ConsumeLogs(ctx, ld)
}
