// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// DefaultLimit bounds one JSON value, bytes. The file exporter writes one batch
// a line; 64 MiB are some 60,000 spans, far beyond any batch, and decoding
// them takes some three times as much memory.
const DefaultLimit = 64 << 20

// Fault is a value that could not be read.
type Fault struct {
	Offset int64 // bytes, of the uncompressed content
	Err    error
}

// Read decodes the batches of r and hands each to each, one at a time. A value
// that cannot be read is handed to bad and costs nothing else. It returns the
// error of r itself, with the offset reached, or of ctx.
func Read(ctx context.Context, r io.Reader, limit int, each func(ptrace.Traces), bad func(Fault)) error {
	s := newSplitter(r, limit)
	for ctx.Err() == nil {
		v, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read at byte %d: %w", s.offset, err)
		}
		td, err := decode(v)
		if err != nil {
			bad(Fault{Offset: v.offset, Err: err})
			continue
		}
		each(td)
	}
	return ctx.Err()
}

func decode(v value) (ptrace.Traces, error) {
	if v.err != nil {
		return ptrace.Traces{}, v.err
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(v.data)
	if err != nil {
		return ptrace.Traces{}, fmt.Errorf("decode OTLP JSON: %w", err)
	}
	return td, nil
}
