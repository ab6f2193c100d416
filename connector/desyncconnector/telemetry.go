// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
)

// observe registers the counters of the component's own telemetry.
func (h *hub) observe() error {
	t := h.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*watch.Stats) int64
	}{
		{t.RegisterConnectorDesyncAbsencesCallback, func(s *watch.Stats) int64 { return s.Absences }},
		{t.RegisterConnectorDesyncBytesHeldCallback, func(s *watch.Stats) int64 { return s.Bytes }},
		{t.RegisterConnectorDesyncCommsRefusedCallback, func(s *watch.Stats) int64 { return s.CommsRefused }},
		{t.RegisterConnectorDesyncFindingsForgottenCallback, func(*watch.Stats) int64 { return h.forgotten.Load() }},
		{t.RegisterConnectorDesyncFindingsLostCallback, func(*watch.Stats) int64 { return h.lost.Load() }},
		{t.RegisterConnectorDesyncFindingsOpenedCallback, func(s *watch.Stats) int64 { return s.Told }},
		{t.RegisterConnectorDesyncForeignRecordsCallback, func(*watch.Stats) int64 { return h.inbox.foreign.Load() }},
		{t.RegisterConnectorDesyncGapsHurriedCallback, func(s *watch.Stats) int64 { return s.GapsHurried }},
		{t.RegisterConnectorDesyncInboxDroppedCallback, func(*watch.Stats) int64 { return h.inbox.dropped.Load() }},
		{t.RegisterConnectorDesyncJobsEvictedCallback, func(s *watch.Stats) int64 { return s.JobsEvicted }},
		{t.RegisterConnectorDesyncJudgementsCallback, func(s *watch.Stats) int64 { return s.Judged }},
		{t.RegisterConnectorDesyncOpensDroppedCallback, func(s *watch.Stats) int64 { return s.OpensDropped }},
		{t.RegisterConnectorDesyncOpsCallback, func(s *watch.Stats) int64 { return s.Ops }},
		{t.RegisterConnectorDesyncRanksRefusedCallback, func(s *watch.Stats) int64 { return s.RanksRefused }},
		{t.RegisterConnectorDesyncStatesCallback, func(s *watch.Stats) int64 { return s.States }},
		{t.RegisterConnectorDesyncStatesForeignCallback, func(s *watch.Stats) int64 { return s.StatesForeign }},
		{t.RegisterConnectorDesyncStatesLateCallback, func(s *watch.Stats) int64 { return s.StatesLate }},
		{t.RegisterConnectorDesyncStatesOfTwinsCallback, func(s *watch.Stats) int64 { return s.StatesOfTwins }},
		{t.RegisterConnectorDesyncTimesAheadCallback, func(s *watch.Stats) int64 { return s.TimesAhead }},
		{t.RegisterConnectorDesyncUnanalysedCallback, func(s *watch.Stats) int64 { return s.Unanalysed }},
		{t.RegisterConnectorDesyncUnreadCallback, func(*watch.Stats) int64 { return h.inbox.unread.Load() }},
		{t.RegisterConnectorDesyncWithheldCallback, func(s *watch.Stats) int64 { return s.Withheld }},
		{t.RegisterConnectorDesyncWitnessesDroppedCallback, func(s *watch.Stats) int64 { return s.WitnessesDropped }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
