package epochconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/epoch/watch"
)

// observe registers the counters of the component's own telemetry.
func (h *hub) observe() error {
	t := h.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*watch.Stats) int64
	}{
		{t.RegisterConnectorEpochFindingsOpenedCallback, func(s *watch.Stats) int64 { return s.Opened }},
		{t.RegisterConnectorEpochFindingsRefusedCallback, func(*watch.Stats) int64 { return h.refused.Load() }},
		{t.RegisterConnectorEpochFindingsWithheldCallback, func(s *watch.Stats) int64 { return s.Withheld }},
		{t.RegisterConnectorEpochForeignRecordsCallback, func(*watch.Stats) int64 { return h.foreign.Load() }},
		{t.RegisterConnectorEpochObservationsCallback, func(s *watch.Stats) int64 { return s.Engine.Observations }},
		{t.RegisterConnectorEpochObserversForgottenCallback, func(s *watch.Stats) int64 { return s.Forgotten }},
		{t.RegisterConnectorEpochOverflowedCallback, func(s *watch.Stats) int64 { return s.Engine.Overflowed }},
		{t.RegisterConnectorEpochSavesLeftCallback, func(s *watch.Stats) int64 { return s.Engine.SavesLost }},
		{t.RegisterConnectorEpochUnreadCallback, func(*watch.Stats) int64 { return h.unread.Load() }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
