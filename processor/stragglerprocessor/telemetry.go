// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// observe registers the counters of the component's own telemetry.
func (p *annotating) observe() error {
	t := p.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*snapshot) int64
	}{
		{t.RegisterProcessorStragglerBytesHeldCallback, func(s *snapshot) int64 { return s.bytes }},
		{t.RegisterProcessorStragglerClockConflictsCallback, func(s *snapshot) int64 { return s.engine.ClockConflicts }},
		{t.RegisterProcessorStragglerConclusionsDroppedCallback, func(s *snapshot) int64 { return s.engine.ConclusionsDropped }},
		{t.RegisterProcessorStragglerDuplicateOpsCallback, func(s *snapshot) int64 { return s.engine.DuplicateOps }},
		{t.RegisterProcessorStragglerFindingsWithheldCallback, func(s *snapshot) int64 { return s.engine.FindingsWithheld }},
		{t.RegisterProcessorStragglerHostsContradictedCallback, func(s *snapshot) int64 { return s.engine.HostsContradicted }},
		{t.RegisterProcessorStragglerJobsEvictedCallback, func(s *snapshot) int64 { return s.engine.JobsEvicted }},
		{t.RegisterProcessorStragglerJudgeRefusedCallback, func(s *snapshot) int64 { return s.engine.JudgeRefused }},
		{t.RegisterProcessorStragglerLateOpsCallback, func(s *snapshot) int64 { return s.engine.LateOps }},
		{t.RegisterProcessorStragglerLaunchesContradictedCallback, func(s *snapshot) int64 { return s.engine.LaunchesContradicted }},
		{t.RegisterProcessorStragglerOpsDroppedCallback, func(s *snapshot) int64 { return s.engine.OpsDropped }},
		{t.RegisterProcessorStragglerOpsMiscountedCallback, func(s *snapshot) int64 { return s.engine.OpsMiscounted }},
		{t.RegisterProcessorStragglerOpsOfTwinsCallback, func(s *snapshot) int64 { return s.engine.OpsOfTwins }},
		{t.RegisterProcessorStragglerOpsUnsoundCallback, func(s *snapshot) int64 { return s.engine.OpsUnsound }},
		{t.RegisterProcessorStragglerOpsWithoutRankCallback, func(s *snapshot) int64 { return s.engine.OpsWithoutRank }},
		{t.RegisterProcessorStragglerOpsWithoutStepCallback, func(s *snapshot) int64 { return s.engine.OpsWithoutStep }},
		{t.RegisterProcessorStragglerPlacesOverflowedCallback, func(s *snapshot) int64 { return s.engine.PlacesOverflowed }},
		{t.RegisterProcessorStragglerRanksRefusedCallback, func(s *snapshot) int64 { return s.engine.RanksRefused }},
		{t.RegisterProcessorStragglerSpansHeldCallback, func(s *snapshot) int64 { return s.held }},
		{t.RegisterProcessorStragglerSpansLostCallback, func(*snapshot) int64 { return p.spansLost.Load() }},
		{t.RegisterProcessorStragglerStepsAnalysedCallback, func(s *snapshot) int64 { return s.steps }},
		{t.RegisterProcessorStragglerStepsEvictedCallback, func(s *snapshot) int64 { return s.engine.StepsEvicted }},
		{t.RegisterProcessorStragglerStepsForgottenCallback, func(s *snapshot) int64 { return s.engine.StepsForgotten }},
		{t.RegisterProcessorStragglerStepsUnannotatedCallback, func(s *snapshot) int64 { return s.unannotated }},
		{t.RegisterProcessorStragglerStepsLargeCallback, func(s *snapshot) int64 { return s.engine.StepsLarge }},
		{t.RegisterProcessorStragglerStepsOffUnitCallback, func(s *snapshot) int64 { return s.engine.StepsOffUnit }},
		{t.RegisterProcessorStragglerStepsTooLargeToWalkCallback, func(s *snapshot) int64 { return s.engine.StepsTooLargeToWalk }},
		{t.RegisterProcessorStragglerStepsBehindCallback, func(s *snapshot) int64 { return s.engine.StepsBehind }},
		{t.RegisterProcessorStragglerStepsUnendedCallback, func(s *snapshot) int64 { return s.engine.StepsUnended }},
		{t.RegisterProcessorStragglerTextsCutCallback, func(s *snapshot) int64 { return s.textsCut }},
		{t.RegisterProcessorStragglerUnmatchedOpsCallback, func(s *snapshot) int64 { return s.engine.UnmatchedOps }},
		{t.RegisterProcessorStragglerUnreadCallback, func(s *snapshot) int64 { return s.unread }},
		{t.RegisterProcessorStragglerWorldsCappedCallback, func(s *snapshot) int64 { return s.engine.WorldsCapped }},
		{t.RegisterProcessorStragglerWorldsContradictedCallback, func(s *snapshot) int64 { return s.engine.WorldsContradicted }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.value(p.seen.Load()))
			return nil
		}))
	}
	return errors.Join(errs...)
}
