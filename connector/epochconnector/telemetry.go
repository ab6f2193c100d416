// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"github.com/lockstep-otel/lockstep/connector/epochconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// observe registers the counters of the component's own telemetry.
func (w *watches) observe(t *metadata.TelemetryBuilder) error {
	of := func(value func(*seen) int64) func() int64 {
		return func() int64 { return value(w.seen.Load()) }
	}
	return hub.Observe(
		hub.Counter{Register: t.RegisterConnectorEpochBytesHeldCallback, Value: of(func(s *seen) int64 {
			return int64(s.saves.Engine.Bytes+s.ranks.Bytes+s.prints.Bytes) + s.fleet.Bytes
		})},
		hub.Counter{Register: t.RegisterConnectorEpochFindingsOpenedCallback, Value: of(func(s *seen) int64 {
			return s.saves.Opened + s.fleet.Opened + s.ranks.Opened + s.prints.Opened + s.lines.Opened
		})},
		hub.Counter{Register: t.RegisterConnectorEpochFindingsLostCallback, Value: w.counts.EventsLost.Load},
		hub.Counter{Register: t.RegisterConnectorEpochFindingsRefusedCallback, Value: w.counts.EventsRefused.Load},
		hub.Counter{Register: t.RegisterConnectorEpochFindingsWithheldCallback, Value: of(func(s *seen) int64 {
			return s.saves.Withheld + s.fleet.Withheld + s.ranks.Withheld + s.prints.Withheld + s.lines.Withheld
		})},
		hub.Counter{Register: t.RegisterConnectorEpochFingerprintsCallback, Value: of(func(s *seen) int64 { return s.prints.Fingerprints })},
		hub.Counter{Register: t.RegisterConnectorEpochFingerprintsLateCallback, Value: of(func(s *seen) int64 { return s.prints.Late })},
		hub.Counter{Register: t.RegisterConnectorEpochFingerprintsLeftCallback, Value: of(func(s *seen) int64 { return s.prints.Left })},
		hub.Counter{Register: t.RegisterConnectorEpochFingerprintsOverflowedCallback, Value: of(func(s *seen) int64 { return s.prints.Overflowed })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetAbstainedCallback, Value: of(func(s *seen) int64 { return s.fleet.Abstained })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetContestedCallback, Value: of(func(s *seen) int64 { return s.fleet.Contested })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetLateCallback, Value: of(func(s *seen) int64 { return s.fleet.Late })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetMembersUnknownCallback, Value: of(func(s *seen) int64 { return s.fleet.MembersUnknown })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetOverflowedCallback, Value: of(func(s *seen) int64 { return s.fleet.Overflowed() })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetRefusedCallback, Value: of(func(s *seen) int64 { return s.fleet.Refused })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetRestartedCallback, Value: of(func(s *seen) int64 { return s.fleet.Restarted })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetStatesCallback, Value: of(func(s *seen) int64 { return s.fleet.States })},
		hub.Counter{Register: t.RegisterConnectorEpochFleetVersionsCallback, Value: of(func(s *seen) int64 { return s.fleet.Versions })},
		hub.Counter{Register: t.RegisterConnectorEpochForeignRecordsCallback, Value: w.foreign.Load},
		hub.Counter{Register: t.RegisterConnectorEpochJobsLeftCallback, Value: of(func(s *seen) int64 { return s.saves.Engine.JobsLost })},
		hub.Counter{Register: t.RegisterConnectorEpochLogLinesCallback, Value: of(func(s *seen) int64 { return s.lines.Lines })},
		hub.Counter{Register: t.RegisterConnectorEpochObservationsCallback, Value: of(func(s *seen) int64 { return s.saves.Engine.Observations })},
		hub.Counter{Register: t.RegisterConnectorEpochObservationsLateCallback, Value: of(func(s *seen) int64 { return s.saves.Late })},
		hub.Counter{Register: t.RegisterConnectorEpochObservationsRefusedCallback, Value: of(func(s *seen) int64 { return s.saves.Engine.Refused })},
		hub.Counter{Register: t.RegisterConnectorEpochObserversForgottenCallback, Value: of(func(s *seen) int64 { return s.saves.Forgotten })},
		hub.Counter{Register: t.RegisterConnectorEpochOverflowedCallback, Value: of(func(s *seen) int64 { return s.saves.Engine.Overflowed })},
		hub.Counter{Register: t.RegisterConnectorEpochResumesCallback, Value: of(func(s *seen) int64 { return s.ranks.Resumes })},
		hub.Counter{Register: t.RegisterConnectorEpochResumesLeftCallback, Value: of(func(s *seen) int64 { return s.ranks.Left })},
		hub.Counter{Register: t.RegisterConnectorEpochResumesOverflowedCallback, Value: of(func(s *seen) int64 { return s.ranks.Overflowed })},
		hub.Counter{Register: t.RegisterConnectorEpochSavesLeftCallback, Value: of(func(s *seen) int64 { return s.saves.Engine.SavesLost })},
		hub.Counter{Register: t.RegisterConnectorEpochSpansLostCallback, Value: of(func(s *seen) int64 { return s.saves.SpansLost + w.counts.SpansLost.Load() })},
		hub.Counter{Register: t.RegisterConnectorEpochUnreadCallback, Value: w.unread.Load},
	)
}
