package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// torchReader reads traces of the PyTorch profiler, one file at a time.
type torchReader struct {
	options kineto.Options
	claims  claims
	worlds  worlds
}

// batchOps is how many operations the engine is given at once: a batch of
// some 2 MB.
const batchOps = 4096

func newTorchReader(options kineto.Options) *torchReader {
	return &torchReader{options: options, claims: claims{}}
}

func (*torchReader) format() format { return formatTorch }

func (r *torchReader) read(ctx context.Context, files []input, to *analysis) {
	r.worlds = countWorlds(files, r.options.RankPattern)
	for _, f := range files {
		if ctx.Err() != nil {
			return
		}
		r.readFile(ctx, f, to)
	}
}

func (r *torchReader) readFile(ctx context.Context, f input, to *analysis) {
	var read int64
	options := r.options
	options.Progress = func(n int64) {
		to.progress.advance(n - read)
		read = n
	}
	trace, err := kineto.ParseFile(ctx, f.path, options)
	to.progress.advance(f.size - read)
	if err != nil {
		to.problems.put(faultOf(f.path, trace, err))
		return
	}
	for _, p := range trace.Problems() {
		to.problems.put(p)
	}
	rank, err := r.identify(f.path, trace)
	if err != nil {
		to.problems.add(f.path, -1, err)
		return
	}
	to.files++
	to.bytes += f.size
	deliver(&rank, trace, to)
}

// faultOf returns why a file is left out, with the offset that the reader's
// error states in words. A part of a trace is not analysed: its events are not
// in order of time, so that every step lacks some, and counts and ends of
// collectives would be wrong. A rank that is missing is stated instead.
func faultOf(path string, trace *kineto.Trace, err error) model.Problem {
	p := model.Problem{File: path, Offset: -1, What: bare(err).Error()}
	if trace != nil && trace.HasRank() {
		rank := trace.Rank().Rank
		p.Rank = &rank
	}
	rest, stated := strings.CutPrefix(p.What, "parse "+path+": offset ")
	number, what, _ := strings.Cut(rest, ": ")
	if n, err := strconv.ParseInt(number, 10, 64); stated && err == nil {
		p.Offset, p.What = n, "parse trace: "+what
	}
	p.What += "; the file is left out"
	return p
}

// identify says which rank a file speaks for, or why for none.
func (r *torchReader) identify(path string, trace *kineto.Trace) (model.Rank, error) {
	rank := trace.Rank()
	if !trace.HasRank() && !r.worlds.alone(path) {
		return rank, fmt.Errorf("find rank: got none in distributedInfo and none in the file's name by %q; want one (--rank-pattern)", r.options.RankPattern)
	}
	r.worlds.settle(path, &rank)
	covered := extentOf(trace)
	if !covered.any {
		return rank, errNoOps
	}
	if holder := r.claims.take(path, &rank, covered); holder != "" {
		return rank, fmt.Errorf("claim rank %d: got it from %s, which comes first and covers the same steps or time; want one file", rank.Rank, holder)
	}
	return rank, nil
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
