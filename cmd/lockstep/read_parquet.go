// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/intake/stepless"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// parquetReader reads files of the parquet exporter. Their operations go the way of those of OTLP, so that what cannot
// be true is found in one place.
type parquetReader struct{}

func (parquetReader) format() sniff.Format { return sniff.Parquet }

// read reads the files in the order in which they were written: a step comes behind its operations.
func (r parquetReader) read(ctx context.Context, files []input, to *analysis) {
	metas := make(map[string]columns.Meta, len(files))
	for _, f := range files {
		if err := withParquet(f.path, func(p *columns.File) error { metas[f.path] = p.Meta; return nil }); err != nil {
			to.problems.add(f.path, -1, err)
			to.progress.advance(f.size)
		}
	}
	readable := slices.DeleteFunc(slices.Clone(files), func(f input) bool { _, ok := metas[f.path]; return !ok })
	slices.SortStableFunc(readable, func(a, b input) int {
		x, y := metas[a.path], metas[b.path]
		return cmp.Or(cmp.Compare(x.Job, y.Job), cmp.Compare(x.Incarnation, y.Incarnation), cmp.Compare(x.Sequence, y.Sequence))
	})
	for _, f := range readable {
		if ctx.Err() != nil {
			return
		}
		r.readFile(ctx, f, to)
		to.progress.advance(f.size)
	}
}

func withParquet(path string, use func(*columns.File) error) error {
	file, err := regular.Open(path)
	if err != nil {
		return bare(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return bare(err)
	}
	p, err := columns.Open(file, info.Size())
	if err != nil {
		return err
	}
	defer p.Close()
	return use(p)
}

func (parquetReader) readFile(ctx context.Context, f input, to *analysis) {
	before, faults := to.ops, 0
	var spans otelmap.Problems // of the whole file, equal ones once
	var seen stepless.Ranks
	err := withParquet(f.path, func(p *columns.File) error {
		var errs []error
		for i := range p.Groups() {
			if ctx.Err() != nil {
				break // what was read so far is judged
			}
			batches, err := p.Read(i)
			if err != nil {
				errs = append(errs, err) // the other row groups are read
				continue
			}
			for b := range batches {
				for ops := range slices.Chunk(batches[b].Ops, batchOps) {
					to.addTraces(otelmap.OpsToTraces(&batches[b].Rank, ops), &spans, &seen)
				}
			}
		}
		return errors.Join(errs...)
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
