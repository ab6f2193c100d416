// SPDX-License-Identifier: Apache-2.0

package clocksconnector

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
		value    func() int64
	}{
		{t.RegisterConnectorClocksEdgesCallback, h.own.edges.Load},
		{t.RegisterConnectorClocksModelsCallback, h.own.models.Load},
		{t.RegisterConnectorClocksForeignRecordsCallback, h.own.foreign.Load},
		{t.RegisterConnectorClocksRefusedCallback, h.own.refused.Load},
		{t.RegisterConnectorClocksLostCallback, h.own.lost.Load},
		{t.RegisterConnectorClocksFindingsOverflowedCallback, h.own.overflowed.Load},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value())
			return nil
		}))
	}
	return errors.Join(errs...)
}
