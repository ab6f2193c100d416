// SPDX-License-Identifier: Apache-2.0

package epochconnector

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
		value    func(*seen) int64
	}{
		{t.RegisterConnectorEpochBytesHeldCallback, func(s *seen) int64 {
			return int64(s.saves.Engine.Bytes+s.ranks.Bytes+s.prints.Bytes) + s.fleet.Bytes
		}},
		{t.RegisterConnectorEpochFindingsOpenedCallback, func(s *seen) int64 {
			return s.saves.Opened + s.fleet.Opened + s.ranks.Opened + s.prints.Opened + s.lines.Opened
		}},
		{t.RegisterConnectorEpochFindingsRefusedCallback, func(*seen) int64 { return h.refused.Load() }},
		{t.RegisterConnectorEpochFindingsWithheldCallback, func(s *seen) int64 {
			return s.saves.Withheld + s.fleet.Withheld + s.ranks.Withheld + s.prints.Withheld + s.lines.Withheld
		}},
		{t.RegisterConnectorEpochFingerprintsCallback, func(s *seen) int64 { return s.prints.Fingerprints }},
		{t.RegisterConnectorEpochFingerprintsLateCallback, func(s *seen) int64 { return s.prints.Late }},
		{t.RegisterConnectorEpochFingerprintsLeftCallback, func(s *seen) int64 { return s.prints.Left }},
		{t.RegisterConnectorEpochFingerprintsOverflowedCallback, func(s *seen) int64 { return s.prints.Overflowed }},
		{t.RegisterConnectorEpochFleetAbstainedCallback, func(s *seen) int64 { return s.fleet.Abstained }},
		{t.RegisterConnectorEpochFleetContestedCallback, func(s *seen) int64 { return s.fleet.Contested }},
		{t.RegisterConnectorEpochFleetLateCallback, func(s *seen) int64 { return s.fleet.Late }},
		{t.RegisterConnectorEpochFleetMembersUnknownCallback, func(s *seen) int64 { return s.fleet.MembersUnknown }},
		{t.RegisterConnectorEpochFleetOverflowedCallback, func(s *seen) int64 { return s.fleet.Overflowed() }},
		{t.RegisterConnectorEpochFleetRefusedCallback, func(s *seen) int64 { return s.fleet.Refused }},
		{t.RegisterConnectorEpochFleetRestartedCallback, func(s *seen) int64 { return s.fleet.Restarted }},
		{t.RegisterConnectorEpochFleetStatesCallback, func(s *seen) int64 { return s.fleet.States }},
		{t.RegisterConnectorEpochFleetVersionsCallback, func(s *seen) int64 { return s.fleet.Versions }},
		{t.RegisterConnectorEpochForeignRecordsCallback, func(*seen) int64 { return h.foreign.Load() }},
		{t.RegisterConnectorEpochJobsLeftCallback, func(s *seen) int64 { return s.saves.Engine.JobsLost }},
		{t.RegisterConnectorEpochLogLinesCallback, func(s *seen) int64 { return s.lines.Lines }},
		{t.RegisterConnectorEpochObservationsCallback, func(s *seen) int64 { return s.saves.Engine.Observations }},
		{t.RegisterConnectorEpochObservationsLateCallback, func(s *seen) int64 { return s.saves.Late }},
		{t.RegisterConnectorEpochObservationsRefusedCallback, func(s *seen) int64 { return s.saves.Engine.Refused }},
		{t.RegisterConnectorEpochObserversForgottenCallback, func(s *seen) int64 { return s.saves.Forgotten }},
		{t.RegisterConnectorEpochOverflowedCallback, func(s *seen) int64 { return s.saves.Engine.Overflowed }},
		{t.RegisterConnectorEpochResumesCallback, func(s *seen) int64 { return s.ranks.Resumes }},
		{t.RegisterConnectorEpochResumesLeftCallback, func(s *seen) int64 { return s.ranks.Left }},
		{t.RegisterConnectorEpochResumesOverflowedCallback, func(s *seen) int64 { return s.ranks.Overflowed }},
		{t.RegisterConnectorEpochSavesLeftCallback, func(s *seen) int64 { return s.saves.Engine.SavesLost }},
		{t.RegisterConnectorEpochSpansLostCallback, func(s *seen) int64 { return s.saves.SpansLost + h.spansRefused.Load() }},
		{t.RegisterConnectorEpochUnreadCallback, func(*seen) int64 { return h.unread.Load() }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
