// SPDX-License-Identifier: Apache-2.0

package timelineextension

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// observe registers the counters of the component's own telemetry.
func (h *holder) observe() error {
	t := h.telemetry
	var errs []error
	for _, c := range []struct {
		register func(metric.Int64Callback) error
		value    func(*timeline.Counters) int64
	}{
		{t.RegisterExtensionTimelineClocksCallback, func(c *timeline.Counters) int64 { return c.Clocks }},
		{t.RegisterExtensionTimelineClocksUntrustedCallback, func(c *timeline.Counters) int64 { return c.Untrusted }},
		{t.RegisterExtensionTimelineClocksDoubtedCallback, func(c *timeline.Counters) int64 { return c.Doubted }},
		{t.RegisterExtensionTimelineClocksForgottenCallback, func(c *timeline.Counters) int64 { return c.ClocksForgotten }},
		{t.RegisterExtensionTimelineClocksOverflowedCallback, func(c *timeline.Counters) int64 { return c.ClocksOverflowed }},
		{t.RegisterExtensionTimelineLeadsCallback, func(c *timeline.Counters) int64 { return c.Leads }},
		{t.RegisterExtensionTimelineModelsOldCallback, func(c *timeline.Counters) int64 { return c.ModelsOld }},
		{t.RegisterExtensionTimelineEdgesCallback, func(c *timeline.Counters) int64 { return c.Edges.Added }},
		{t.RegisterExtensionTimelineEdgesForgottenCallback, func(c *timeline.Counters) int64 { return c.Edges.Forgotten }},
		{t.RegisterExtensionTimelineEdgesFormerCallback, func(c *timeline.Counters) int64 { return c.Edges.FormerLives }},
		{t.RegisterExtensionTimelineEdgesLateCallback, func(c *timeline.Counters) int64 { return c.Edges.Late }},
		{t.RegisterExtensionTimelineEdgesOverflowedCallback, func(c *timeline.Counters) int64 { return c.EdgesOverflowed + c.Edges.TooManyEdges }},
		{t.RegisterExtensionTimelineAliasesAmbiguousCallback, func(c *timeline.Counters) int64 { return c.AliasesAmbiguous }},
		{t.RegisterExtensionTimelineHostsAmbiguousCallback, func(c *timeline.Counters) int64 { return c.HostsAmbiguous }},
		{t.RegisterExtensionTimelinePairsCallback, func(c *timeline.Counters) int64 { return c.PairsTaken }},
		{t.RegisterExtensionTimelinePairsUnusedCallback, func(c *timeline.Counters) int64 { return c.PairsUnused }},
		{t.RegisterExtensionTimelineSolutionsCutShortCallback, func(c *timeline.Counters) int64 { return c.Edges.CutShort }},
		{t.RegisterExtensionTimelineSolutionsUnsettledCallback, func(c *timeline.Counters) int64 { return c.Edges.Unsettled }},
		{t.RegisterExtensionTimelineFindingsOverflowedCallback, func(c *timeline.Counters) int64 { return c.FindingsOverflowed }},
		{t.RegisterExtensionTimelineRefusedCallback, func(c *timeline.Counters) int64 { return c.Refused }},
	} {
		errs = append(errs, c.register(func(_ context.Context, o metric.Int64Observer) error {
			counters := h.timeline.Counters()
			o.Observe(c.value(&counters))
			return nil
		}))
	}
	return errors.Join(errs...)
}
