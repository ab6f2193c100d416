// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// observe registers the counters of the component's own telemetry.
func (s *service) observe() error {
	t := s.telemetry
	of := func(value func(*seen) int64) func() int64 {
		return func() int64 { return value(s.seen.Load()) }
	}
	return errors.Join(
		hub.Observe(
			hub.Counter{Register: t.RegisterExtensionSequenceArrivalsCallback, Value: of(func(s *seen) int64 { return s.totals.Arrived })},
			hub.Counter{Register: t.RegisterExtensionSequenceRepeatsCallback, Value: of(func(s *seen) int64 { return s.totals.Again })},
			hub.Counter{Register: t.RegisterExtensionSequenceSpansOpenCallback, Value: of(func(s *seen) int64 { return s.open })},
			hub.Counter{Register: t.RegisterExtensionSequenceStreamsCallback, Value: of(func(s *seen) int64 { return s.streams })},
		),
		t.RegisterExtensionSequenceSpansCallback(func(_ context.Context, o metric.Int64Observer) error {
			totals := s.seen.Load().totals
			for outcome, n := range outcomes(&totals) {
				o.Observe(n, metric.WithAttributes(attribute.String("outcome", outcome)))
			}
			return nil
		}),
	)
}

// outcomes are the counts by the attribute outcome.
func outcomes(t *sequence.Totals) map[string]int64 {
	return map[string]int64{
		"concluded": t.Concluded, "stepless": t.Loose, "lost": t.Lost, "gap": t.Gap, "elsewhere": t.Elsewhere,
		"void": t.Void, "uncertain": t.Uncertain, "forgotten": t.Forgotten,
	}
}
