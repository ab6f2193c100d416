package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/otlpfile"
	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
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
	err = otlpfile.Read(ctx, sniff.SkipBOM(content), otlpfile.DefaultLimit,
		func(td ptrace.Traces) { to.addTraces(f.path, td) },
		func(bad otlpfile.Fault) {
			faults++
			to.problems.add(f.path, bad.Offset, bad.Err)
		})
	if err != nil {
		faults++
		to.problems.add(f.path, -1, fmt.Errorf("read file: %w", err))
	}
	if to.ops == before && faults == 0 {
		to.problems.add(f.path, -1, errNoOps)
	}
	to.files++
	to.bytes += f.size
}

// addTraces hands the operations of one batch to the engine.
func (a *analysis) addTraces(path string, td ptrace.Traces) {
	byRank, problems := otelmap.TracesToOps(td)
	for _, p := range problems {
		p.File = path
		a.problems.put(p)
	}
	for i := range byRank {
		a.add(byRank[i].Rank, byRank[i].Ops)
	}
}
