package desyncconnector

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
		{t.RegisterConnectorDesyncAbsencesCallback, func(s *snapshot) int64 { return s.watch.Absences }},
		{t.RegisterConnectorDesyncCommsRefusedCallback, func(s *snapshot) int64 { return s.watch.CommsRefused }},
		{t.RegisterConnectorDesyncFindingsLostCallback, func(s *snapshot) int64 { return s.own.lost }},
		{t.RegisterConnectorDesyncFindingsOpenedCallback, func(s *snapshot) int64 { return s.watch.Told }},
		{t.RegisterConnectorDesyncForeignRecordsCallback, func(s *snapshot) int64 { return s.own.foreign }},
		{t.RegisterConnectorDesyncGapsHurriedCallback, func(s *snapshot) int64 { return s.watch.GapsHurried }},
		{t.RegisterConnectorDesyncJobsEvictedCallback, func(s *snapshot) int64 { return s.watch.JobsEvicted }},
		{t.RegisterConnectorDesyncJudgementsCallback, func(s *snapshot) int64 { return s.watch.Judged }},
		{t.RegisterConnectorDesyncOpensDroppedCallback, func(s *snapshot) int64 { return s.watch.OpensDropped }},
		{t.RegisterConnectorDesyncOpsCallback, func(s *snapshot) int64 { return s.watch.Ops }},
		{t.RegisterConnectorDesyncRanksRefusedCallback, func(s *snapshot) int64 { return s.watch.RanksRefused }},
		{t.RegisterConnectorDesyncStatesCallback, func(s *snapshot) int64 { return s.watch.States }},
		{t.RegisterConnectorDesyncStatesLateCallback, func(s *snapshot) int64 { return s.watch.StatesLate }},
		{t.RegisterConnectorDesyncStatesOfTwinsCallback, func(s *snapshot) int64 { return s.watch.StatesOfTwins }},
		{t.RegisterConnectorDesyncUnanalysedCallback, func(s *snapshot) int64 { return s.watch.Unanalysed }},
		{t.RegisterConnectorDesyncUnreadCallback, func(s *snapshot) int64 { return s.own.unread }},
		{t.RegisterConnectorDesyncWithheldCallback, func(s *snapshot) int64 { return s.watch.Withheld }},
		{t.RegisterConnectorDesyncWitnessesDroppedCallback, func(s *snapshot) int64 { return s.watch.WitnessesDropped }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
