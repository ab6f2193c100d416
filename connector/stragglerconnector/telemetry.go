// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

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
		{t.RegisterConnectorStragglerBytesHeldCallback, func(s *snapshot) int64 { return s.bytes }},
		{t.RegisterConnectorStragglerClockConflictsCallback, func(s *snapshot) int64 { return s.engine.ClockConflicts }},
		{t.RegisterConnectorStragglerConclusionsDroppedCallback, func(s *snapshot) int64 { return s.engine.ConclusionsDropped }},
		{t.RegisterConnectorStragglerDuplicateOpsCallback, func(s *snapshot) int64 { return s.engine.DuplicateOps }},
		{t.RegisterConnectorStragglerFindingsLostCallback, func(*snapshot) int64 { return h.findingsLost.Load() }},
		{t.RegisterConnectorStragglerFindingsWithheldCallback, func(s *snapshot) int64 { return s.engine.FindingsWithheld }},
		{t.RegisterConnectorStragglerHostsContradictedCallback, func(s *snapshot) int64 { return s.engine.HostsContradicted }},
		{t.RegisterConnectorStragglerJobsEvictedCallback, func(s *snapshot) int64 { return s.engine.JobsEvicted }},
		{t.RegisterConnectorStragglerJudgeRefusedCallback, func(s *snapshot) int64 { return s.engine.JudgeRefused }},
		{t.RegisterConnectorStragglerLateOpsCallback, func(s *snapshot) int64 { return s.engine.LateOps }},
		{t.RegisterConnectorStragglerLaunchesContradictedCallback, func(s *snapshot) int64 { return s.engine.LaunchesContradicted }},
		{t.RegisterConnectorStragglerOpsDroppedCallback, func(s *snapshot) int64 { return s.engine.OpsDropped }},
		{t.RegisterConnectorStragglerOpsMiscountedCallback, func(s *snapshot) int64 { return s.engine.OpsMiscounted }},
		{t.RegisterConnectorStragglerOpsOfTwinsCallback, func(s *snapshot) int64 { return s.engine.OpsOfTwins }},
		{t.RegisterConnectorStragglerOpsUnsoundCallback, func(s *snapshot) int64 { return s.engine.OpsUnsound }},
		{t.RegisterConnectorStragglerOpsWithoutRankCallback, func(s *snapshot) int64 { return s.engine.OpsWithoutRank }},
		{t.RegisterConnectorStragglerOpsWithoutStepCallback, func(s *snapshot) int64 { return s.engine.OpsWithoutStep }},
		{t.RegisterConnectorStragglerPlacesOverflowedCallback, func(s *snapshot) int64 { return s.engine.PlacesOverflowed }},
		{t.RegisterConnectorStragglerRanksRefusedCallback, func(s *snapshot) int64 { return s.engine.RanksRefused }},
		{t.RegisterConnectorStragglerStepsAnalysedCallback, func(s *snapshot) int64 { return s.steps }},
		{t.RegisterConnectorStragglerStepsEvictedCallback, func(s *snapshot) int64 { return s.engine.StepsEvicted }},
		{t.RegisterConnectorStragglerStepsForgottenCallback, func(s *snapshot) int64 { return s.engine.StepsForgotten }},
		{t.RegisterConnectorStragglerStepsLargeCallback, func(s *snapshot) int64 { return s.engine.StepsLarge }},
		{t.RegisterConnectorStragglerStepsOffUnitCallback, func(s *snapshot) int64 { return s.engine.StepsOffUnit }},
		{t.RegisterConnectorStragglerStepsTooLargeToWalkCallback, func(s *snapshot) int64 { return s.engine.StepsTooLargeToWalk }},
		{t.RegisterConnectorStragglerStepsBehindCallback, func(s *snapshot) int64 { return s.engine.StepsBehind }},
		{t.RegisterConnectorStragglerStepsUnendedCallback, func(s *snapshot) int64 { return s.engine.StepsUnended }},
		{t.RegisterConnectorStragglerStoryOpsDroppedCallback, func(s *snapshot) int64 { return s.opsDropped }},
		{t.RegisterConnectorStragglerStoryOpsHeldCallback, func(s *snapshot) int64 { return s.opsHeld }},
		{t.RegisterConnectorStragglerStorySpansLostCallback, func(*snapshot) int64 { return h.storySpansLost.Load() }},
		{t.RegisterConnectorStragglerTextsCutCallback, func(s *snapshot) int64 { return s.textsCut }},
		{t.RegisterConnectorStragglerUnmatchedOpsCallback, func(s *snapshot) int64 { return s.engine.UnmatchedOps }},
		{t.RegisterConnectorStragglerUnreadCallback, func(s *snapshot) int64 { return s.unread }},
		{t.RegisterConnectorStragglerWorldsCappedCallback, func(s *snapshot) int64 { return s.engine.WorldsCapped }},
		{t.RegisterConnectorStragglerWorldsContradictedCallback, func(s *snapshot) int64 { return s.engine.WorldsContradicted }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(h.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
