// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/otlpfile"
	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/intake/stepless"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// otlpReader reads OTLP JSON files of operation spans.
type otlpReader struct{}

func (otlpReader) format() sniff.Format { return sniff.OTLP }

func (r otlpReader) read(ctx context.Context, files []input, to *analysis) {
	for _, f := range files {
		if ctx.Err() != nil {
			return
		}
		r.readFile(ctx, f, to)
	}
}

func (otlpReader) readFile(ctx context.Context, f input, to *analysis) {
	before, faults := to.ops, 0
	content, closer, err := sniff.Open(f.path, to.progress.reader)
	if err != nil {
		to.problems.add(f.path, -1, bare(err))
		return
	}
	defer func() { _ = closer.Close() }()
	var spans otelmap.Problems // of the whole file, equal ones once
	var seen stepless.Ranks
	err = otlpfile.Read(ctx, sniff.SkipBOM(content), otlpfile.DefaultLimit,
		func(td ptrace.Traces) { to.addTraces(td, &spans, &seen) },
		func(bad otlpfile.Fault) {
			faults++
			to.problems.add(f.path, bad.Offset, bad.Err)
		})
	if err != nil {
		faults++
		to.problems.add(f.path, -1, fmt.Errorf("read file: %w", err))
	}
	for _, p := range append(spans.List(), seen.Problems()...) {
		p.File = f.path
		to.problems.put(p)
	}
	if to.ops == before && faults == 0 {
		to.problems.add(f.path, -1, errNoOps)
	}
	to.files++
	to.bytes += f.size
}

// addTraces hands the operations of one batch to the engine.
func (a *analysis) addTraces(td ptrace.Traces, faults *otelmap.Problems, seen *stepless.Ranks) {
	for part := range parts(td, batchOps) {
		byRank := otelmap.ReadOps(part, faults)
		seen.Add(byRank)
		for i := range byRank {
			a.add(byRank[i].Rank, byRank[i].Ops)
		}
	}
}

// parts yields td in parts of at most limit spans, since an operation takes
// many times the memory of its span while it is read. The steps come last, so
// that none is taken for complete before its operations have come.
func parts(td ptrace.Traces, limit int) iter.Seq[ptrace.Traces] {
	return func(yield func(ptrace.Traces) bool) {
		if td.SpanCount() <= limit {
			yield(td)
			return
		}
		p := &parting{limit: limit, yield: yield}
		_ = p.take(td, false) && p.take(td, true) && p.flush()
	}
}

// parting gathers spans until there are enough of them.
type parting struct {
	limit int
	yield func(ptrace.Traces) bool
	part  ptrace.Traces
	n     int
}

// take moves the operations out of td, or the steps; false once the consumer
// has enough.
func (p *parting) take(td ptrace.Traces, steps bool) bool {
	for _, rs := range td.ResourceSpans().All() {
		to := ptrace.NewSpanSlice()
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if isStep(s) != steps {
					continue
				}
				if p.n == 0 {
					p.part = ptrace.NewTraces()
				}
				if p.n == 0 || to.Len() == 0 {
					to = p.resource(rs)
				}
				s.CopyTo(to.AppendEmpty())
				if p.n++; p.n == p.limit && !p.flush() {
					return false
				}
			}
		}
	}
	return true
}

func (p *parting) resource(rs ptrace.ResourceSpans) ptrace.SpanSlice {
	to := p.part.ResourceSpans().AppendEmpty()
	rs.Resource().CopyTo(to.Resource())
	return to.ScopeSpans().AppendEmpty().Spans()
}

func (p *parting) flush() bool {
	if p.n == 0 {
		return true
	}
	p.n = 0
	return p.yield(p.part)
}

func isStep(s ptrace.Span) bool {
	kind, ok := s.Attributes().Get(semconv.OpKind)
	return ok && kind.Str() == string(model.KindStep)
}
