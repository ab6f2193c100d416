// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// tap listens to what enters and leaves the collector, so that the command can
// end with the findings in plain words. It changes nothing that flows.
type tap struct {
	mu       sync.Mutex
	findings *bounded.Map[string, model.Finding] // by id, the latest revision
	ranks    map[rankID]struct{}
	spans    int64

	// onFinding, if set, is called with every revision of every finding, one at a
	// time, and must not block. Set it before the collector starts.
	onFinding func(model.Finding)
	// onOpen, if set, likewise gets what is said of each operation that does not end.
	onOpen func(said string)
}

type rankID struct {
	incarnation string
	rank        int64
}

// maxTapped bounds the findings and the ranks that the tap remembers: more
// findings than anybody reads, and twice the ranks of the engine's limit.
const (
	maxTappedFindings = 1024
	maxTappedRanks    = 1 << 16
)

func newTap() *tap {
	return &tap{findings: bounded.NewMap(bounded.MapConfig[string, model.Finding]{Entries: maxTappedFindings}), ranks: map[rankID]struct{}{}}
}

func (t *tap) result() (findings []model.Finding, spans int64, ranks int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.findings.All() {
		findings = append(findings, f)
	}
	return findings, t.spans, len(t.ranks)
}

func (t *tap) noteLogs(ld plog.Logs) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFinding(lr, nil); ok {
					t.noteFinding(f)
				} else if o, ok := otelmap.LogToOpen(lr, nil); ok && t.onOpen != nil && o.Status != model.StatusClosed {
					t.onOpen(lr.Body().AsString())
				}
			}
		}
	}
}

func (t *tap) noteFinding(f model.Finding) {
	old, known := t.findings.Peek(f.ID)
	if !t.findings.Fits(f.ID, f) {
		return
	}
	if !known || f.Revision >= old.Revision {
		t.findings.Set(f.ID, f)
		if t.onFinding != nil {
			t.onFinding(f)
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

// tappedExporter is an exporter's factory whose logs the tap sees.
type tappedExporter struct {
	exporter.Factory
	aliased
	tap *tap
}

func (t *tap) exporter(f exporter.Factory) exporter.Factory {
	alias, ok := f.(aliased)
	if !ok {
		return f
	}
	return &tappedExporter{Factory: f, aliased: alias, tap: t}
}

// CreateLogs implements exporter.Factory.
func (f *tappedExporter) CreateLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	logs, err := f.Factory.CreateLogs(ctx, set, cfg)
	if err != nil {
		return nil, err
	}
	return &tappedLogs{Logs: logs, tap: f.tap}, nil
}

type tappedLogs struct {
	exporter.Logs
	tap *tap
}

// ConsumeLogs implements consumer.Logs.
func (l *tappedLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	l.tap.noteLogs(ld)
	return l.Logs.ConsumeLogs(ctx, ld)
}

// tappedReceiver is a receiver's factory whose traces the tap counts.
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
