// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// saves makes spans of saves that became whole; the caller holds the watch.
func (h *hub) saves(spans []watch.Span) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range spans {
		s := &spans[i]
		epochmap.AppendSave(&epochmap.Save{
			JobID: s.Job, JobName: h.watch.NameOf(s.Job), Generation: s.Generation, Epoch: s.Save,
			Start: s.Start, End: s.End, FromFiles: s.FromFiles, Domains: s.Domains, Last: s.Last, Confirmed: s.Confirmed,
		}, td)
	}
	return td
}

// sendSaves gives spans out. Those that are refused are counted, and not told again.
func (h *hub) sendSaves(ctx context.Context, td ptrace.Traces) error {
	n := td.SpanCount()
	if n == 0 {
		return nil
	}
	var errs []error
	for _, next := range h.traces {
		out := ptrace.NewTraces()
		td.CopyTo(out)
		if err := next.ConsumeTraces(ctx, out); err != nil {
			errs = append(errs, err)
			h.spansRefused.Add(int64(n))
		}
	}
	return errors.Join(errs...)
}
