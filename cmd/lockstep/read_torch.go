// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/intake"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// torchReader reads traces of the PyTorch profiler, one file at a time.
type torchReader struct {
	options kineto.Options
	intake  *intake.Intake
}

// batchOps is how many operations the engine is given at once: a batch of
// some 2 MB.
const batchOps = 4096

func newTorchReader(options kineto.Options) *torchReader {
	return &torchReader{options: options, intake: intake.New(options, maxFiles)}
}

func (*torchReader) format() sniff.Format { return sniff.Torch }

func (r *torchReader) read(ctx context.Context, files []input, to *analysis) {
	intake.Sort(files, r.options, func(f input) string { return f.path })
	r.intake.Expect(pathsOf(files))
	for _, f := range files {
		if ctx.Err() != nil {
			return
		}
		r.readFile(ctx, f, to)
	}
}

func (r *torchReader) readFile(ctx context.Context, f input, to *analysis) {
	var read int64
	trace, _, err := r.intake.Read(ctx, f.path, func(n int64) {
		to.progress.advance(n - read)
		read = n
	})
	to.progress.advance(f.size - read)
	if err != nil {
		to.problems.put(faultOf(f.path, trace, err))
		return
	}
	for _, p := range trace.Problems() {
		if p.Offset < 0 { // of the whole trace: what was assumed, not what was left out
			to.problems.note(p)
			continue
		}
		to.problems.put(p)
	}
	rank, _, err := r.intake.Identify(f.path, trace)
	if err != nil {
		to.problems.add(f.path, -1, err)
		return
	}
	to.files++
	to.bytes += f.size
	deliver(&rank, trace, to)
}

// faultOf returns why a file is left out, and whose rank is missing for it.
func faultOf(path string, trace *kineto.Trace, err error) model.Problem {
	p := model.Problem{File: path, Offset: -1, What: bare(err).Error()}
	if trace != nil && trace.HasRank() {
		rank := trace.Rank().Rank
		p.Rank = &rank
	}
	if pe := (*kineto.ParseError)(nil); errors.As(err, &pe) {
		p.Offset, p.What = pe.Offset, "parse trace: "+bare(pe.Err).Error()
	}
	p.What += "; the file is left out"
	return p
}

// deliver hands a trace to the engine, its steps one after the other.
func deliver(rank *model.Rank, trace *kineto.Trace, to *analysis) {
	batch := make([]model.Op, 0, batchOps)
	for op := range trace.Ops() {
		if batch = append(batch, op); len(batch) == cap(batch) {
			to.add(*rank, batch)
			batch = batch[:0]
		}
	}
	to.add(*rank, batch)
}
