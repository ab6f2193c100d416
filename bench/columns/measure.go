// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// core are the columns without which no question about a collective has an answer: which operation it is, when
// it was, and how many bytes it moved.
var core = []string{
	"job_id", "incarnation", "rank", "kind", "name", "key", "op_seq", "step", "stream_id", "time_unit_ns", "start", "duration",
	"comm_id", "collective_name", "collective_seq", "collective_seq_scope", "collective_bytes", "work_bytes",
}

// measured is what operations of one source take, bytes.
type measured struct {
	ops          int
	core         int64 // pages of the core columns
	file, coarse int64 // whole files, of exact times and of 100 ns
	otlp, zipped int64
	columns      map[string]int64
	groups       int
	time         time.Duration // to sort, encode and compress
}

// batchSpans is how many spans a request has, as a collector's batches do.
const batchSpans = 8192

func measure(s *source) (*measured, error) {
	m := &measured{}
	var out bytes.Buffer
	begin := time.Now()
	if err := write(&out, s, columns.Exact); err != nil {
		return nil, err
	}
	m.time, m.file = time.Since(begin), int64(out.Len())
	f, err := columns.Open(bytes.NewReader(out.Bytes()), m.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m.columns, m.groups = f.ColumnBytes(), f.Groups()
	for _, name := range core {
		m.core += m.columns[name]
	}
	out.Reset()
	if err := write(&out, s, columns.HundredNanosecs); err != nil {
		return nil, err
	}
	m.coarse = int64(out.Len())
	return m, m.requests(s)
}

func write(out *bytes.Buffer, s *source, r columns.Resolution) error {
	w, err := columns.NewWriter(out, columns.Meta{Job: s.name, Resolution: r})
	if err != nil {
		return err
	}
	for i := range s.batches {
		if err := w.Add(&s.batches[i].Rank, s.batches[i].Ops, nil); err != nil {
			return err
		}
	}
	return w.Close()
}

// requests measures the same operations as requests of OTLP, each compressed by itself.
func (m *measured) requests(s *source) error {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("make encoder of zstd: %w", err)
	}
	defer func() { _ = zip.Close() }()
	td := ptrace.NewTraces()
	flush := func() error {
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		m.otlp += int64(len(b))
		m.zipped += int64(len(zip.EncodeAll(b, nil)))
		td = ptrace.NewTraces()
		return nil
	}
	for i := range s.batches {
		b := &s.batches[i]
		for ops := b.Ops; len(ops) > 0; {
			n := min(len(ops), batchSpans-td.SpanCount())
			otelmap.AppendOps(td, &b.Rank, ops[:n])
			m.ops += n
			if ops = ops[n:]; td.SpanCount() == batchSpans {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if td.SpanCount() > 0 {
		return flush()
	}
	return nil
}

// source are operations of one origin, in the order in which they came.
type source struct {
	name    string
	batches []model.RankOps
}
