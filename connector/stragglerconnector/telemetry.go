// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"github.com/lockstep-otel/lockstep/connector/stragglerconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// observe registers the counters of the component's own telemetry.
func (s *steps) observe(t *metadata.TelemetryBuilder) error {
	of := func(value func(*seen) int64) func() int64 {
		return func() int64 { return value(s.seen.Load()) }
	}
	return hub.Observe(
		hub.Counter{Register: t.RegisterConnectorStragglerBytesHeldCallback, Value: of(func(s *seen) int64 { return s.bytes })},
		hub.Counter{Register: t.RegisterConnectorStragglerClockConflictsCallback, Value: of(func(s *seen) int64 { return s.engine.ClockConflicts })},
		hub.Counter{Register: t.RegisterConnectorStragglerConclusionsDroppedCallback, Value: of(func(s *seen) int64 { return s.engine.ConclusionsDropped })},
		hub.Counter{Register: t.RegisterConnectorStragglerDuplicateOpsCallback, Value: of(func(s *seen) int64 { return s.engine.DuplicateOps })},
		hub.Counter{Register: t.RegisterConnectorStragglerFindingsLostCallback, Value: s.counts.EventsLost.Load},
		hub.Counter{Register: t.RegisterConnectorStragglerFindingsWithheldCallback, Value: of(func(s *seen) int64 { return s.engine.FindingsWithheld })},
		hub.Counter{Register: t.RegisterConnectorStragglerHostsContradictedCallback, Value: of(func(s *seen) int64 { return s.engine.HostsContradicted })},
		hub.Counter{Register: t.RegisterConnectorStragglerJobsEvictedCallback, Value: of(func(s *seen) int64 { return s.engine.JobsEvicted })},
		hub.Counter{Register: t.RegisterConnectorStragglerJudgeRefusedCallback, Value: of(func(s *seen) int64 { return s.engine.JudgeRefused })},
		hub.Counter{Register: t.RegisterConnectorStragglerLateOpsCallback, Value: of(func(s *seen) int64 { return s.engine.LateOps })},
		hub.Counter{Register: t.RegisterConnectorStragglerLaunchesContradictedCallback, Value: of(func(s *seen) int64 { return s.engine.LaunchesContradicted })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsDroppedCallback, Value: of(func(s *seen) int64 { return s.engine.OpsDropped })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsMiscountedCallback, Value: of(func(s *seen) int64 { return s.engine.OpsMiscounted })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsOfTwinsCallback, Value: of(func(s *seen) int64 { return s.engine.OpsOfTwins })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsUnsoundCallback, Value: of(func(s *seen) int64 { return s.engine.OpsUnsound })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsWithoutRankCallback, Value: of(func(s *seen) int64 { return s.engine.OpsWithoutRank })},
		hub.Counter{Register: t.RegisterConnectorStragglerOpsWithoutStepCallback, Value: of(func(s *seen) int64 { return s.engine.OpsWithoutStep })},
		hub.Counter{Register: t.RegisterConnectorStragglerPlacesOverflowedCallback, Value: of(func(s *seen) int64 { return s.engine.PlacesOverflowed })},
		hub.Counter{Register: t.RegisterConnectorStragglerRanksRefusedCallback, Value: of(func(s *seen) int64 { return s.engine.RanksRefused })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsAnalysedCallback, Value: of(func(s *seen) int64 { return s.analysed })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsEvictedCallback, Value: of(func(s *seen) int64 { return s.engine.StepsEvicted })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsForgottenCallback, Value: of(func(s *seen) int64 { return s.engine.StepsForgotten })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsIncompleteCallback, Value: of(func(s *seen) int64 { return s.engine.StepsIncomplete })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsLargeCallback, Value: of(func(s *seen) int64 { return s.engine.StepsLarge })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsOffUnitCallback, Value: of(func(s *seen) int64 { return s.engine.StepsOffUnit })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsTooLargeToWalkCallback, Value: of(func(s *seen) int64 { return s.engine.StepsTooLargeToWalk })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsBehindCallback, Value: of(func(s *seen) int64 { return s.engine.StepsBehind })},
		hub.Counter{Register: t.RegisterConnectorStragglerStepsUnendedCallback, Value: of(func(s *seen) int64 { return s.engine.StepsUnended })},
		hub.Counter{Register: t.RegisterConnectorStragglerStoryOpsDroppedCallback, Value: of(func(s *seen) int64 { return s.opsDropped })},
		hub.Counter{Register: t.RegisterConnectorStragglerStoryOpsHeldCallback, Value: of(func(s *seen) int64 { return s.opsHeld })},
		hub.Counter{Register: t.RegisterConnectorStragglerStorySpansLostCallback, Value: s.counts.SpansLost.Load},
		hub.Counter{Register: t.RegisterConnectorStragglerTextsCutCallback, Value: s.textsCut.Load},
		hub.Counter{Register: t.RegisterConnectorStragglerUnmatchedOpsCallback, Value: of(func(s *seen) int64 { return s.engine.UnmatchedOps })},
		hub.Counter{Register: t.RegisterConnectorStragglerUnreadCallback, Value: s.unread.Load},
		hub.Counter{Register: t.RegisterConnectorStragglerWorldsCappedCallback, Value: of(func(s *seen) int64 { return s.engine.WorldsCapped })},
		hub.Counter{Register: t.RegisterConnectorStragglerWorldsContradictedCallback, Value: of(func(s *seen) int64 { return s.engine.WorldsContradicted })},
	)
}
