// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// observe registers the counters of the component's own telemetry.
func (h *hub) observe() error {
	t := h.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*snapshot) int64
	}{
		{t.RegisterConnectorFindingsReceivedCallback, func(s *snapshot) int64 { return s.engine.Received }},
		{t.RegisterConnectorFindingsDuplicatesCallback, func(s *snapshot) int64 { return s.engine.Duplicates }},
		{t.RegisterConnectorFindingsLateCallback, func(s *snapshot) int64 { return s.engine.Late }},
		{t.RegisterConnectorFindingsEvictedCallback, func(s *snapshot) int64 { return s.engine.Evicted }},
		{t.RegisterConnectorFindingsCutCallback, func(s *snapshot) int64 { return s.own.cut }},
		{t.RegisterConnectorFindingsForgottenCallback, func(s *snapshot) int64 { return s.engine.Forgotten }},
		{t.RegisterConnectorFindingsWithoutIDCallback, func(s *snapshot) int64 { return s.engine.WithoutID }},
		{t.RegisterConnectorFindingsForeignRecordsCallback, func(s *snapshot) int64 { return s.own.foreign }},
		{t.RegisterConnectorFindingsBadAttributesCallback, func(s *snapshot) int64 { return s.own.badAttributes }},
		{t.RegisterConnectorFindingsLostCallback, func(*snapshot) int64 { return h.lost.Load() }},
		{t.RegisterConnectorFindingsOpenCallback, func(s *snapshot) int64 { return int64(s.open) }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
